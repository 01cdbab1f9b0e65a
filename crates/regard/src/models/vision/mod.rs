//! Images: attention over patches or single pixels, and a convolutional classifier to compare it
//! with.

mod convolutional;
mod transformer;

pub use convolutional::{ConvolutionalClassifier, ConvolutionalConfig};
pub use transformer::{ImagePooling, VisionTransformer, VisionTransformerConfig};
