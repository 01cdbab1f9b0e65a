//! From an expression's graph to the instructions of `strip.rs`.
//!
//! Values that are one number for a pair are computed once for a strip, values that are rows once
//! for each feature. Whatever needs a finished sum over the features runs in a later walk over
//! them; a row that is needed again there is computed again, since keeping it would take a strip of
//! memory for each feature. Products that are only summed become one instruction with their sum.

use super::BLOCK;
use super::strip::{Base, Extent, Instruction, Op, Place, STRIP};
use crate::expression::{Binary, Graph, Kind, Node, Unary};
use std::collections::HashMap;

/// How the pairs of a strip lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum Arrangement {
    /// Some keys against a block of queries.
    Tile,
    /// A pair for each lane: its query's and its key's row are both columns.
    List,
}

/// Where a parameter stands among the numbers of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) struct Slot {
    pub(in crate::cpu) offset: usize,
    pub(in crate::cpu) kind: Kind,
}

/// What a program is run for; the nodes are the graph's.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) enum Output {
    Score(usize),
    QueryGrads(usize),
    KeyGrads(usize),
    ParameterGrads(usize, Slot),
}

/// Instructions for one strip, in the order in which they run.
#[derive(Clone, Debug)]
pub(in crate::cpu) struct Program {
    pub(in crate::cpu) sections: Vec<Section>,
    /// Numbers in [`Base::Rows`] and [`Base::Pairs`].
    pub(in crate::cpu) rows: usize,
    pub(in crate::cpu) pairs: usize,
}

/// Instructions that run once, then a walk over the features.
#[derive(Clone, Debug, Default)]
pub(in crate::cpu) struct Section {
    pub(in crate::cpu) once: Vec<Instruction>,
    pub(in crate::cpu) each_feature: Vec<Instruction>,
}

/// What a program is made from.
pub(in crate::cpu) struct Source<'a> {
    pub(in crate::cpu) graph: &'a Graph,
    pub(in crate::cpu) arrangement: Arrangement,
    pub(in crate::cpu) parameters: &'a [Slot],
    /// The head width.
    pub(in crate::cpu) width: usize,
}

impl Program {
    pub(in crate::cpu) fn new(source: &Source, outputs: &[Output]) -> Self {
        let mut builder =
            Builder { source, steps: Vec::new(), of_node: HashMap::new(), splats: HashMap::new() };
        for node in needed(source.graph, outputs) {
            builder.node(node);
        }
        for &output in outputs {
            builder.output(output);
        }
        schedule(&builder.steps)
    }

    /// Whether nothing is computed.
    pub(in crate::cpu) fn is_empty(&self) -> bool {
        self.sections.iter().all(|x| x.once.is_empty() && x.each_feature.is_empty())
    }
}

/// The nodes that outputs are computed from, in order.
fn needed(graph: &Graph, outputs: &[Output]) -> Vec<usize> {
    let nodes = graph.nodes();
    let mut needed = vec![false; nodes.len()];
    for output in outputs {
        match *output {
            Output::Score(node)
            | Output::QueryGrads(node)
            | Output::KeyGrads(node)
            | Output::ParameterGrads(node, _) => needed[node] = true,
        }
    }
    for at in (0..nodes.len()).rev() {
        if needed[at] {
            operands(graph, at).into_iter().flatten().for_each(|operand| needed[operand] = true);
        }
    }
    (0..nodes.len()).filter(|&at| needed[at]).collect()
}

/// What a node's instruction reads: a sum of products reads the factors.
fn operands(graph: &Graph, at: usize) -> [Option<usize>; 3] {
    match graph.nodes()[at] {
        Node::Unary(_, a) => [Some(a), None, None],
        Node::Binary(_, a, b) => [Some(a), Some(b), None],
        Node::Where(a, b, c) => [Some(a), Some(b), Some(c)],
        Node::Sum(a) => match graph.nodes()[a] {
            Node::Binary(Binary::Multiply, a, b) => [Some(a), Some(b), None],
            _ => [Some(a), None, None],
        },
        _ => [None; 3],
    }
}

/// An instruction whose places are not yet known.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// None where the value stands somewhere already.
    op: Option<Op>,
    kind: Kind,
    extent: Extent,
    operands: [Option<usize>; 3],
    /// Where it stands, or is written to, if that is given.
    place: Option<Place>,
    /// Which walk over the features it belongs to, or comes before.
    stage: usize,
}

