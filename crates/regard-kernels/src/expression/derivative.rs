//! The derivatives of a score, as nodes of the same graph.
//!
//! From the score back to its leaves, newest node first, each node's derivative is handed to its
//! operands by the chain rule. Whatever the score itself computed is shared.

use super::Kind;
use super::graph::{Binary, Graph, Node, Unary};

/// Where the derivatives of a score stand in its graph; none where it does not depend on something.
/// A derivative of kind `Number` by a row is that number for every feature.
///
/// ```
/// use regard_kernels::{Expression, Node};
/// let mut graph = Expression::parse("tau * (q @ k)").unwrap().graph(&[]);
/// let found = graph.differentiate();
/// assert!(found.q.is_some() && found.parameters[0].is_some());
/// // d/dq = tau · k
/// assert!(matches!(graph.nodes()[found.q.unwrap()], Node::Binary(..)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Derivatives {
    /// By the query's features.
    pub q: Option<usize>,
    /// By the key's features.
    pub k: Option<usize>,
    /// By each parameter.
    pub parameters: Vec<Option<usize>>,
}

impl Graph {
    /// Adds the derivatives of the score.
    ///
    /// ```
    /// use regard_kernels::{Expression, Node};
    /// let mut graph = Expression::parse("q @ k").unwrap().graph(&[]);
    /// let derivatives = graph.differentiate();
    /// assert_eq!(derivatives.q.map(|at| graph.nodes()[at]), Some(Node::Key));
    /// ```
    pub fn differentiate(&mut self) -> Derivatives {
        let mut chain = Chain { by: vec![None; self.score() + 1], graph: self };
        let score = chain.graph.score();
        chain.by[score] = Some(chain.graph.node(Node::Number(1.0)));
        let mut found =
            Derivatives { q: None, k: None, parameters: vec![None; chain.graph.parameters()] };
        for node in (0..=score).rev() {
            let Some(grad) = chain.by[node] else { continue };
            match chain.graph.nodes()[node] {
                Node::Query => found.q = Some(grad),
                Node::Key => found.k = Some(grad),
                Node::Parameter(n) => found.parameters[n] = Some(grad),
                _ => chain.hand_on(node, grad),
            }
        }
        found
    }
}

struct Chain<'a> {
    /// The score's derivative by each of its nodes, as far as it is known.
    by: Vec<Option<usize>>,
    graph: &'a mut Graph,
}

