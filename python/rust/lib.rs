//! The native half of the Python package `regard`: the attention operator on arrays that are handed
//! over as address, shape and strides; runs, and the training that makes them.
//!
//! What Python code can check cheaply is checked there (types, devices, layouts); what the kernels
//! rely on (bounds, alignment, truth values) is checked here.

mod array;
mod call;
mod edges;
mod failure;
mod gpu;
mod inputs;
mod line;
mod mechanism;
mod model;
mod picture;
mod question;
mod run;
mod threads;
mod training;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::call::{backward, forms, forward};
    #[pymodule_export]
    use super::edges::{Edges, EdgesAt};
    #[pymodule_export]
    use super::mechanism::Mechanism;
    #[pymodule_export]
    use super::picture::{Picture, png};
    #[pymodule_export]
    use super::run::{Run, task_names, task_options};
    #[pymodule_export]
    use super::training::train_run;
    #[pymodule_export]
    use super::{instruction_set, release_memory, use_openmp};
}

/// The name of the instruction set that the kernels use on this machine.
#[pyfunction]
fn instruction_set() -> String {
    format!("{:?}", regard_kernels::Isa::best())
}

/// Gives back the memory that calls keep for the next.
#[pyfunction]
fn release_memory(py: Python<'_>, threads: usize) {
    py.detach(|| threads::release_memory(threads));
}

/// Computes on the threads of the OpenMP library whose `GOMP_parallel` and `omp_get_max_threads` have
/// these addresses and which stays loaded; on a pool of our own where they are 0.
#[pyfunction]
fn use_openmp(parallel: usize, max_threads: usize) {
    // SAFETY: `regard/_openmp.py` looks the addresses up in a library that it keeps.
    unsafe { threads::set_openmp([parallel, max_threads]) }
}
