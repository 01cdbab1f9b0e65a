//! The options of `image`.

use crate::options::requirement::Condition::Is;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{ScoreKind, ScoreOptions, needs};
use regard::attention::{BilinearScale, Weighting};
use regard::layers::Position;
use regard::models::{ConvolutionalConfig, ImagePooling, VisionTransformerConfig};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) size: usize,
    pub(super) image_size: Option<u32>,
    pub(super) train_images: Option<PathBuf>,
    pub(super) train_labels: Option<PathBuf>,
    pub(super) train_folder: Option<PathBuf>,
    pub(super) validation_images: Option<PathBuf>,
    pub(super) validation_labels: Option<PathBuf>,
    pub(super) validation_folder: Option<PathBuf>,
    pub(super) test_images: Option<PathBuf>,
    pub(super) test_labels: Option<PathBuf>,
    pub(super) test_folder: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) color: bool,
    pub(super) shift: usize,
    pub(super) flip: bool,
    pub(super) mean: Option<f32>,
    pub(super) std: Option<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Vit,
    Cnn,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) model: Kind,
    pub(super) patch_size: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    key_width: Option<usize>,
    value_width: Option<usize>,
    bias: bool,
    head_score: ScoreKind,
    head_score_hidden: usize,
    head_expression: String,
    head_expression_numbers: Vec<String>,
    head_weighting: Weighting,
    position: Position,
    max_distance: usize,
    window: Option<usize>,
    feed_forward: usize,
    pub(super) pooling: ImagePooling,
    norm_eps: f64,
    channels: Vec<usize>,
    kernel_size: usize,
    dropout: f64,
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        if let Some(deviation) = self.data.std.filter(|&d| !(d.is_finite() && d > 0.0)) {
            return Err(Error::invalid(format!("`data.std` cannot be {deviation}")));
        }
        let data = &self.data;
        // Pictures of IDX files and the embedded ones are gray and of one size.
        if data.train_folder.is_none() && data.color {
            return Err(Error::invalid(
                "`data.color` is for folders of pictures (`data.train_folder`); the embedded ones and \
                 those of IDX files are gray",
            ));
        }
        if data.train_images.is_some() && data.image_size.is_some() {
            return Err(Error::invalid(
                "`data.image_size` is for folders of pictures and embedded ones; those of IDX files keep \
                 their size",
            ));
        }
        self.training.check()
    }
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let kind = "model.model";
    let patches = [
        "model.patch_size",
        "model.hidden",
        "model.layers",
        "model.heads",
        "model.key_width",
        "model.value_width",
        "model.bias",
        "model.head_score",
        "model.head_score_hidden",
        "model.head_expression",
        "model.head_expression_numbers",
        "model.head_weighting",
        "model.position",
        "model.max_distance",
        "model.window",
        "model.feed_forward",
        "model.pooling",
        "model.norm_eps",
    ];
    let mut all = [needs::common(), needs::head_score()].concat();
    all.extend(Requirement::each(&patches, &[vec![Is(kind, &["vit"])]]));
    all.extend(Requirement::each(
        &["model.channels", "model.kernel_size"],
        &[vec![Is(kind, &["cnn"])]],
    ));
    let folders = ["data.train_folder", "data.validation_folder", "data.test_folder"];
    all.extend([
        Requirement::new("model.max_distance", &[Is("model.position", &["relative"])]),
        Requirement::any("data.skip_bad_rows", &needs::given(&folders)),
    ]);
    all
}

impl Config {
    /// The library's configuration of a vision transformer for images `[C, height, width]`.
    pub(super) fn transformer(
        &self,
        [channels, height, width]: [usize; 3],
        classes: usize,
    ) -> VisionTransformerConfig {
        let m = &self.model;
        let score = ScoreOptions {
            score: m.head_score,
            hidden: m.head_score_hidden,
            expression: &m.head_expression,
            numbers: &m.head_expression_numbers,
            scale: BilinearScale::FourthRoot,
        };
        VisionTransformerConfig {
            image: [height, width],
            channels,
            patch: m.patch_size,
            classes,
            width: m.hidden,
            depth: m.layers,
            heads: m.heads,
            head_key_width: m.key_width,
            head_value_width: m.value_width,
            bias: m.bias,
            score: score.config(),
            weighting: m.head_weighting,
            position: m.position,
            max_distance: m.max_distance,
            window: m.window,
            feed_forward: m.feed_forward,
            pooling: m.pooling,
            dropout: m.dropout,
            eps: m.norm_eps,
        }
    }

    /// The library's configuration of a convolutional classifier for images `[C, height, width]`.
    pub(super) fn convolutional(
        &self,
        [channels, height, width]: [usize; 3],
        classes: usize,
    ) -> ConvolutionalConfig {
        let m = &self.model;
        ConvolutionalConfig {
            image: [height, width],
            channels,
            widths: m.channels.clone(),
            kernel: m.kernel_size,
            classes,
            dropout: m.dropout,
        }
    }
}
