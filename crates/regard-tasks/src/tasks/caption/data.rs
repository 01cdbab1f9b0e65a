//! The pictures of `caption`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Examples, Splits};
use crate::tasks::seq2seq::Sources;
use rayon::prelude::*;
use regard::Tensor;
use regard::models::Source;
use regard_data::files::{Caption, Images, caption_columns};
use regard_data::tick;
use regard_data::{Result, toy};
use std::path::{Path, PathBuf};

/// Pictures that are read side by side.
const TOGETHER: usize = 64;

/// Pictures and their sentences.
#[derive(Clone, Debug, Default)]
pub(super) struct Pictures {
    /// C, height and width.
    pub(super) size: [usize; 3],
    /// Each C × height × width, from 0 to 255.
    pub(super) pixels: Vec<Vec<u8>>,
    /// At least one for each.
    pub(super) sentences: Vec<Vec<String>>,
}

fn file(data: &Data, part: Part) -> Option<&PathBuf> {
    match part {
        Part::Training => data.train.as_ref(),
        Part::Validation => data.validation.as_ref(),
        Part::Test => data.test.as_ref(),
    }
}

impl Pictures {
    fn new(config: &Config) -> Self {
        let side = config.data.image_size;
        Self { size: [config.channels(), side, side], ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.pixels.len()
    }

    /// One picture alone.
    pub(super) fn one(config: &Config, path: &Path) -> Result<Vec<u8>> {
        let side = config.data.image_size;
        Images::read_one(path, [side, side], config.data.color)
    }

    /// The same, of the content of a file.
    pub(super) fn decode(config: &Config, name: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
        let side = config.data.image_size;
        Images::decode_one(name, bytes, [side, side], config.data.color)
    }

    fn read(config: &Config, listed: &[Caption]) -> Result<Self> {
        let mut pictures = Self::new(config);
        for some in listed.chunks(TOGETHER) {
            let pixels: Vec<Result<Vec<u8>>> =
                some.par_iter().map(|one| Self::one(config, &one.path)).collect();
            for (one, pixels) in some.iter().zip(pixels) {
                pictures.pixels.push(pixels?);
                pictures.sentences.push(one.sentences.clone());
            }
            tick("reading images", pictures.len(), listed.len())?;
        }
        Ok(pictures)
    }
}

/// The pictures that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Caption>;
    type Examples = Pictures;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(file(&self.data, part).map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        let data = &self.data;
        let Some(path) = file(data, part) else { return Ok(Vec::new()) };
        caption_columns(path, &data.columns, data.encoding.as_deref())
    }

    fn read(&self, list: Self::List) -> Result<Pictures> {
        Pictures::read(self, &list)
    }

    fn embedded(&self, part: Part) -> Result<Pictures> {
        embedded(self, part)
    }
}

impl Examples for Pictures {
    /// Its pixels, and its sentences.
    type Example = (Vec<u8>, Vec<String>);

    fn count(&self) -> usize {
        self.len()
    }

    fn nth(&self, at: usize) -> Option<Self::Example> {
        Some((self.pixels.get(at)?.clone(), self.sentences[at].clone()))
    }
}

fn embedded(config: &Config, part: Part) -> Result<Pictures> {
    let data = &config.data;
    let drawn = embedded::part_in_order(part, data.size, |n| {
        toy::captioned(n, data.image_size, data.embedded.language(), 1)
    })?;
    let mut pictures = Pictures::new(config);
    let byte = |value: f32| (value * 255.0).round() as u8;
    for one in drawn {
        let plane = data.image_size * data.image_size;
        let pixels = match data.color {
            true => one.pixels.iter().map(|&value| byte(value)).collect(),
            // As bright as the three colors together.
            false => (0..plane)
                .map(|at| byte((0..3).map(|c| one.pixels[c * plane + at]).sum::<f32>() / 3.0))
                .collect(),
        };
        pictures.pixels.push(pixels);
        pictures.sentences.push(one.sentences);
    }
    Ok(pictures)
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
