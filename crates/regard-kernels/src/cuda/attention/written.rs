//! A score written as an expression, as CUDA text.
//!
//! What is one number for a pair is a variable; what is a row is computed where a lane has its
//! features. A sum over the features is a loop and a sum over the warp, and what depends on sums waits
//! for them: the loops come level by level, each computing again what it needs of the rows.

use crate::Expression;
use crate::expression::{Binary, Graph, Kind, Node, Unary};
use std::fmt::Write;

/// `struct Own` and `struct Score` for an expression with parameters of these kinds.
pub(in crate::cuda) fn score(expression: &Expression, parameters: &[Kind]) -> String {
    let mut graph = expression.graph(parameters);
    let derivatives = graph.differentiate();
    let writer = Writer { levels: levels(&graph), graph };
    let row = |n: &usize| parameters[*n] == Kind::Row;
    let all = || 0..parameters.len();
    let rows = all().filter(row).count();
    let mut text =
        format!("\n#define OWN_WIDTH(p) ({rows} * (p).width + {})\n", all().len() - rows);

    text += "struct Own {\n";
    for n in all() {
        let _ = writeln!(text, "    T p{n}{};", if row(&n) { "[CHUNKS]" } else { "" });
    }
    text += "    __device__ void clear() {\n";
    for n in all() {
        text += &match row(&n) {
            true => format!("        EACH(c) p{n}[c] = 0;\n"),
            false => format!("        p{n} = 0;\n"),
        };
    }
    text += "    }\n    __device__ void store(const Problem &p, T *slab, int lane) const {\n";
    for n in all() {
        text += &match row(&n) {
            true => format!(
                "        EACH(c) if (lane + WARP * c < p.width) slab[lane + WARP * c] = p{n}[c];\n        \
                 slab += p.width;\n"
            ),
            false => format!("        if (lane == 0) slab[0] = p{n};\n        slab += 1;\n"),
        };
    }
    text += "    }\n};\n\nstruct Score {\n    i64 width;\n    int lane;\n";
    for n in all() {
        let _ = writeln!(text, "    T p{n}{};", if row(&n) { "[CHUNKS]" } else { "" });
    }
    text +=
        "    __device__ Score(const Problem &p, i64 h, int lane) : width(p.width), lane(lane) {\n";
    for n in all() {
        let from = format!("p.parameters[{n}].data + h * p.parameters[{n}].head");
        text += &match row(&n) {
            true => format!(
                "        EACH(c) p{n}[c] = lane + WARP * c < width ? ({from})[lane + WARP * c] : (T)0;\n"
            ),
            false => format!("        p{n} = *({from});\n"),
        };
    }
    let rows = "const T (&q)[CHUNKS], const T (&k)[CHUNKS]";
    let _ = writeln!(text, "    }}\n    __device__ T of({rows}) const {{");
    text += &writer.numbers(&[writer.graph.score()]);
    let _ = writeln!(text, "        return n{};\n    }}", writer.graph.score());

    let _ = writeln!(
        text,
        "    __device__ void by_query({rows}, T grad, T (&gq)[CHUNKS], Own &own) const {{"
    );
    let mut to: Vec<(String, usize)> = Vec::new();
    to.extend(derivatives.q.map(|node| ("gq[c]".into(), node)));
    let mut alone: Vec<(String, usize)> = Vec::new();
    for n in all() {
        let Some(node) = derivatives.parameters[n] else { continue };
        match row(&n) {
            true => to.push((format!("own.p{n}[c]"), node)),
            false => alone.push((format!("own.p{n}"), node)),
        }
    }
    text += &writer.gradients(&to, &alone);
    let _ = writeln!(
        text,
        "    }}\n    __device__ void by_key({rows}, T grad, T (&gk)[CHUNKS]) const {{"
    );
    let to: Vec<(String, usize)> =
        derivatives.k.into_iter().map(|node| ("gk[c]".to_string(), node)).collect();
    text += &writer.gradients(&to, &[]);
    text += "    }\n};\n\n";
    text
}

struct Writer {
    graph: Graph,
    /// How many sums, one within the other, a node waits for.
    levels: Vec<usize>,
}

fn operands(node: Node) -> Vec<usize> {
    match node {
        Node::Unary(_, a) | Node::Sum(a) => vec![a],
        Node::Binary(_, a, b) => vec![a, b],
        Node::Where(a, b, c) => vec![a, b, c],
        _ => Vec::new(),
    }
}

fn levels(graph: &Graph) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::new();
    for &node in graph.nodes() {
        let within = operands(node).into_iter().map(|n| levels[n]).max().unwrap_or(0);
        levels.push(within + usize::from(matches!(node, Node::Sum(_))));
    }
    levels
}

impl Writer {
    /// The nodes that these are computed from, themselves included, in order; rows only through
    /// rows where `through_numbers` is not set.
    fn needed(&self, roots: &[usize], through_numbers: bool) -> Vec<usize> {
        let mut needed = vec![false; self.graph.nodes().len()];
        for &root in roots {
            needed[root] = true;
        }
        for n in (0..needed.len()).rev().filter(|&n| through_numbers || self.is_row(n)) {
            if needed[n] {
                operands(self.graph.nodes()[n]).into_iter().for_each(|a| needed[a] = true);
            }
        }
        (0..needed.len()).filter(|&n| needed[n]).collect()
    }

    fn is_row(&self, node: usize) -> bool {
        self.graph.kind(node) == Kind::Row
    }

