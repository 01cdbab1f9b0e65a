//! Images with labels: all of one size, from PNG and JPEG files in a folder per label.

use super::folder::LabeledFiles;
use crate::{Error, Result};
use image::imageops::FilterType;
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgba, RgbaImage, imageops,
};
use serde::{Deserialize, Serialize};
use std::io::Cursor;
use std::path::{Path, PathBuf};

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
    /// Reads a folder that has one folder of PNG and JPEG files for each label: by label, then by
    /// name. Refuses a damaged image, and images of several sizes where no side is given. What is
    /// transparent is seen on white.
    pub fn read_folder(root: &Path, options: &ImageOptions) -> Result<Self> {
        if options.side == Some(0) {
            return Err(Error::invalid("images cannot be brought to a side of 0 pixels"));
        }
        let LabeledFiles { files, left_out } =
            LabeledFiles::in_folders(root, &["png", "jpg", "jpeg"])?;
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        let mut first: Option<(u32, u32, PathBuf)> = None;
        for (path, label) in files {
            let mut image = read_image(&path)?;
            if let Some(side) = options.side {
                image = image.resize_exact(side, side, FilterType::Triangle);
            }
            let (width, height, one) =
                first.get_or_insert_with(|| (image.width(), image.height(), path.clone()));
            if (*width, *height) != (image.width(), image.height()) {
                let what = format!(
                    "{}×{} pixels, but {} has {width}×{height}; `side` brings all to one size",
                    image.width(),
                    image.height(),
                    one.display()
                );
                return Err(Error::file(path, what));
            }
            push_planes(&mut pixels, image, options.color);
            labels.push(label);
        }
        let (width, height) = first.map_or((0, 0), |(width, height, _)| (width, height));
        Ok(Self {
            channels: if options.color { 3 } else { 1 },
            height: height as usize,
            width: width as usize,
            pixels,
            labels,
            left_out,
        })
    }

    /// The planes `[C, height, width]` of one PNG or JPEG file, brought to a size.
    pub(crate) fn read_one(path: &Path, size: [usize; 2], color: bool) -> Result<Vec<u8>> {
        let [height, width] = size.map(|pixels| pixels as u32);
        let image = read_image(path)?.resize_exact(width, height, FilterType::Triangle);
        let mut pixels = Vec::new();
        push_planes(&mut pixels, image, color);
        Ok(pixels)
    }

    /// Some of the images, in the order asked for. Refuses an image that is not there.
    pub(crate) fn some(&self, which: &[usize]) -> Result<Self> {
        let Self { channels, height, width, .. } = *self;
        let mut some = Self { channels, height, width, ..Self::default() };
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
    /// use regard_tasks::data::Images;
    /// let (labels, left_out) = (vec!["a".into(), "b".into()], vec![]);
    /// let pixels = vec![0, 255, 51, 0];
    /// let images = Images { channels: 1, height: 1, width: 2, pixels, labels, left_out };
    /// assert_eq!(images.values(&[1])?, [0.2, 0.0]);
    /// # Ok::<(), regard_tasks::Error>(())
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

/// An image as a viewer shows it: turned as its camera noted, and without transparency.
fn read_image(path: &Path) -> Result<DynamicImage> {
    let failed = |error: image::ImageError| Error::file(path, format!("damaged image: {error}"));
    let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
    let format = image::guess_format(&bytes).map_err(failed)?;
    if format == ImageFormat::Jpeg && !is_whole_jpeg(&bytes) {
        return Err(Error::file(path, "damaged image: it is cut short"));
    }
    let reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    // A header that lies about the size must not cost the memory it asks for.
    Limits::default().reserve(decoder.total_bytes()).map_err(failed)?;
    let orientation = decoder.orientation().map_err(failed)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(failed)?;
    image.apply_orientation(orientation);
    if image.color().has_alpha() {
        let white = Rgba([255; 4]);
        let mut ground = RgbaImage::from_pixel(image.width(), image.height(), white);
        imageops::overlay(&mut ground, &image.to_rgba8(), 0, 0);
        image = ground.into();
    }
    Ok(image)
}

/// Whether the last scan has an end: the decoder fills what is missing with gray and says nothing.
fn is_whole_jpeg(bytes: &[u8]) -> bool {
    let scan = bytes.windows(2).rposition(|marker| marker == [0xff, 0xda]);
    scan.is_some_and(|scan| bytes[scan..].windows(2).any(|marker| marker == [0xff, 0xd9]))
}

/// Puts an image at the end as planes, one color after the other.
fn push_planes(pixels: &mut Vec<u8>, image: DynamicImage, color: bool) {
    if color {
        let image = image.into_rgb8();
        (0..3).for_each(|plane| pixels.extend(image.pixels().map(|pixel| pixel[plane])));
    } else {
        pixels.extend(image.into_luma8().into_raw());
    }
}