impl Step {
    fn sums(&self) -> bool {
        self.op.is_some_and(sums)
    }
}

struct Builder<'a> {
    source: &'a Source<'a>,
    steps: Vec<Step>,
    of_node: HashMap<usize, usize>,
    /// Pairs' copies of what keys have.
    splats: HashMap<usize, usize>,
}

impl Builder<'_> {
    fn node(&mut self, at: usize) {
        let graph = self.source.graph;
        let column = |base| Place { base, offset: 0, feature: BLOCK, row: 0 };
        let leaf = |op, kind, extent, place| Step {
            op,
            kind,
            extent,
            operands: [None; 3],
            place,
            stage: 0,
        };
        let keys = match self.source.arrangement {
            Arrangement::Tile => Extent::Keys,
            Arrangement::List => Extent::Queries,
        };
        let number = |x| leaf(Some(Op::Number(x)), Kind::Number, Extent::Uniform, None);
        let step = match graph.nodes()[at] {
            Node::Query => leaf(None, Kind::Row, Extent::Queries, Some(column(Base::Queries))),
            Node::Key => leaf(None, Kind::Row, keys, Some(column(Base::Keys))),
            Node::Parameter(n) => {
                let Slot { offset, kind } = self.source.parameters[n];
                let feature = usize::from(kind == Kind::Row);
                let place = Place { base: Base::Parameters, offset, feature, row: 0 };
                self.steps.push(leaf(None, kind, Extent::Uniform, Some(place)));
                let operands = [Some(self.steps.len() - 1), None, None];
                Step { operands, ..leaf(Some(Op::Spread), kind, Extent::Uniform, None) }
            }
            Node::Number(x) => number(x),
            Node::Width => number(self.source.width as f64),
            Node::Unary(unary, _) => self.elementwise(at, unary_op(unary)),
            Node::Binary(binary, ..) => self.elementwise(at, binary_op(binary)),
            Node::Where(..) => self.elementwise(at, Op::Where),
            Node::Sum(_) => {
                let product = operands(graph, at)[1].is_some();
                self.elementwise(at, if product { Op::AccumulateProduct } else { Op::Accumulate })
            }
        };
        self.steps.push(step);
        self.of_node.insert(at, self.steps.len() - 1);
    }

    fn elementwise(&mut self, at: usize, op: Op) -> Step {
        let operands =
            operands(self.source.graph, at).map(|node| node.map(|node| self.of_node[&node]));
        let extent = operands
            .iter()
            .flatten()
            .fold(Extent::Uniform, |extent, &step| join(extent, self.steps[step].extent));
        let (op, operands) = match with_key(op, &operands, |step| self.steps[step].extent) {
            Some(keyed) if extent == Extent::Pairs => keyed,
            _ => (op, operands.map(|step| step.map(|step| self.fitting(step, extent)))),
        };
        let sums = sums(op);
        let stage = self.stage(&operands) + usize::from(sums);
        let kind = self.source.graph.kind(at);
        Step { op: Some(op), kind, extent, operands, place: None, stage }
    }

    /// A value as an operation of this extent reads it: what keys have must be spread over their
    /// queries first.
    fn fitting(&mut self, step: usize, extent: Extent) -> usize {
        if extent != Extent::Pairs || self.steps[step].extent != Extent::Keys {
            return step;
        }
        if let Some(&splat) = self.splats.get(&step) {
            return splat;
        }
        self.steps.push(Step {
            op: Some(Op::Splat),
            extent: Extent::Pairs,
            operands: [Some(step), None, None],
            place: None,
            ..self.steps[step]
        });
        self.splats.insert(step, self.steps.len() - 1);
        self.steps.len() - 1
    }

    fn stage(&self, operands: &[Option<usize>; 3]) -> usize {
        operands.iter().flatten().map(|&step| self.steps[step].stage).max().unwrap_or(0)
    }

    fn output(&mut self, output: Output) {
        let all = match self.source.arrangement {
            Arrangement::Tile => Extent::Pairs,
            Arrangement::List => Extent::Queries,
        };
        let column = |base| Place { base, offset: 0, feature: BLOCK, row: 0 };
        let tile = Place { base: Base::Tile, offset: 0, feature: 0, row: BLOCK };
        let (node, op, kind, place) = match output {
            Output::Score(node) => (node, Op::Copy, Kind::Number, tile),
            Output::QueryGrads(node) => (node, Op::AddQueries, Kind::Row, column(Base::QueryGrads)),
            Output::KeyGrads(node) => {
                let op = match self.source.arrangement {
                    Arrangement::Tile => Op::AddKeys,
                    Arrangement::List => Op::AddQueries,
                };
                (node, op, Kind::Row, column(Base::KeyGrads))
            }
            Output::ParameterGrads(node, Slot { offset, kind }) => {
                let feature = usize::from(kind == Kind::Row);
                let place = Place { base: Base::ParameterGrads, offset, feature, row: 0 };
                (node, Op::AddAll, kind, place)
            }
        };
        let mut operands = [Some(self.of_node[&node]), None, None];
        operands[0] = operands[0].map(|step| self.fitting(step, all));
        let stage = self.stage(&operands);
        if op != Op::Copy {
            // Gradients are multiplied by what arrives at the scores.
            self.steps.push(Step {
                op: None,
                kind: Kind::Number,
                extent: all,
                operands: [None; 3],
                place: Some(tile),
                stage: 0,
            });
            operands[1] = Some(self.steps.len() - 1);
        }
        self.steps.push(Step {
            op: Some(op),
            kind,
            extent: all,
            operands,
            place: Some(place),
            stage,
        });
    }
}

