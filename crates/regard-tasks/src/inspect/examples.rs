//! Some examples of a part, each asked for alone.

use super::places::{AT_ONCE, BLOCK};
use crate::task::input::Input;
use crate::task::model::Model;
use crate::task::part::Part;
use regard_data::Result;

/// Asks about examples of a part, one after the other.
pub(super) fn each(
    model: &dyn Model,
    part: Part,
    places: &[usize],
    mut ask: impl FnMut(usize, &Input) -> Result<()>,
) -> Result<()> {
    for some in places.chunks(BLOCK * AT_ONCE) {
        let inputs: Vec<Input> = some.iter().map(|&at| Input::example(part, at)).collect();
        // Asked for together, they are read once, and remembered for what follows.
        model.predict(&inputs)?;
        for (&at, input) in some.iter().zip(&inputs) {
            ask(at, input)?;
        }
    }
    Ok(())
}
