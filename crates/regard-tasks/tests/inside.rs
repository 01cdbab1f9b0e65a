//! The tests that stand beside what they try, in the sources: these files alone are compiled once
//! more for them, not the whole crate.
#![allow(dead_code, unused_imports, unreachable_pub)] // what a file has for the rest of its crate
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

// What the files name as `crate::…`.
use regard_tasks::*;

#[path = "../src/class_weights.rs"]
mod class_weights;
#[path = "../src/label/encoded_sentence.rs"]
mod encoded_sentence;
#[path = "../src/train/events.rs"]
mod events;
#[path = "../src/image/augmentation.rs"]
mod image_augmentation;
#[path = "../src/picture/mod.rs"]
mod picture;
#[path = "../src/protobuf.rs"]
mod protobuf;
#[path = "../src/components/sound.rs"]
mod sound;
#[path = "../src/transcribe/augmentation.rs"]
mod sound_augmentation;
#[path = "../src/toy/mod.rs"]
mod toy;