/// Whether an operation adds up over the features.
fn sums(op: Op) -> bool {
    matches!(op, Op::Accumulate | Op::AccumulateProduct | Op::AccumulateKeyProduct)
}

/// The operation that reads one of two operands as keys have it, and which operand that is second.
fn with_key(
    op: Op,
    operands: &[Option<usize>; 3],
    extent: impl Fn(usize) -> Extent,
) -> Option<(Op, [Option<usize>; 3])> {
    let &[Some(a), Some(b), None] = operands else { return None };
    let (first, second) = match op {
        Op::Add => (Op::AddKey, Op::AddKey),
        Op::Subtract => (Op::SubtractFromKey, Op::SubtractKey),
        Op::Multiply => (Op::MultiplyKey, Op::MultiplyKey),
        Op::AccumulateProduct => (Op::AccumulateKeyProduct, Op::AccumulateKeyProduct),
        _ => return None,
    };
    match (extent(a), extent(b)) {
        (Extent::Keys, Extent::Keys) => None,
        (Extent::Keys, _) => Some((first, [Some(b), Some(a), None])),
        (_, Extent::Keys) => Some((second, [Some(a), Some(b), None])),
        _ => None,
    }
}

fn join(a: Extent, b: Extent) -> Extent {
    match (a, b) {
        (Extent::Uniform, other) | (other, Extent::Uniform) => other,
        (a, b) if a == b => a,
        _ => Extent::Pairs,
    }
}

fn unary_op(unary: Unary) -> Op {
    match unary {
        Unary::Negate => Op::Negate,
        Unary::Sqrt => Op::Sqrt,
        Unary::Abs => Op::Abs,
        Unary::Exp => Op::Exp,
        Unary::Log => Op::Log,
        Unary::Tanh => Op::Tanh,
        Unary::Sigmoid => Op::Sigmoid,
        Unary::Relu => Op::Relu,
        Unary::NormalCdf => Op::NormalCdf,
        Unary::Softplus => Op::Softplus,
        Unary::Sin => Op::Sin,
        Unary::Cos => Op::Cos,
        Unary::ReciprocalOrZero => Op::ReciprocalOrZero,
    }
}

fn binary_op(binary: Binary) -> Op {
    match binary {
        Binary::Add => Op::Add,
        Binary::Subtract => Op::Subtract,
        Binary::Multiply => Op::Multiply,
        Binary::Divide => Op::Divide,
    }
}

