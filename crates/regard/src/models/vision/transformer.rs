//! The vision transformer.

use crate::attention::{Site, intervention};
use crate::layers::sinusoids;
use crate::{
    Activation, BlockConfig, Classified, EncoderBlock, LayerNorm, Linear, Mask, Mode, Need,
    Position, ScoreConfig, Weighting,
};
use regard_tensor::{Init, Parameter, Parameters, Result, SlidingWindow, Tensor, ensure};

/// How the patches of an image become one vector.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::models::{ImagePooling, VisionTransformer, VisionTransformerConfig};
/// let pooling = ImagePooling::Mean;
/// let config = VisionTransformerConfig { image: [8, 8], patch: 4, pooling, ..Default::default() };
/// let model = VisionTransformer::new(&Parameters::new(DType::F32, 1), &config)?;
/// let images = Tensor::zeros(&[2, 1, 8, 8], DType::F32)?;
/// // four patches, and no class token before them
/// let weights = model.classify(&images, Mode::Infer, Need::WEIGHTS)?.weights;
/// assert_eq!(weights[0].shape(), [2, 4, 4, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ImagePooling {
    /// A learned vector stands before the patches, and what becomes of it is read.
    #[default]
    ClassToken,
    /// The mean of the patches.
    Mean,
}

/// What a [`VisionTransformer`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{ImagePooling, VisionTransformerConfig};
/// let config: VisionTransformerConfig =
///     serde_json::from_str(r#"{ "patch": 1, "pooling": "mean" }"#).unwrap();
/// assert_eq!((config.pooling, config.image), (ImagePooling::Mean, [28, 28]));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct VisionTransformerConfig {
    /// Height and width of the images.
    pub image: [usize; 2],
    /// Channels of the images.
    pub channels: usize,
    /// Side of a patch; it divides height and width. 1 is single pixels.
    pub patch: usize,
    /// Classes.
    pub classes: usize,
    /// Width of the vectors.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads; they divide the width, unless both of their widths are given.
    pub heads: usize,
    /// Dk: width of a head's queries and keys; the width over the heads where none is given.
    pub head_key_width: Option<usize>,
    /// Dv: width of a head's values; the width over the heads where none is given.
    pub head_value_width: Option<usize>,
    /// Whether the projections of attention have biases.
    pub bias: bool,
    /// The score of each head.
    pub score: ScoreConfig,
    /// How scores become weights; see [`BlockConfig`].
    pub weighting: Weighting,
    /// How it knows where a patch lies: a learned vector for each, or by its number in reading order, in
    /// which the class token comes first.
    pub position: Position,
    /// The longest distance that relative positions tell apart.
    pub max_distance: usize,
    /// Truncated attention: how many rows and columns of patches a patch sees on each side; all there is
    /// where none is given. The class token sees all patches, and all see it.
    pub window: Option<usize>,
    /// Inner width of the feed-forward layers.
    pub feed_forward: usize,
    /// How patches become one vector.
    pub pooling: ImagePooling,
    /// The share left out during training.
    pub dropout: f64,
    /// What keeps normalization from dividing by 0.
    pub eps: f64,
}

impl VisionTransformerConfig {
    /// For images of a height and width, cut into square patches, and so many classes; all else as usual.
    ///
    /// ```
    /// use regard::models::VisionTransformerConfig;
    /// let config = VisionTransformerConfig { channels: 3, ..VisionTransformerConfig::new([32, 48], 8, 100) };
    /// assert_eq!((config.image, config.patch, config.classes), ([32, 48], 8, 100));
    /// ```
    pub fn new(image: [usize; 2], patch: usize, classes: usize) -> Self {
        Self { image, patch, classes, ..Self::default() }
    }
}

impl Default for VisionTransformerConfig {
    fn default() -> Self {
        Self {
            image: [28, 28],
            channels: 1,
            patch: 4,
            classes: 10,
            width: 64,
            depth: 4,
            heads: 4,
            head_key_width: None,
            head_value_width: None,
            bias: true,
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            position: Position::Learned,
            max_distance: 32,
            window: None,
            feed_forward: 128,
            pooling: ImagePooling::ClassToken,
            dropout: 0.1,
            eps: 1e-5,
        }
    }
}

