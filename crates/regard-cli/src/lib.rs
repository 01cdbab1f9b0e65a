//! What the program `regard` does, as functions: the program itself only reads its arguments.
//!
//! | verbs | module |
//! |---|---|
//! | `train`, `eval`, `predict`, `show`, `compare`, `list`, `options`, `init`, `data`, `export`, `import` | [`task`]: arguments, progress and tables around the crate `regard-tasks` |
//! | `attend` | [`attend`], with [`options`], [`inputs`], [`tensors`] and [`limits`]: the operator on safetensors files |
//! | `bench` | [`mod@bench`], with [`cases`], [`steps`], [`matmul`] and [`heap`]: time and memory of the operator and of what else a training step is made of |
//! | `completions`, `man` | [`completions`], [`manual`]: what shells and `man` read of [`program`] |
//! | `info` | [`info`], with [`machine`] and [`bandwidth`]: what this machine has |
//!
//! `regard VERB --help` has the arguments and examples of each. To put attention into a program of
//! your own, use the crate `regard`; this one is a library so that tests and the fuzz target reach
//! the file entrance without a process:
//!
//! ```
//! use regard_cli::attend::attend_bytes;
//! use regard_cli::{options::Options, limits::Limits};
//!
//! let error = attend_bytes(b"no tensors", &Options::default(), Limits::none()).unwrap_err();
//! assert!(error.to_string().contains("header"));
//! ```

pub mod attend;
pub mod bandwidth;
pub mod bench;
pub mod cases;
pub mod closed;
pub mod completions;
mod gpu;
pub mod heap;
pub mod info;
pub mod inputs;
pub mod limits;
pub mod machine;
pub mod manual;
pub mod matmul;
pub mod options;
mod output;
mod parametric;
pub mod program;
pub mod projected;
pub mod sentence;
pub mod steps;
pub mod task;
pub mod tensors;
mod terminal;
