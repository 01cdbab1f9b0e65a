//! Which side of an operation has which type.

use regard_tensor::{Result, Tensor, ensure};

/// Refuses numbers of another type than a parameter's, saying which is which.
pub(crate) fn check(layer: &str, name: &str, x: &Tensor, of: &str, own: &Tensor) -> Result<()> {
    let (given, own) = (x.dtype(), own.dtype());
    ensure!(
        given == own,
        "{layer}: {name} is {given}, {of} is {own}; they want one type, and to_dtype converts"
    );
    Ok(())
}