impl VisionTransformerConfig {
    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::VisionTransformerConfig;
    /// let error = VisionTransformerConfig { patch: 5, ..Default::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "a patch of 5 does not divide an image of 28 × 28");
    /// ```
    pub fn check(&self) -> Result<()> {
        let ([height, width], patch) = (self.image, self.patch);
        ensure!(
            height > 0 && width > 0 && self.channels > 0,
            "images of {height} × {width} with {} channels",
            self.channels
        );
        ensure!(
            patch > 0 && height.is_multiple_of(patch) && width.is_multiple_of(patch),
            "a patch of {patch} does not divide an image of {height} × {width}"
        );
        ensure!(self.classes > 0, "a vision transformer for 0 classes");
        ensure!(self.depth > 0, "a vision transformer of depth 0");
        ensure!(self.window != Some(0), "a window of 0 sees no neighbor; it wants at least 1");
        self.block().check()
    }

    fn block(&self) -> BlockConfig {
        BlockConfig {
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            activation: Activation::Gelu,
            head_key_width: self.head_key_width,
            head_value_width: self.head_value_width,
            bias: self.bias,
            score: self.score.clone(),
            weighting: self.weighting,
            dropout: self.dropout,
            position: self.position,
            max_distance: self.max_distance,
            eps: self.eps,
            ..BlockConfig::default()
        }
    }

    fn patches(&self) -> usize {
        (self.image[0] / self.patch).saturating_mul(self.image[1] / self.patch)
    }

    /// Which patches see each other.
    fn mask(&self) -> Result<Mask> {
        let Some(window) = self.window else { return Ok(Mask::none()) };
        let (columns, token) =
            (self.image[1] / self.patch, self.pooling == ImagePooling::ClassToken);
        let n = self.patches() + usize::from(token);
        // Said before the memory is asked for.
        const MOST: usize = 1 << 14;
        ensure!(
            n <= MOST,
            "a window over {n} patches, the class token included; at most {MOST} can have one: larger patches are fewer"
        );
        // Row and column of a patch; none of the class token.
        let place = |at: usize| {
            let at = at.checked_sub(usize::from(token))?;
            Some((at / columns, at % columns))
        };
        let near = |pair: usize| match (place(pair / n), place(pair % n)) {
            (Some(a), Some(b)) => a.0.abs_diff(b.0) <= window && a.1.abs_diff(b.1) <= window,
            _ => true,
        };
        let truths: Vec<bool> = (0..n * n).map(near).collect();
        Ok(Mask::dense(Tensor::from_bools(&truths, &[n, n])?))
    }
}

/// An image cut into patches, each flattened and projected to a vector; learned positions are
/// added, unless others are asked for, and blocks of self-attention follow (Dosovitskiy and others 2021).
///
/// Patches go from left to right, then from top to bottom. The numbers of a patch go by channel,
/// then row, then column: the order of a convolution's weights `[width, C, P, P]`.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{VisionTransformer, VisionTransformerConfig};
/// let config = VisionTransformerConfig { image: [8, 8], patch: 4, ..Default::default() };
/// let model = VisionTransformer::new(&Parameters::new(DType::F32, 1), &config)?;
/// let images = Tensor::zeros(&[2, 1, 8, 8], DType::F32)?;
/// let classified = model.classify(&images, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(classified.logits.shape(), [2, 10]);
/// // A class token and four patches, in each of four blocks.
/// assert_eq!(classified.weights.len(), 4);
/// assert_eq!(classified.weights[0].shape(), [2, 4, 5, 5]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct VisionTransformer {
    config: VisionTransformerConfig,
    patch: Linear,
    class_token: Option<Parameter>,
    position: Option<Parameter>,
    mask: Mask,
    blocks: Vec<EncoderBlock>,
    norm: LayerNorm,
    head: Linear,
}

