//! What one needs to write and train a model of your own, for `use regard::prelude::*`: tensors and parameters,
//! the operator and its choices, and the layers most models are made of. Everything else is imported by name, from
//! [`attention`](crate::attention), [`layers`](crate::layers), [`models`](crate::models) and
//! [`tensor`](crate::tensor).
//!
//! ```
//! use regard::prelude::*;
//! let parameters = Parameters::new(DType::F32, 1);
//! let layer = Linear::new(&parameters, 4, 2, true)?;
//! assert_eq!(layer.forward(&Tensor::zeros(&[3, 4], DType::F32)?)?.shape(), [3, 2]);
//! # Ok::<(), regard::Error>(())
//! ```

pub use crate::Mode;
pub use crate::attention::{
    Attention, Bias, Mask, Mechanism, MechanismConfig, Need, Normalizer, Score, ScoreConfig,
    Weighting,
};
pub use crate::layers::{
    Activation, Embedding, LayerNorm, Linear, MultiHeadAttention, MultiHeadConfig, Position,
    TransformerConfig, TransformerEncoder,
};
pub use regard_tensor::{
    CrossEntropy, DType, Init, Optimizer, Parameter, Parameters, Random, Tensor, UpdateRule,
    without_gradients,
};
