//! What the program `regard` does, as functions: the program itself only reads its arguments.
//!
//! A library so that tests and the fuzz target reach the file entrance without a process:
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
pub mod heap;
pub mod info;
pub mod inputs;
pub mod limits;
pub mod machine;
pub mod matmul;
pub mod options;
pub mod steps;
pub mod task;
pub mod tensors;
