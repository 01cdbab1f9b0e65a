//! What the heads of a trained model are worth, and what they do, over a part of its data; and what
//! is changed of its attention while it is asked.

mod ablation;
mod attribution;
mod change;
mod examples;
mod head_profile;
mod places;
mod row;

pub use ablation::{Ablated, Ablation};
pub use attribution::{Areas, Attribution};
pub use change::{Change, NormalizerName, Unmet, intervention, patch};
pub use head_profile::{Does, HeadProfile, Profile, Strongest};
