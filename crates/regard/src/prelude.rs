//! What most programs need, for `use regard::prelude::*`.
//!
//! ```
//! use regard::prelude::*;
//! let parameters = Parameters::new(DType::F32, 1);
//! let layer = Linear::new(&parameters, 4, 2, true)?;
//! assert_eq!(layer.forward(&Tensor::zeros(&[3, 4], DType::F32)?)?.shape(), [3, 2]);
//! # Ok::<(), regard::Error>(())
//! ```

pub use crate::Mode;
pub use crate::attention::*;
pub use crate::layers::*;
pub use crate::models::*;
pub use regard_tensor::{
    CrossEntropy, DType, Device, Gradients, Init, Optimizer, Parameter, Parameters, Plateau,
    Random, Schedule, Tensor, UpdateRule, without_gradients,
};
