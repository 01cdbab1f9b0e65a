//! A small convolutional classifier.

use crate::mode::check_dropout;
use crate::{Linear, Mode};
use regard_tensor::{
    Activation, Init, Parameter, Parameters, Result, SlidingWindow, Tensor, ensure,
};

/// What a [`ConvolutionalClassifier`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{ConvolutionalClassifier, ConvolutionalConfig};
/// let deep = ConvolutionalConfig { widths: vec![8; 5], ..Default::default() };
/// let error = ConvolutionalClassifier::new(&Parameters::new(DType::F32, 1), &deep).unwrap_err();
/// let said = "layer 4 would halve 1 × 1; an image of 28 × 28 is too small for 5 layers";
/// assert_eq!(error.to_string(), said);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ConvolutionalConfig {
    /// Height and width of the images.
    pub image: [usize; 2],
    /// Channels of the images.
    pub channels: usize,
    /// Channels of each layer; each halves height and width.
    pub widths: Vec<usize>,
    /// Side of the windows; odd.
    pub kernel: usize,
    /// Classes.
    pub classes: usize,
    /// The share of the last layer's numbers left out during training.
    pub dropout: f64,
}

impl Default for ConvolutionalConfig {
    fn default() -> Self {
        Self {
            image: [28, 28],
            channels: 1,
            widths: vec![16, 32],
            kernel: 3,
            classes: 10,
            dropout: 0.1,
        }
    }
}

/// Layers of convolution, ReLU and max pooling, then one linear layer: what a
/// [`VisionTransformer`](crate::VisionTransformer) is compared with.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{ConvolutionalClassifier, ConvolutionalConfig};
/// let model = ConvolutionalClassifier::new(&Parameters::new(DType::F32, 1), &ConvolutionalConfig::default())?;
/// let logits = model.forward(&Tensor::zeros(&[2, 1, 28, 28], DType::F32)?, Mode::Infer)?;
/// assert_eq!(logits.shape(), [2, 10]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConvolutionalClassifier {
    config: ConvolutionalConfig,
    layers: Vec<(Parameter, Parameter)>,
    head: Linear,
}

impl ConvolutionalClassifier {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ConvolutionalClassifier, ConvolutionalConfig};
    /// let config = ConvolutionalConfig { image: [8, 8], widths: vec![4], ..Default::default() };
    /// let parameters = Parameters::new(DType::F32, 1);
    /// ConvolutionalClassifier::new(&parameters, &config)?;
    /// // windows of 3 × 3, then 4 × 4 places of 4 channels for ten classes
    /// assert_eq!(parameters.numel(), 4 * 9 + 4 + 64 * 10 + 10);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &ConvolutionalConfig) -> Result<Self> {
        let c = config;
        ensure!(
            c.kernel % 2 == 1,
            "a kernel of {}; an odd one keeps the size of the image",
            c.kernel
        );
        ensure!(c.channels > 0 && c.classes > 0, "{} channels, {} classes", c.channels, c.classes);
        check_dropout(c.dropout)?;
        let mut layers = Vec::with_capacity(c.widths.len());
        let (mut input, mut size) = (c.channels, c.image);
        for (at, &output) in c.widths.iter().enumerate() {
            ensure!(output > 0, "layer {at} has 0 channels");
            ensure!(
                size[0] >= 2 && size[1] >= 2,
                "layer {at} would halve {} × {}; an image of {} × {} is too small for {} layers",
                size[0],
                size[1],
                c.image[0],
                c.image[1],
                c.widths.len()
            );
            let place = parameters.at("layers").at(at);
            layers.push((
                place.parameter("weight", &[output, input, c.kernel, c.kernel], Init::Glorot)?,
                place.parameter("bias", &[output], Init::Zeros)?,
            ));
            (input, size) = (output, [size[0] / 2, size[1] / 2]);
        }
        let head = {
            let all = input.saturating_mul(size[0]).saturating_mul(size[1]);
            Linear::new(&parameters.at("head"), all, c.classes, true)?
        };
        Ok(Self { config: config.clone(), layers, head })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ConvolutionalClassifier, ConvolutionalConfig};
    /// let config = ConvolutionalConfig { image: [8, 8], widths: vec![4], ..Default::default() };
    /// let model = ConvolutionalClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(model.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &ConvolutionalConfig {
        &self.config
    }

    /// Images `[B, C, height, width]` → logits `[B, classes]`.
    /// Refuses images of another size, number of channels or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ConvolutionalClassifier, ConvolutionalConfig};
    /// let config = ConvolutionalConfig { image: [8, 8], widths: vec![4], ..Default::default() };
    /// let model = ConvolutionalClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let images = Tensor::zeros(&[2, 1, 8, 8], DType::F32)?;
    /// assert_eq!(model.forward(&images, Mode::Infer)?.shape(), [2, 10]);
    /// let error = model.forward(&images.squeeze(1)?, Mode::Infer).unwrap_err().to_string();
    /// assert_eq!(error, "images of shape [2, 8, 8]; this model wants [B, 1, 8, 8]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, images: &Tensor, mode: Mode) -> Result<Tensor> {
        let c = &self.config;
        let [height, width] = c.image;
        ensure!(
            images.rank() == 4 && images.shape()[1..] == [c.channels, height, width],
            "images of shape {:?}; this model wants [B, {}, {height}, {width}]",
            images.shape(),
            c.channels
        );
        let half = c.kernel / 2;
        let window =
            SlidingWindow { padding: [half, half], ..SlidingWindow::new([c.kernel, c.kernel]) };
        let pool = SlidingWindow { stride: [2, 2], ..SlidingWindow::new([2, 2]) };
        let mut x = images.clone();
        for (weight, bias) in &self.layers {
            let y = x.conv2d(&weight.tensor(), Some(&bias.tensor()), &window)?;
            x = y.activate(Activation::Relu)?.max_pool2d(&pool)?;
        }
        let flat: usize = x.shape()[1..].iter().product();
        let x = mode.dropout(&x.reshape(&[x.shape()[0], flat])?, c.dropout)?;
        self.head.forward(&x)
    }
}
