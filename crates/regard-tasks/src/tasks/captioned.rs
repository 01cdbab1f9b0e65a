//! Pictures with sentences, from files or embedded: what `caption` and `draw` learn from.

use crate::options::requirement::Requirement;
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::Examples;
use crate::tasks::components::needs;
use rayon::prelude::*;
use regard_data::files::{Caption, FileColumns, Images, caption_columns};
use regard_data::toy::{CaptionLanguage, Captioned};
use regard_data::{Error, Result, example_or_skipped, tick};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Pictures that are read side by side.
const TOGETHER: usize = 64;

/// The largest side of a picture.
const MAX_SIDE: usize = 4096;

/// The language of the embedded sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Embedded {
    English,
    Chinese,
}

impl Embedded {
    pub(crate) fn language(self) -> CaptionLanguage {
        match self {
            Self::English => CaptionLanguage::English,
            Self::Chinese => CaptionLanguage::Chinese,
        }
    }
}

/// What the options need of each other to have an effect.
pub(crate) fn needs() -> Vec<Requirement> {
    let columns = ["data.separator", "data.header", "data.path_column", "data.text_column"];
    let mut all = [needs::common(), needs::text(), needs::decoder()].concat();
    all.extend(Requirement::each(&columns, &needs::any_file()));
    all.push(Requirement::new("data.embedded", &needs::embedded()));
    all
}

/// The options of `[data]`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Data {
    pub(crate) embedded: Embedded,
    size: usize,
    pub(crate) image_size: usize,
    pub(crate) train: Option<PathBuf>,
    validation: Option<PathBuf>,
    test: Option<PathBuf>,
    #[serde(flatten)]
    columns: FileColumns,
    #[serde(flatten)]
    pub(crate) held_out: HeldOutOptions,
    encoding: Option<String>,
    color: bool,
}

impl Data {
    /// Refuses a side that cannot be meant, and one that patches do not divide.
    pub(crate) fn check(&self, patch: usize) -> Result<()> {
        self.held_out.check()?;
        let side = self.image_size;
        if !(1..=MAX_SIDE).contains(&side) {
            return Err(Error::invalid(format!(
                "`data.image_size` cannot be {side}; it is 1 to {MAX_SIDE} pixels"
            )));
        }
        if patch == 0 || !side.is_multiple_of(patch) {
            return Err(Error::invalid(format!(
                "`model.patch_size` cannot be {patch}: it divides `data.image_size`, which is {side}"
            )));
        }
        Ok(())
    }

    /// Red, green and blue, or gray.
    pub(crate) fn channels(&self) -> usize {
        if self.color { 3 } else { 1 }
    }

    fn file(&self, part: Part) -> Option<&PathBuf> {
        match part {
            Part::Training => self.train.as_ref(),
            Part::Validation => self.validation.as_ref(),
            Part::Test => self.test.as_ref(),
        }
    }

    /// As [`Dataset::given`](crate::task::splits::Dataset::given).
    pub(crate) fn given(&self, part: Part) -> Option<&'static str> {
        self.file(part).map(|_| part.name())
    }

    /// As [`Dataset::list`](crate::task::splits::Dataset::list).
    pub(crate) fn list(&self, part: Part) -> Result<Vec<Caption>> {
        let Some(path) = self.file(part) else { return Ok(Vec::new()) };
        caption_columns(path, &self.columns, self.encoding.as_deref())
    }

    /// As [`Dataset::read`](crate::task::splits::Dataset::read).
    pub(crate) fn read(&self, listed: &[Caption]) -> Result<Pictures> {
        let mut pictures = Pictures::new(self);
        for some in listed.chunks(TOGETHER) {
            let read = |one: &Caption| {
                Images::read_one(&one.path, [self.image_size, self.image_size], self.color)
            };
            let pixels: Vec<Result<Vec<u8>>> = some.par_iter().map(read).collect();
            for (one, pixels) in some.iter().zip(pixels) {
                let Some(pixels) = example_or_skipped(pixels)? else { continue };
                pictures.pixels.push(pixels);
                pictures.sentences.push(one.sentences.clone());
            }
            tick("reading images", pictures.len(), listed.len())?;
        }
        Ok(pictures)
    }

    /// One picture alone, of the content of a file.
    pub(crate) fn decode(&self, name: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
        Images::decode_one(name, bytes, [self.image_size, self.image_size], self.color)
    }

    /// A part of the embedded pictures, which `make` makes.
    pub(crate) fn embedded(
        &self,
        part: Part,
        make: fn(usize, usize, CaptionLanguage, u64) -> Result<Vec<Captioned>>,
    ) -> Result<Pictures> {
        let drawn = embedded::part_in_order(part, self.size, |n| {
            make(n, self.image_size, self.embedded.language(), 1)
        })?;
        let mut pictures = Pictures::new(self);
        let byte = |value: f32| (value * 255.0).round() as u8;
        for one in drawn {
            let plane = self.image_size * self.image_size;
            let pixels = match self.color {
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

    /// Where the pictures come from.
    pub(crate) fn source(&self, what: &str) -> String {
        match &self.train {
            Some(path) => path.display().to_string(),
            None => format!("embedded {:?} {what}", self.embedded).to_lowercase(),
        }
    }
}

/// Pictures and their sentences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pictures {
    /// C, height and width.
    pub(crate) size: [usize; 3],
    /// Each C × height × width, from 0 to 255.
    pub(crate) pixels: Vec<Vec<u8>>,
    /// At least one for each.
    pub(crate) sentences: Vec<Vec<String>>,
}

impl Pictures {
    /// None yet.
    pub(crate) fn new(data: &Data) -> Self {
        Self { size: [data.channels(), data.image_size, data.image_size], ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.pixels.len()
    }

    /// Each picture once for each of its sentences.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, &String)> {
        let all = self.sentences.iter().enumerate();
        all.flat_map(|(at, sentences)| sentences.iter().map(move |text| (at, text)))
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

/// The colors of each pixel together, from 0 to 1, as a scene has them; the data have them in planes.
pub(crate) fn interleaved([channels, height, width]: [usize; 3], pixels: &[u8]) -> Vec<f32> {
    let pixel = |at: usize| (0..channels).map(move |c| c * height * width + at);
    (0..height * width).flat_map(pixel).map(|at| f32::from(pixels[at]) / 255.0).collect()
}
