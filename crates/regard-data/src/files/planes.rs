//! One image file as planes of bytes, of the size asked for.

use crate::{Error, Result};
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage, RgbaImage,
};
use std::io::Cursor;
use std::path::Path;

/// An image `[C, height, width]`, one color after the other.
pub(super) struct Planes {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

impl Planes {
    /// Reads a file as a viewer shows it, brought to a size of height and width where one is given:
    /// in color, or gray.
    pub(super) fn read(path: &Path, size: Option<[u32; 2]>, color: bool) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Self::decode(path, &bytes, size, color)
    }

    /// The same of the content of a file; its name is for what is refused.
    pub(super) fn decode(
        path: &Path,
        bytes: &[u8],
        size: Option<[u32; 2]>,
        color: bool,
    ) -> Result<Self> {
        let (image, orientation) = decoded(path, bytes)?;
        let mut image = opaque(image);
        if let Some(size) = size {
            let [height, width] = match is_on_its_side(orientation) {
                true => [size[1], size[0]],
                false => size,
            };
            let failed = |error: &dyn std::fmt::Display| Error::file(path, error);
            image = resized(&image, width, height).map_err(|error| failed(&error))?;
        }
        // What is small is turned sooner than a photograph, and gives the same.
        let mut image = DynamicImage::from(image);
        image.apply_orientation(orientation);
        let (width, height) = (image.width() as usize, image.height() as usize);
        let pixels = match color {
            true => {
                let image = image.into_rgb8();
                (0..3).flat_map(|plane| image.pixels().map(move |pixel| pixel[plane])).collect()
            }
            false => image.into_luma8().into_raw(),
        };
        Ok(Self { width, height, pixels })
    }
}

/// The width and the height of a picture, from its first bytes; none where they are no picture's.
///
/// ```
/// assert_eq!(regard_data::files::picture_size(b"no picture"), None);
/// ```
pub fn picture_size(bytes: &[u8]) -> Option<[u32; 2]> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    // Only the header is read: what it says costs nothing yet.
    reader.no_limits();
    reader.into_dimensions().ok().map(|(width, height)| [width, height])
}

/// What a file holds, and how its camera was held.
fn decoded(path: &Path, bytes: &[u8]) -> Result<(DynamicImage, Orientation)> {
    let failed = |error: image::ImageError| Error::file(path, format!("damaged image: {error}"));
    let format = image::guess_format(bytes).map_err(failed)?;
    if format == ImageFormat::Jpeg && !is_whole_jpeg(bytes) {
        return Err(Error::file(path, "damaged image: it is cut short"));
    }
    let reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    // A header that lies about the size must not cost the memory it asks for.
    Limits::default().reserve(decoder.total_bytes()).map_err(failed)?;
    let orientation = decoder.orientation().map_err(failed)?;
    Ok((DynamicImage::from_decoder(decoder).map_err(failed)?, orientation))
}

/// Whether the last scan has an end: the decoder fills what is missing with gray and says nothing.
/// From behind, the mark of an end comes before that of a scan.
fn is_whole_jpeg(bytes: &[u8]) -> bool {
    const SCAN: [u8; 2] = [0xff, 0xda];
    const END: [u8; 2] = [0xff, 0xd9];
    let last = bytes.windows(2).rev().find(|marker| *marker == SCAN || *marker == END);
    last.is_some_and(|marker| marker == END)
}

/// What is transparent, seen on white.
fn opaque(image: DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.into_rgb8();
    }
    let image: RgbaImage = image.into_rgba8();
    let mut ground = RgbImage::new(image.width(), image.height());
    for (to, from) in ground.pixels_mut().zip(image.pixels()) {
        let alpha = u32::from(from[3]);
        let mixed =
            |color: u8| ((u32::from(color) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        *to = Rgb([from[0], from[1], from[2]].map(mixed));
    }
    ground
}

/// Whether width and height change places when it is turned upright.
fn is_on_its_side(orientation: Orientation) -> bool {
    !matches!(
        orientation,
        Orientation::NoTransforms
            | Orientation::Rotate180
            | Orientation::FlipHorizontal
            | Orientation::FlipVertical
    )
}

/// Brought to a size; a pixel is the mean of those it covers, the nearer ones counting more. The type
/// of the pixels is said: what asks for it at run time compiles the filter for all that there are,
/// which was a third of this crate.
fn resized(
    image: &RgbImage,
    width: u32,
    height: u32,
) -> std::result::Result<RgbImage, Box<dyn std::error::Error>> {
    let (w, h) = image.dimensions();
    let from = TypedImageRef::<U8x3>::from_buffer(w, h, image.as_raw())?;
    let mut small = RgbImage::new(width, height);
    let mut to = TypedImage::<U8x3>::from_buffer(width, height, &mut small)?;
    let algorithm = ResizeAlg::Convolution(FilterType::Bilinear);
    let options = ResizeOptions::new().resize_alg(algorithm);
    Resizer::new().resize_typed(&from, &mut to, &options)?;
    Ok(small)
}
