//! An expression as a graph of few plain operations, equal parts shared.
//!
//! It knows nothing of how it is run: the CPU evaluates it over strips of pairs, another backend
//! may print it as code.

use super::Kind;
use super::term::{Function, Operation, Term};
use std::collections::HashMap;

/// One operation; operands are named by their place in [`Graph::nodes`], before its own.
///
/// ```
/// use regard_kernels::{Expression, Node};
/// let graph = Expression::parse("sum(q * k)").unwrap().graph(&[]);
/// assert_eq!(graph.nodes()[..2], [Node::Query, Node::Key]);
/// assert!(matches!(graph.nodes()[graph.score()], Node::Sum(2)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Node {
    /// The query's row.
    Query,
    /// The key's row.
    Key,
    /// A parameter, by its number in order of first appearance.
    Parameter(usize),
    /// A constant.
    Number(f64),
    /// The head width.
    Width,
    /// A function of one operand, feature by feature.
    Unary(Unary, usize),
    /// An operation on two operands, feature by feature.
    Binary(Binary, usize, usize),
    /// Feature by feature: the second operand where the first is > 0, else the third.
    Where(usize, usize, usize),
    /// The sum over the features; of one number, that number as often as a head is wide.
    Sum(usize),
}

/// A function of one operand.
///
/// ```
/// use regard_kernels::expression::{Expression, Node, Unary};
/// let graph = Expression::parse("sum(tanh(q))").unwrap().graph(&[]);
/// assert!(graph.nodes().contains(&Node::Unary(Unary::Tanh, 0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unary {
    /// −x
    Negate,
    /// √x
    Sqrt,
    /// |x|
    Abs,
    /// eˣ
    Exp,
    /// Natural logarithm.
    Log,
    /// tanh x
    Tanh,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// max(x, 0); NaN stays.
    Relu,
    /// Φ(x), the normal distribution's share below x.
    NormalCdf,
    /// log(1 + eˣ), without overflow.
    Softplus,
    /// sin x
    Sin,
    /// cos x
    Cos,
    /// 1 / x where x > 0, else 0: the slope of a norm.
    ReciprocalOrZero,
}

/// An operation on two operands.
///
/// ```
/// use regard_kernels::expression::{Binary, Expression, Node};
/// let graph = Expression::parse("sum(q - k)").unwrap().graph(&[]);
/// assert!(graph.nodes().contains(&Node::Binary(Binary::Subtract, 0, 1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binary {
    /// a + b
    Add,
    /// a − b
    Subtract,
    /// a · b
    Multiply,
    /// a / b
    Divide,
}

/// The operations of one expression, each after its operands, no two equal.
///
/// ```
/// use regard_kernels::{Expression, Kind, Node};
/// let expression = Expression::parse("sum(w * tanh(q + k))").unwrap();
/// let graph = expression.graph(&[Kind::Row]);
/// assert_eq!(graph.nodes().len(), 7);
/// assert!(matches!(graph.nodes()[graph.score()], Node::Sum(_)));
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    kinds: Vec<Kind>,
    parameters: Vec<Kind>,
    score: usize,
    known: HashMap<Name, usize>,
}

/// A node as a key: which operation, its operands or a number's bits.
type Name = (u8, [u64; 3]);

impl Graph {
    pub(super) fn of(terms: &[Term], parameters: &[Kind]) -> Self {
        let mut graph = Self {
            nodes: Vec::new(),
            kinds: Vec::new(),
            parameters: parameters.to_vec(),
            score: 0,
            known: HashMap::new(),
        };
        let mut places = Vec::with_capacity(terms.len());
        for &term in terms {
            let at = graph.term(term, &places);
            places.push(at);
        }
        graph.score = places.last().copied().unwrap_or_default();
        graph
    }

    /// All operations, each after its operands.
    ///
    /// ```
    /// use regard_kernels::{Expression, Node};
    /// let graph = Expression::parse("q @ q").unwrap().graph(&[]);
    /// assert_eq!(graph.nodes().len(), 3); // q, its square feature by feature, and the sum
    /// ```
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The kind of a node.
    ///
    /// ```
    /// use regard_kernels::{Expression, Kind};
    /// let graph = Expression::parse("q @ k").unwrap().graph(&[]);
    /// assert_eq!((graph.kind(0), graph.kind(graph.score())), (Kind::Row, Kind::Number));
    /// ```
    pub fn kind(&self, node: usize) -> Kind {
        self.kinds[node]
    }

    /// The node that is the score.
    ///
    /// ```
    /// use regard_kernels::Expression;
    /// let graph = Expression::parse("q @ k / 2").unwrap().graph(&[]);
    /// assert!(graph.score() < graph.nodes().len());
    /// ```
    pub fn score(&self) -> usize {
        self.score
    }

    pub(super) fn parameters(&self) -> usize {
        self.parameters.len()
    }

