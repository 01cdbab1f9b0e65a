//! The tree of an expression, as it was written.

/// A part of an expression; parts name their parts by where they stand in the list of all, which
/// has every part after its own parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Term {
    Query,
    Key,
    /// By its number in order of first appearance.
    Parameter(usize),
    Number(f64),
    /// `d`
    Width,
    /// `pi`
    Pi,
    Negate(usize),
    Operation(Operation, usize, usize),
    /// The second part is the first again where the function takes one.
    Call(Function, usize, usize),
}

/// What stands between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// a @ b = sum(a * b)
    Dot,
}

impl Operation {
    pub(super) fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Dot => '@',
        }
    }
}

macro_rules! functions {
    ($($name:literal $variant:ident $arguments:literal,)*) => {
        /// A function by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Function {
            $($variant,)*
        }

        impl Function {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// How many arguments it takes.
            pub(super) fn arguments(self) -> usize {
                match self {
                    $(Self::$variant => $arguments,)*
                }
            }
        }
    };
}

functions! {
    "sum" Sum 1,
    "mean" Mean 1,
    "norm" Norm 1,
    "square" Square 1,
    "sqrt" Sqrt 1,
    "abs" Abs 1,
    "exp" Exp 1,
    "log" Log 1,
    "tanh" Tanh 1,
    "sigmoid" Sigmoid 1,
    "relu" Relu 1,
    "leaky_relu" LeakyRelu 2,
    "gelu" Gelu 1,
    "softplus" Softplus 1,
    "sin" Sin 1,
    "cos" Cos 1,
    "max" Max 2,
    "min" Min 2,
}

impl Function {
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// Whether it makes one number of a row.
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::Sum | Self::Mean | Self::Norm)
    }

    /// The function whose name is nearest to a misspelled one.
    pub(super) fn nearest(name: &str) -> Self {
        let distance = |function: &&Self| edits(name, function.name());
        Self::ALL.iter().min_by_key(distance).copied().unwrap_or(Self::Sum)
    }
}

/// How many letters must be added, taken, changed or swapped with their neighbor to make one word
/// of another.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let same = usize::from(a[i - 1] != b[j - 1]);
                    let mut least = (table[i - 1][j - 1] + same)
                        .min(table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(table[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    table[a.len()][b.len()]
}
