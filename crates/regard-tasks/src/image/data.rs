//! The images of `image`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::files::{ImageOptions, Images};
use crate::parts::{self, Cached, HeldOut};
use crate::{Error, Part, Result, toy};
use std::path::{Path, PathBuf};

/// Pixels across and down of the embedded shapes, where nothing else is asked for.
const SIDE: u32 = 16;

/// The files of a part: IDX images and labels, or a folder; or none.
fn files(data: &Data, part: Part) -> [&Option<PathBuf>; 3] {
    match part {
        Part::Training => [&data.train_images, &data.train_labels, &data.train_folder],
        Part::Validation => {
            [&data.validation_images, &data.validation_labels, &data.validation_folder]
        }
        Part::Test => [&data.test_images, &data.test_labels, &data.test_folder],
    }
}

/// Where a part's images come from; none where no files are given.
pub(super) fn source(data: &Data, part: Part) -> Option<&Path> {
    let [images, _, folder] = files(data, part);
    folder.as_deref().or(images.as_deref())
}

/// The images of a part as its files hold them; none where no files are given.
fn given(data: &Data, part: Part) -> Result<Option<Images>> {
    let images = match files(data, part) {
        [None, None, None] => return Ok(None),
        [Some(images), Some(labels), None] => Images::read_idx(images, labels)?,
        [None, None, Some(folder)] => {
            let options = ImageOptions { side: data.side, color: data.color };
            Images::read_folder(folder, &options)?
        }
        _ => {
            let name = parts::name(part);
            return Err(Error::invalid(format!(
                "the {name} part wants `data.{name}_images` and `data.{name}_labels`, or \
                 `data.{name}_folder` alone"
            )));
        }
    };
    Ok(Some(images))
}

/// The images that a configuration names.
pub(super) struct Dataset<'a> {
    config: &'a Config,
    /// All that the training files hold; none where no files are given.
    training: Cached<Option<Images>>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, training: Cached::new() }
    }

    /// The images of a part. Where the training files have no validation or test files beside them,
    /// a share of the training images, drawn by the seed, is held out for each; the files are read
    /// once for all parts.
    pub(super) fn part(&self, part: Part) -> Result<Images> {
        let data = &self.config.data;
        if part != Part::Training
            && let Some(images) = given(data, part)?
        {
            return Ok(images);
        }
        let Some(all) = self.training.get(|| given(data, Part::Training))? else {
            return embedded(data, part);
        };
        let spare = |part| files(data, part).iter().all(|file| file.is_none());
        let held = HeldOut {
            share: data.held_out,
            seed: self.config.training.seed,
            validation: spare(Part::Validation),
            test: spare(Part::Test),
        };
        let indices: Vec<usize> = (0..all.len()).collect();
        all.some(&held.stratified(part, &indices, |&at| all.labels[at].clone()))
    }
}

fn embedded(data: &Data, part: Part) -> Result<Images> {
    let side = data.side.unwrap_or(SIDE) as usize;
    let shapes = parts::embedded(part, data.size, |n| toy::shapes(n, side, 1))?;
    let (labels, pixels): (Vec<_>, Vec<_>) = shapes.into_iter().unzip();
    let byte = |value: &f32| (value * 255.0).round() as u8;
    let pixels = pixels.iter().flatten().map(byte).collect();
    Ok(Images { channels: 1, height: side, width: side, pixels, labels, left_out: vec![] })
}