impl VisionTransformer {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{VisionTransformer, VisionTransformerConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = VisionTransformerConfig { image: [8, 8], patch: 4, ..Default::default() };
    /// VisionTransformer::new(&parameters, &config)?;
    /// // a vector for each place: four patches and the class token
    /// assert_eq!(parameters.tensors()["position"].shape(), [5, 64]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &VisionTransformerConfig) -> Result<Self> {
        config.check()?;
        let c = config;
        let token = c.pooling == ImagePooling::ClassToken;
        let learned = c.position == Position::Learned;
        let places = c.patches().saturating_add(usize::from(token));
        // As large as the vectors of an embedding.
        let deviation = (c.width as f64).powf(-0.5);
        let vectors = |name: &str, rows| {
            parameters.parameter(name, &[rows, c.width], Init::Normal(deviation))
        };
        let blocks =
            (0..c.depth).map(|at| EncoderBlock::new(&parameters.at("blocks").at(at), &c.block()));
        Ok(Self {
            config: config.clone(),
            patch: Linear::new(
                &parameters.at("patch"),
                c.channels.saturating_mul(c.patch).saturating_mul(c.patch),
                c.width,
                true,
            )?,
            class_token: token.then(|| vectors("class_token", 1)).transpose()?,
            position: learned.then(|| vectors("position", places)).transpose()?,
            mask: c.mask()?,
            blocks: blocks.collect::<Result<_>>()?,
            norm: LayerNorm::new(&parameters.at("norm"), c.width)?.with_eps(c.eps),
            head: Linear::new(&parameters.at("head"), c.width, c.classes, true)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{VisionTransformer, VisionTransformerConfig};
    /// let config = VisionTransformerConfig { image: [8, 8], ..Default::default() };
    /// let model = VisionTransformer::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(model.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &VisionTransformerConfig {
        &self.config
    }

    /// Images `[B, C, height, width]` → logits `[B, classes]`.
    /// Refuses images of another size, number of channels or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{VisionTransformer, VisionTransformerConfig};
    /// let config = VisionTransformerConfig { image: [8, 8], classes: 3, ..Default::default() };
    /// let model = VisionTransformer::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let images = Tensor::zeros(&[2, 1, 8, 8], DType::F32)?;
    /// assert_eq!(model.forward(&images, Mode::Infer)?.shape(), [2, 3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, images: &Tensor, mode: Mode) -> Result<Tensor> {
        Ok(self.classify(images, mode, Need::OUTPUT)?.logits)
    }

    /// As [`VisionTransformer::forward`], with the weights `[B, H, N, N]` of each block where they
    /// are needed. N is the number of patches, and 1 more with a class token, which is first.
    /// Refuses images of another size, number of channels or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{VisionTransformer, VisionTransformerConfig};
    /// let config = VisionTransformerConfig { image: [8, 8], depth: 2, ..Default::default() };
    /// let model = VisionTransformer::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let images = Tensor::zeros(&[1, 1, 8, 8], DType::F32)?;
    /// let weights = model.classify(&images, Mode::Infer, Need::WEIGHTS)?.weights;
    /// assert_eq!((weights.len(), weights[0].shape()), (2, &[1, 4, 5, 5][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn classify(&self, images: &Tensor, mode: Mode, need: Need) -> Result<Classified> {
        let c = &self.config;
        let mut x = self.patch.forward(&self.patches(images)?)?;
        if let Some(token) = &self.class_token {
            let token = token.tensor().broadcast_to(&[x.shape()[0], 1, c.width])?;
            x = Tensor::cat(&[token, x], 1)?;
        }
        x = match (&self.position, c.position) {
            (Some(learned), _) => x.add(&learned.tensor())?,
            (None, Position::Sinusoidal) => {
                let n = x.shape()[1];
                x.add(&sinusoids(0, n, c.width, x.dtype())?.to_device(x.device())?)?
            }
            (None, _) => x,
        };
        x = mode.dropout(&x, c.dropout)?;
        let mut weights = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            let attend = || block.attend(&x, &self.mask, mode, need);
            let attended = intervention::at(Site::Encoder, layer, 0, attend)?;
            weights.extend(attended.weights);
            x = attended.out;
        }
        let one = match c.pooling {
            ImagePooling::ClassToken => self.norm.forward(&x.select(1, 0)?.contiguous()?)?,
            ImagePooling::Mean => self.norm.forward(&x)?.mean(1)?,
        };
        Ok(Classified::new(self.head.forward(&one)?, weights))
    }

    /// The patches `[B, N, C · P · P]` of images.
    fn patches(&self, images: &Tensor) -> Result<Tensor> {
        let c = &self.config;
        let [height, width] = c.image;
        ensure!(
            images.rank() == 4 && images.shape()[1..] == [c.channels, height, width],
            "images of shape {:?}; this model wants [B, {}, {height}, {width}]",
            images.shape(),
            c.channels
        );
        let window =
            SlidingWindow { stride: [c.patch, c.patch], ..SlidingWindow::new([c.patch, c.patch]) };
        images.unfold(&window)?.transpose(1, 2)
    }
}