/// Puts the steps in their sections and their values in memory.
fn schedule(steps: &[Step]) -> Program {
    let stages = steps.iter().map(|step| step.stage).max().unwrap_or(0) + 1;
    let mut sections = vec![Section::default(); stages];
    let mut rooms = Rooms { places: vec![None; steps.len()], ..Rooms::default() };
    // Numbers have their place for the whole strip.
    for (at, step) in steps.iter().enumerate() {
        rooms.places[at] = match step.place {
            Some(place) => Some(place),
            None if step.kind == Kind::Number => Some(rooms.take(step.extent)),
            None => None,
        };
    }
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.kind == Kind::Number) {
        if step.sums() {
            let zero = Step { op: Some(Op::Number(0.0)), operands: [None; 3], ..*step };
            sections[step.stage - 1].once.extend(rooms.instruction(&zero, at));
        } else {
            sections[step.stage].once.extend(rooms.instruction(step, at));
        }
    }
    let kept = rooms.used;
    for (stage, section) in sections.iter_mut().enumerate() {
        rooms.used = kept;
        rooms.free = [Vec::new(), Vec::new()];
        walk(steps, stage, &mut rooms, &mut section.each_feature);
    }
    Program { sections, rows: rooms.most[0] * BLOCK, pairs: rooms.most[1] * STRIP * BLOCK }
}

/// The instructions of one walk over the features: the sums and results that belong to it, and the
/// rows they are computed from.
fn walk(steps: &[Step], stage: usize, rooms: &mut Rooms, to: &mut Vec<Instruction>) {
    let mut last_use = vec![None; steps.len()];
    for (at, step) in steps.iter().enumerate().rev() {
        let result = step.place.is_some() && step.op.is_some();
        let here = if step.sums() {
            step.stage == stage + 1
        } else if result {
            step.kind == Kind::Row && step.stage == stage
        } else {
            step.kind == Kind::Row && last_use[at].is_some()
        };
        if here {
            last_use[at].get_or_insert(at);
            for &operand in step.operands.iter().flatten() {
                last_use[operand].get_or_insert(at);
            }
        }
    }
    for (at, step) in steps.iter().enumerate() {
        let runs = last_use[at].is_some() && (step.kind == Kind::Row || step.sums());
        if !runs || (step.sums() && step.stage != stage + 1) {
            continue;
        }
        // An operation reads before it writes, number by number, so what is read for the last time
        // makes room for the result.
        for (n, &operand) in step.operands.iter().flatten().enumerate() {
            let again = step.operands[..n].contains(&Some(operand));
            let temporary = steps[operand].kind == Kind::Row && steps[operand].place.is_none();
            if last_use[operand] == Some(at) && temporary && !again {
                rooms.give(operand);
            }
        }
        if step.kind == Kind::Row && step.place.is_none() {
            rooms.places[at] = Some(rooms.take(step.extent));
        }
        to.extend(rooms.instruction(step, at));
    }
}

/// Where values stand: [values of any extent but pairs', values of pairs].
#[derive(Default)]
struct Rooms {
    places: Vec<Option<Place>>,
    used: [usize; 2],
    most: [usize; 2],
    free: [Vec<usize>; 2],
}

impl Rooms {
    fn take(&mut self, extent: Extent) -> Place {
        let pairs = extent == Extent::Pairs;
        let class = usize::from(pairs);
        let slot = self.free[class].pop().unwrap_or_else(|| {
            self.used[class] += 1;
            self.used[class] - 1
        });
        self.most[class] = self.most[class].max(self.used[class]);
        if pairs {
            Place { base: Base::Pairs, offset: slot * STRIP * BLOCK, feature: 0, row: BLOCK }
        } else {
            Place { base: Base::Rows, offset: slot * BLOCK, feature: 0, row: 0 }
        }
    }

    fn give(&mut self, at: usize) {
        match self.places[at] {
            Some(Place { base: Base::Pairs, offset, .. }) => {
                self.free[1].push(offset / (STRIP * BLOCK));
            }
            Some(Place { offset, .. }) => self.free[0].push(offset / BLOCK),
            None => {}
        }
    }

    /// None for what stands somewhere already.
    fn instruction(&self, step: &Step, at: usize) -> Option<Instruction> {
        let op = step.op?;
        let to = self.places[at]?;
        let operand = |n: usize| step.operands[n].and_then(|step| self.places[step]).unwrap_or(to);
        // A sum's third operand is the sum so far.
        Some(Instruction {
            op,
            extent: step.extent,
            to,
            a: operand(0),
            b: operand(1),
            c: operand(2),
        })
    }
}