    /// Every number that these nodes need, level by level.
    fn numbers(&self, roots: &[usize]) -> String {
        let needed = self.needed(roots, true);
        let last = needed.iter().map(|&n| self.levels[n]).max().unwrap_or(0);
        let mut text = String::new();
        for level in 0..=last {
            for &n in needed.iter().filter(|&&n| self.levels[n] == level && !self.is_row(n)) {
                if !matches!(self.graph.nodes()[n], Node::Sum(_)) {
                    let _ = writeln!(text, "        const T n{n} = {};", self.value(n));
                }
            }
            let sums: Vec<(usize, usize)> = needed
                .iter()
                .filter_map(|&n| match self.graph.nodes()[n] {
                    Node::Sum(a) if self.levels[a] == level => Some((n, a)),
                    _ => None,
                })
                .collect();
            for &(n, a) in sums.iter().filter(|&&(_, a)| !self.is_row(a)) {
                let _ = writeln!(text, "        const T n{n} = n{a} * (T)width;");
            }
            let sums: Vec<(usize, usize)> =
                sums.into_iter().filter(|&(_, a)| self.is_row(a)).collect();
            if sums.is_empty() {
                continue;
            }
            for (n, _) in &sums {
                let _ = writeln!(text, "        T n{n} = 0;");
            }
            let rows: Vec<usize> = sums.iter().map(|&(_, a)| a).collect();
            text += &self.loop_over_features(&rows, &|text| {
                for (n, a) in &sums {
                    let _ = writeln!(text, "            n{n} += {};", self.name(*a));
                }
            });
            for (n, _) in &sums {
                let _ = writeln!(text, "        n{n} = warp_sum(n{n});");
            }
        }
        text
    }

    /// Adds grad times each derivative to where it belongs: rows, and numbers alone.
    fn gradients(&self, rows: &[(String, usize)], alone: &[(String, usize)]) -> String {
        let roots: Vec<usize> = rows.iter().chain(alone).map(|&(_, node)| node).collect();
        let mut text = self.numbers(&roots);
        for (to, node) in alone {
            let _ = writeln!(text, "        {to} += grad * n{node};");
        }
        if !rows.is_empty() {
            let nodes: Vec<usize> = rows.iter().map(|&(_, node)| node).collect();
            text += &self.loop_over_features(&nodes, &|text| {
                for (to, node) in rows {
                    let _ = writeln!(text, "            {to} += grad * {};", self.name(*node));
                }
            });
        }
        text
    }

    /// A loop in which these rows are known.
    fn loop_over_features(&self, rows: &[usize], body: &dyn Fn(&mut String)) -> String {
        let mut text = String::from("        EACH(c) if (lane + WARP * c < width) {\n");
        for n in self.needed(rows, false).into_iter().filter(|&n| self.is_row(n)) {
            if !self.is_leaf(n) {
                let _ = writeln!(text, "            const T r{n} = {};", self.value(n));
            }
        }
        body(&mut text);
        text += "        }\n";
        text
    }

    fn is_leaf(&self, node: usize) -> bool {
        matches!(self.graph.nodes()[node], Node::Query | Node::Key | Node::Parameter(_))
    }

    /// What a node is called where it is used.
    fn name(&self, node: usize) -> String {
        match self.graph.nodes()[node] {
            Node::Query => "q[c]".into(),
            Node::Key => "k[c]".into(),
            Node::Parameter(n) if self.is_row(node) => format!("p{n}[c]"),
            _ if self.is_row(node) => format!("r{node}"),
            _ => format!("n{node}"),
        }
    }

    /// What a node is.
    fn value(&self, node: usize) -> String {
        let x = |n: usize| self.name(n);
        match self.graph.nodes()[node] {
            Node::Number(x) if x.is_infinite() => {
                if x > 0.0 {
                    "-NEG_INF".into()
                } else {
                    "NEG_INF".into()
                }
            }
            Node::Number(x) => format!("(T){x:?}"),
            Node::Width => "(T)width".into(),
            Node::Parameter(n) => format!("p{n}"),
            Node::Binary(binary, a, b) => {
                let sign = match binary {
                    Binary::Add => '+',
                    Binary::Subtract => '-',
                    Binary::Multiply => '*',
                    Binary::Divide => '/',
                };
                format!("{} {sign} {}", x(a), x(b))
            }
            Node::Where(a, b, c) => format!("{} > 0 ? {} : {}", x(a), x(b), x(c)),
            Node::Unary(unary, a) => unary_text(unary, &x(a)),
            Node::Query | Node::Key | Node::Sum(_) => x(node),
        }
    }
}

fn unary_text(unary: Unary, x: &str) -> String {
    match unary {
        Unary::Negate => format!("-{x}"),
        Unary::Sqrt => format!("sqrt({x})"),
        Unary::Abs => format!("fabs({x})"),
        Unary::Exp => format!("exp({x})"),
        Unary::Log => format!("log({x})"),
        Unary::Tanh => format!("tanh({x})"),
        Unary::Sigmoid => format!("1 / (1 + exp(-{x}))"),
        Unary::Relu => format!("{x} <= 0 ? (T)0 : {x}"),
        Unary::NormalCdf => format!("(T)0.5 * (1 + erf({x} * (T)0.70710678118654752440))"),
        Unary::Softplus => format!("({x} > 0 ? {x} : (T)0) + log1p(exp(-fabs({x})))"),
        Unary::Sin => format!("sin({x})"),
        Unary::Cos => format!("cos({x})"),
        Unary::ReciprocalOrZero => format!("{x} > 0 ? 1 / {x} : (T)0"),
    }
}
