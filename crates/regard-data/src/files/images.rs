//! Images with labels: all of one size, from PNG and JPEG files in a folder per label.

use super::folder::LabeledFiles;
use super::image_cache::ImageCache;
use super::planes::Planes;
use crate::watch::tick;
use crate::{Error, Result, example_or_skipped, sample};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The files that are read.
const EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "webp", "bmp", "gif"];

/// Files that are read at a time: a photograph takes fifty megabytes on its way.
const TOGETHER: usize = 64;

/// What took longer to read is kept.
const WORTH_KEEPING: Duration = Duration::from_secs(1);

/// What images are made into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageOptions {
    /// Pixels across and down that every image is brought to; without it all must be of one size.
    pub side: Option<u32>,
    /// Red, green and blue instead of gray.
    pub color: bool,
}

/// N images of one size, with labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// C: 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// Pixels down.
    pub height: usize,
    /// Pixels across.
    pub width: usize,
    /// `[N, C, height, width]`, from 0 (black) to 255.
    pub pixels: Vec<u8>,
    /// `[N]`
    pub labels: Vec<String>,
    /// What was found and is no image.
    pub left_out: Vec<PathBuf>,
}

impl Images {
    /// Reads a folder that has one folder of PNG, JPEG, WebP, BMP and GIF files for each label: by
    /// label, then by name, several at a time. Refuses a damaged image (or leaves it out, within
    /// [`skipping_bad_rows`](crate::skipping_bad_rows)), and images of several sizes
    /// where no side is given. What is transparent is seen on white; of what moves, the first
    /// picture.
    pub fn read_folder(root: &Path, options: &ImageOptions) -> Result<Self> {
        if options.side == Some(0) {
            return Err(Error::invalid("images cannot be brought to a side of 0 pixels"));
        }
        let LabeledFiles { files, left_out } = LabeledFiles::in_folders(root, &EXTENSIONS)?;
        // Some of a folder's images are not its images.
        let cache = ImageCache::of(&files, options).filter(|_| !sample::is_cut(root));
        if let Some(cached) = cache.as_ref().and_then(ImageCache::read) {
            return Ok(Self { left_out, ..cached });
        }
        let started = Instant::now();
        if files.is_empty() {
            return Ok(Self::default());
        }
        // The first that was read, whose size all have.
        let mut first: Option<&Path> = None;
        let size = options.side.map(|side| [side, side]);
        let read = |(path, _): &(PathBuf, String)| Planes::read(path, size, options.color);
        let mut images = Self { channels: if options.color { 3 } else { 1 }, ..Self::default() };
        for some in files.chunks(TOGETHER) {
            let planes: Vec<Result<Planes>> = some.par_iter().map(read).collect();
            for ((path, label), planes) in some.iter().zip(planes) {
                let Some(planes) = example_or_skipped(planes)? else { continue };
                images.push(planes, path, label, first.get_or_insert(path))?;
            }
            tick("reading images", images.len(), files.len())?;
        }
        if images.is_empty() {
            return Err(Error::file(root, "none of its images can be read"));
        }
        // Whoever leaves no damaged file out is to hear of it another time, too.
        if let Some(cache) = cache
            && images.len() == files.len()
            && (cache.is_named || started.elapsed() > WORTH_KEEPING)
        {
            cache.write(&images);
        }
        images.left_out = left_out;
        Ok(images)
    }

    /// Puts an image at the end; refuses one of another size than those before it.
    fn push(&mut self, planes: Planes, path: &Path, label: &str, one: &Path) -> Result<()> {
        let Planes { width, height, pixels } = planes;
        if self.labels.is_empty() {
            (self.width, self.height) = (width, height);
        }
        if (self.width, self.height) != (width, height) {
            let what = format!(
                "{width}×{height} pixels, but {} has {}×{}; `data.image_size` brings all to one size",
                one.display(),
                self.width,
                self.height
            );
            return Err(Error::file(path, what));
        }
        self.pixels.extend(pixels);
        self.labels.push(label.into());
        Ok(())
    }

    /// The planes `[C, height, width]` of one image file, brought to a size.
    pub fn read_one(path: &Path, size: [usize; 2], color: bool) -> Result<Vec<u8>> {
        Ok(Planes::read(path, Some(size.map(|pixels| pixels as u32)), color)?.pixels)
    }

    /// The same of the content of a file; its name is for what is refused.
    pub fn decode_one(name: &Path, bytes: &[u8], size: [usize; 2], color: bool) -> Result<Vec<u8>> {
        let size = Some(size.map(|pixels| pixels as u32));
        Ok(Planes::decode(name, bytes, size, color)?.pixels)
    }

    /// Some of the images, in the order asked for. Refuses an image that is not there.
    pub fn some(&self, which: &[usize]) -> Result<Self> {
        let Self { channels, height, width, .. } = *self;
        let left_out = self.left_out.clone();
        let mut some = Self { channels, height, width, left_out, ..Self::default() };
        for &at in which {
            some.pixels.extend_from_slice(self.bytes(at)?);
            some.labels.push(self.labels[at].clone());
        }
        Ok(some)
    }

    /// The bytes of one image.
    fn bytes(&self, at: usize) -> Result<&[u8]> {
        let size = self.channels * self.height * self.width;
        let there = (at < self.len()).then(|| at * size..(at + 1) * size);
        there.and_then(|range| self.pixels.get(range)).ok_or_else(|| {
            Error::invalid(format!("there is no image {at}; there are {}", self.len()))
        })
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels `[B, C, height, width]` of some images, from 0 (black) to 1. Refuses an image
    /// that is not there.
    ///
    /// ```
    /// use regard_data::files::Images;
    /// let (labels, left_out) = (vec!["a".into(), "b".into()], vec![]);
    /// let pixels = vec![0, 255, 51, 0];
    /// let images = Images { channels: 1, height: 1, width: 2, pixels, labels, left_out };
    /// assert_eq!(images.values(&[1])?, [0.2, 0.0]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn values(&self, which: &[usize]) -> Result<Vec<f32>> {
        let size = self.channels * self.height * self.width;
        let mut values = Vec::with_capacity(which.len() * size);
        for &at in which {
            values.extend(self.bytes(at)?.iter().map(|&pixel| f32::from(pixel) / 255.0));
        }
        Ok(values)
    }
}
