//! Only there for its tests: the kernels alone, without the crates above.
