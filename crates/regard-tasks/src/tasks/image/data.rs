//! The images of `image`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Examples, List, Splits, Strata};
use regard_data::files::{ImageOptions, Images};
use regard_data::{Error, Result, toy};
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

/// The images of a part as its files hold them.
fn given(data: &Data, part: Part) -> Result<Images> {
    match files(data, part) {
        [Some(images), Some(_), None] if data.held_out.skip_bad_rows => {
            Err(Error::file(images, "`data.skip_bad_rows` is for folders of images"))
        }
        [Some(images), Some(labels), None] => Images::read_idx(images, labels),
        [None, None, Some(folder)] => {
            let options = ImageOptions { side: data.image_size, color: data.color };
            Images::read_folder(folder, &options)
        }
        _ => {
            let name = part.name();
            Err(Error::invalid(format!(
                "the {name} part needs `data.{name}_images` and `data.{name}_labels`, or \
                 `data.{name}_folder` alone"
            )))
        }
    }
}

/// The images that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Images;
    type Examples = Images;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        let names = match part {
            Part::Training => ["train_images", "train_folder"],
            Part::Validation => ["validation_images", "validation_folder"],
            Part::Test => ["test_images", "test_folder"],
        };
        Ok(match files(&self.data, part) {
            [None, None, None] => None,
            [_, _, Some(_)] => Some(names[1]),
            _ => Some(names[0]),
        })
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Images> {
        given(&self.data, part)
    }

    fn strata(&self, list: &Images) -> Strata {
        Strata::Labels(list.labels.clone())
    }

    fn read(&self, list: Images) -> Result<Images> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Images> {
        embedded(&self.data, part)
    }
}

impl List for Images {
    fn count(&self) -> usize {
        self.len()
    }

    fn pick(&self, which: &[usize]) -> Result<Self> {
        self.some(which)
    }
}

impl Examples for Images {
    /// It alone.
    type Example = Self;

    fn count(&self) -> usize {
        self.len()
    }

    fn nth(&self, at: usize) -> Option<Self> {
        (at < self.len()).then(|| self.some(&[at]).ok()).flatten()
    }
}

fn embedded(data: &Data, part: Part) -> Result<Images> {
    let side = data.image_size.unwrap_or(SIDE) as usize;
    let shapes =
        embedded::part(part, (data.size, embedded::PICTURES), |n| toy::shapes(n, side, 1))?;
    let (labels, pixels): (Vec<_>, Vec<_>) = shapes.into_iter().unzip();
    let byte = |value: &f32| (value * 255.0).round() as u8;
    let pixels = pixels.iter().flatten().map(byte).collect();
    Ok(Images { channels: 1, height: side, width: side, pixels, labels, left_out: vec![] })
}
