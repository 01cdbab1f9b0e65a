//! Expressions that say what a kernel of its own computes.

use super::graph::{Binary, Graph, Node, Unary};
use crate::Activation;

/// A score that has kernels of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// q @ k times a constant.
    Dot { scale: f64 },
    /// sum(w * act(q + k)), w the parameter of this number.
    Additive { activation: Activation, w: usize },
}

impl Pattern {
    /// What a graph computes in heads of this width, if that is a pattern.
    pub(crate) fn of(graph: &Graph, width: usize) -> Option<Self> {
        let constants = constants(graph, width);
        dot(graph, &constants).or_else(|| additive(graph, &constants))
    }
}

/// The values of the nodes that depend on nothing but the width, as far as scales have them.
fn constants(graph: &Graph, width: usize) -> Vec<Option<f64>> {
    let mut values: Vec<Option<f64>> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        values.push(match *node {
            Node::Number(x) => Some(x),
            Node::Width => Some(width as f64),
            Node::Unary(Unary::Negate, a) => values[a].map(|a| -a),
            Node::Unary(Unary::Sqrt, a) => values[a].map(f64::sqrt),
            Node::Unary(Unary::Exp, a) => values[a].map(f64::exp),
            Node::Unary(Unary::Log, a) => values[a].map(f64::ln),
            Node::Binary(binary, a, b) => values[a].zip(values[b]).map(|(a, b)| match binary {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                Binary::Divide => a / b,
            }),
            _ => None,
        });
    }
    values
}

/// A node without its constant factors, and those multiplied.
fn peeled(graph: &Graph, constants: &[Option<f64>], mut at: usize) -> (usize, f64) {
    let mut scale = 1.0;
    loop {
        (at, scale) = match graph.nodes()[at] {
            Node::Unary(Unary::Negate, a) => (a, -scale),
            Node::Binary(Binary::Multiply, a, b) => match (constants[a], constants[b]) {
                (Some(factor), None) => (b, scale * factor),
                (None, Some(factor)) => (a, scale * factor),
                _ => return (at, scale),
            },
            Node::Binary(Binary::Divide, a, b) => match constants[b] {
                Some(divisor) => (a, scale / divisor),
                None => return (at, scale),
            },
            _ => return (at, scale),
        };
    }
}

fn dot(graph: &Graph, constants: &[Option<f64>]) -> Option<Pattern> {
    let peeled = |at| peeled(graph, constants, at);
    let (sum, outside) = peeled(graph.score());
    let Node::Sum(products) = graph.nodes()[sum] else { return None };
    let (product, inside) = peeled(products);
    let Node::Binary(Binary::Multiply, a, b) = graph.nodes()[product] else { return None };
    let ((a, by_a), (b, by_b)) = (peeled(a), peeled(b));
    let both = matches!(
        (graph.nodes()[a], graph.nodes()[b]),
        (Node::Query, Node::Key) | (Node::Key, Node::Query)
    );
    let scale = outside * inside * by_a * by_b;
    (both && scale.is_finite()).then_some(Pattern::Dot { scale })
}

fn additive(graph: &Graph, constants: &[Option<f64>]) -> Option<Pattern> {
    let nodes = graph.nodes();
    let Node::Sum(products) = nodes[graph.score()] else { return None };
    let Node::Binary(Binary::Multiply, a, b) = nodes[products] else { return None };
    let (w, activated) = match (nodes[a], nodes[b]) {
        (Node::Parameter(w), _) => (w, b),
        (_, Node::Parameter(w)) => (w, a),
        _ => return None,
    };
    let added = |at: usize| {
        let Node::Binary(Binary::Add, a, b) = nodes[at] else { return false };
        matches!((nodes[a], nodes[b]), (Node::Query, Node::Key) | (Node::Key, Node::Query))
    };
    let activation = match nodes[activated] {
        Node::Unary(Unary::Tanh, x) if added(x) => Activation::Tanh,
        Node::Unary(Unary::Relu, x) if added(x) => Activation::Relu,
        Node::Where(x, positive, leak) if added(x) && positive == x => {
            let Node::Binary(Binary::Multiply, a, b) = nodes[leak] else { return None };
            let slope = constants[if a == x { b } else { a }]?;
            if (a != x && b != x) || !slope.is_finite() {
                return None;
            }
            Activation::LeakyRelu { slope }
        }
        Node::Binary(Binary::Multiply, x, share) if added(x) => {
            matches!(nodes[share], Node::Unary(Unary::NormalCdf, of) if of == x)
                .then_some(Activation::Gelu)?
        }
        _ if added(activated) => Activation::Identity,
        _ => return None,
    };
    Some(Pattern::Additive { activation, w })
}