impl Chain<'_> {
    /// Adds a node's part to the derivatives by its operands.
    fn hand_on(&mut self, node: usize, grad: usize) {
        match self.graph.nodes()[node] {
            Node::Unary(unary, a) => {
                let part = self.unary(unary, a, node, grad);
                self.add(node, a, part);
            }
            // One operand twice: x² has the slope 2x.
            Node::Binary(Binary::Multiply, a, b) if a == b => {
                let two = self.number(2.0);
                let twice = self.product(two, grad);
                let part = self.product(twice, a);
                self.add(node, a, part);
            }
            Node::Binary(binary, a, b) => {
                let (part_a, part_b) = match binary {
                    Binary::Add => (grad, grad),
                    Binary::Subtract => (grad, self.negated(grad)),
                    Binary::Multiply => (self.product(grad, b), self.product(grad, a)),
                    Binary::Divide => {
                        let share = self.graph.binary(Binary::Divide, grad, b);
                        let other = self.product(share, node);
                        (share, self.negated(other))
                    }
                };
                self.add(node, a, part_a);
                self.add(node, b, part_b);
            }
            Node::Where(condition, positive, otherwise) => {
                let zero = self.graph.node(Node::Number(0.0));
                let part = self.graph.node(Node::Where(condition, grad, zero));
                self.add(node, positive, part);
                let part = self.graph.node(Node::Where(condition, zero, grad));
                self.add(node, otherwise, part);
            }
            Node::Sum(a) => {
                let row = self.graph.kind(a) == Kind::Row;
                let part = if row { grad } else { self.times_width(grad) };
                self.add(node, a, part);
            }
            Node::Query | Node::Key | Node::Parameter(_) | Node::Number(_) | Node::Width => {}
        }
    }

    fn unary(&mut self, unary: Unary, a: usize, value: usize, grad: usize) -> usize {
        match unary {
            Unary::Negate => self.negated(grad),
            Unary::Sqrt => {
                // A norm has no slope at 0; 0 is taken for it.
                let half = self.number(0.5);
                let slope = self.graph.unary(Unary::ReciprocalOrZero, value);
                let slope = self.product(half, slope);
                self.product(grad, slope)
            }
            Unary::Abs => {
                let (one, zero) = (self.number(1.0), self.number(0.0));
                let (minus, mirrored) = (self.number(-1.0), self.negated(a));
                let below = self.graph.node(Node::Where(mirrored, minus, zero));
                let sign = self.graph.node(Node::Where(a, one, below));
                self.product(grad, sign)
            }
            Unary::Exp => self.product(grad, value),
            Unary::Log => self.graph.binary(Binary::Divide, grad, a),
            Unary::Tanh => {
                let one = self.number(1.0);
                let square = self.product(value, value);
                let slope = self.graph.binary(Binary::Subtract, one, square);
                self.product(grad, slope)
            }
            Unary::Sigmoid => {
                let one = self.number(1.0);
                let rest = self.graph.binary(Binary::Subtract, one, value);
                let slope = self.product(value, rest);
                self.product(grad, slope)
            }
            Unary::Relu => {
                let zero = self.number(0.0);
                self.graph.node(Node::Where(a, grad, zero))
            }
            Unary::NormalCdf => {
                // φ(x) = e^{−x²/2} / √(2π)
                let (half, top) = (self.number(-0.5), self.number(0.398_942_280_401_432_7));
                let square = self.product(a, a);
                let exponent = self.product(half, square);
                let bell = self.graph.unary(Unary::Exp, exponent);
                let slope = self.product(top, bell);
                self.product(grad, slope)
            }
            Unary::Softplus => {
                let slope = self.graph.unary(Unary::Sigmoid, a);
                self.product(grad, slope)
            }
            Unary::Sin => {
                let slope = self.graph.unary(Unary::Cos, a);
                self.product(grad, slope)
            }
            Unary::Cos => {
                let sine = self.graph.unary(Unary::Sin, a);
                let part = self.product(grad, sine);
                self.negated(part)
            }
            // Only derivatives have it, and those are not differentiated again.
            Unary::ReciprocalOrZero => grad,
        }
    }

    /// Adds to the derivative by an operand of `node`.
    fn add(&mut self, node: usize, operand: usize, part: usize) {
        let spread = self.graph.kind(node) == Kind::Row && self.graph.kind(operand) == Kind::Number;
        let part = match (spread, self.graph.kind(part)) {
            // One number served every feature, so the features' derivatives are summed.
            (true, Kind::Row) => self.graph.node(Node::Sum(part)),
            (true, Kind::Number) => self.times_width(part),
            (false, _) => part,
        };
        self.by[operand] = Some(match self.by[operand] {
            Some(before) => self.graph.binary(Binary::Add, before, part),
            None => part,
        });
    }

    fn number(&mut self, x: f64) -> usize {
        self.graph.node(Node::Number(x))
    }

    fn negated(&mut self, a: usize) -> usize {
        match self.graph.nodes()[a] {
            Node::Unary(Unary::Negate, inner) => inner,
            _ => self.graph.unary(Unary::Negate, a),
        }
    }

    fn product(&mut self, a: usize, b: usize) -> usize {
        let one = Node::Number(1.0);
        match (self.graph.nodes()[a], self.graph.nodes()[b]) {
            (x, _) if x == one => b,
            (_, y) if y == one => a,
            _ => self.graph.binary(Binary::Multiply, a, b),
        }
    }

    fn times_width(&mut self, a: usize) -> usize {
        let width = self.graph.node(Node::Width);
        self.product(a, width)
    }
}
