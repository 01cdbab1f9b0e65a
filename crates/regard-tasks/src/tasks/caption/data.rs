//! The pictures of `caption`, in three parts, and as the model reads them.

use super::config::Config;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits};
use crate::tasks::captioned::Pictures;
use crate::tasks::seq2seq::Sources;
use regard::Tensor;
use regard::models::Source;
use regard_data::files::Caption;
use regard_data::{Result, toy};

/// The pictures that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Caption>;
    type Examples = Pictures;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(self.data.given(part))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        self.data.list(part)
    }

    fn read(&self, list: Self::List) -> Result<Pictures> {
        self.data.read(&list)
    }

    fn embedded(&self, part: Part) -> Result<Pictures> {
        self.data.embedded(part, toy::captioned)
    }
}

/// Pictures as the model reads them; a picture may stand there several times.
pub(super) struct ImageSources<'a> {
    pub(super) pictures: &'a Pictures,
    /// Which picture each source is.
    pub(super) which: Vec<usize>,
    pub(super) patch: usize,
    /// The mean of all pixels of the training part, and how far they lie from it.
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl Sources for ImageSources<'_> {
    fn count(&self) -> usize {
        self.which.len()
    }

    fn length(&self, _: usize) -> usize {
        let [_, height, width] = self.pictures.size;
        (height / self.patch) * (width / self.patch)
    }

    fn batch(&self, which: &[usize]) -> Result<Source> {
        let [channels, height, width] = self.pictures.size;
        let mut values = Vec::with_capacity(which.len() * channels * height * width);
        for &at in which {
            let pixels = self.pictures.pixels[self.which[at]].iter();
            let value = |&pixel: &u8| (f32::from(pixel) / 255.0 - self.mean) / self.deviation;
            values.extend(pixels.map(value));
        }
        let x = Tensor::from_vec(values, &[which.len(), channels, height, width])?;
        Ok(Source::images(x, self.patch)?)
    }
}