    fn term(&mut self, term: Term, places: &[usize]) -> usize {
        match term {
            Term::Query => self.node(Node::Query),
            Term::Key => self.node(Node::Key),
            Term::Parameter(n) => self.node(Node::Parameter(n)),
            Term::Number(x) => self.node(Node::Number(x)),
            Term::Width => self.node(Node::Width),
            Term::Pi => self.node(Node::Number(std::f64::consts::PI)),
            Term::Negate(a) => self.unary(Unary::Negate, places[a]),
            Term::Operation(operation, a, b) => {
                let (a, b) = (places[a], places[b]);
                match operation {
                    Operation::Add => self.binary(Binary::Add, a, b),
                    Operation::Subtract => self.binary(Binary::Subtract, a, b),
                    Operation::Multiply => self.binary(Binary::Multiply, a, b),
                    Operation::Divide => self.binary(Binary::Divide, a, b),
                    Operation::Dot => {
                        let products = self.binary(Binary::Multiply, a, b);
                        self.node(Node::Sum(products))
                    }
                }
            }
            Term::Call(function, a, b) => self.call(function, places[a], places[b]),
        }
    }

    fn call(&mut self, function: Function, a: usize, b: usize) -> usize {
        let unary = match function {
            Function::Sqrt => Unary::Sqrt,
            Function::Abs => Unary::Abs,
            Function::Exp => Unary::Exp,
            Function::Log => Unary::Log,
            Function::Tanh => Unary::Tanh,
            Function::Sigmoid => Unary::Sigmoid,
            Function::Relu => Unary::Relu,
            Function::Softplus => Unary::Softplus,
            Function::Sin => Unary::Sin,
            Function::Cos => Unary::Cos,
            Function::Sum => return self.node(Node::Sum(a)),
            Function::Mean => {
                let (sum, width) = (self.node(Node::Sum(a)), self.node(Node::Width));
                return self.binary(Binary::Divide, sum, width);
            }
            Function::Norm => {
                let squares = self.binary(Binary::Multiply, a, a);
                let sum = self.node(Node::Sum(squares));
                return self.unary(Unary::Sqrt, sum);
            }
            Function::Square => return self.binary(Binary::Multiply, a, a),
            Function::Gelu => {
                let share = self.unary(Unary::NormalCdf, a);
                return self.binary(Binary::Multiply, a, share);
            }
            Function::LeakyRelu => {
                let leak = self.binary(Binary::Multiply, a, b);
                return self.node(Node::Where(a, a, leak));
            }
            Function::Max => {
                let more = self.binary(Binary::Subtract, b, a);
                return self.node(Node::Where(more, b, a));
            }
            Function::Min => {
                let less = self.binary(Binary::Subtract, a, b);
                return self.node(Node::Where(less, b, a));
            }
        };
        self.unary(unary, a)
    }

    pub(super) fn unary(&mut self, unary: Unary, a: usize) -> usize {
        self.node(Node::Unary(unary, a))
    }

    pub(super) fn binary(&mut self, binary: Binary, a: usize, b: usize) -> usize {
        let (a, b) = match binary {
            Binary::Add | Binary::Multiply => (a.min(b), a.max(b)),
            Binary::Subtract | Binary::Divide => (a, b),
        };
        self.node(Node::Binary(binary, a, b))
    }

    /// A node, or the one there is already.
    pub(super) fn node(&mut self, node: Node) -> usize {
        if let Some(&at) = self.known.get(&name(node)) {
            return at;
        }
        let kind = match node {
            Node::Query | Node::Key => Kind::Row,
            Node::Parameter(n) => self.parameters[n],
            Node::Number(_) | Node::Width | Node::Sum(_) => Kind::Number,
            Node::Unary(_, a) => self.kinds[a],
            Node::Binary(_, a, b) => self.kinds[a].with(self.kinds[b]),
            Node::Where(a, b, c) => self.kinds[a].with(self.kinds[b]).with(self.kinds[c]),
        };
        self.nodes.push(node);
        self.kinds.push(kind);
        self.known.insert(name(node), self.nodes.len() - 1);
        self.nodes.len() - 1
    }
}

fn name(node: Node) -> Name {
    let at = |n: usize| n as u64;
    match node {
        Node::Query => (0, [0; 3]),
        Node::Key => (1, [0; 3]),
        Node::Parameter(n) => (2, [at(n), 0, 0]),
        Node::Number(x) => (3, [x.to_bits(), 0, 0]),
        Node::Width => (4, [0; 3]),
        Node::Unary(unary, a) => (5, [unary as u64, at(a), 0]),
        Node::Binary(binary, a, b) => (6, [binary as u64, at(a), at(b)]),
        Node::Where(a, b, c) => (7, [at(a), at(b), at(c)]),
        Node::Sum(a) => (8, [at(a), 0, 0]),
    }
}
