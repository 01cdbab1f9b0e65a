//! Recurrent networks: h_t = f(h_{t−1}, x_t).

mod config;
mod stack;
mod state;

pub use config::RecurrentConfig;
pub use stack::{Recurrent, RecurrentOutput};
pub use state::RecurrentState;
