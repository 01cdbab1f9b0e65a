//! README's own program. Beside it, in `bin`, stands every example of the crate `regard`.

fn main() -> Result<(), regard::Error> {
    include!(concat!(env!("OUT_DIR"), "/readme.rs"))
}
