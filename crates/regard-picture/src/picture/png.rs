//! A picture in pixels, with text that is right on any machine.
//!
//! A system may have no font, or none with Chinese signs. A sign that no font of the system has is
//! drawn from GNU Unifont's bitmaps, which come with the program.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use resvg::{tiny_skia, usvg};
use usvg::{FontResolver, fontdb, roxmltree};

use super::bitmap_font::bitmap_font;
use super::fonts;
use regard_data::{Error, Result};

/// The largest side in pixels; more would ask for gigabytes.
const LARGEST: f32 = 16_384.0;

/// A picture that [`svg`](super::svg) or another drew, as a PNG file, each unit of the drawing
/// `scale` pixels wide.
///
/// Refuses what is no SVG, and a scale that gives no pixels or more than 16384 a side.
///
/// ```
/// # use regard_picture::picture;
/// # use regard_picture::picture::Panel;
/// let svg = picture::curves("run 1", &[Panel::new("loss", "epoch").line("training", &[(1.0, 2.0)])]);
/// assert_eq!(&picture::png(&svg, 2.0)?[1..4], b"PNG");
/// # Ok::<(), regard_picture::Error>(())
/// ```
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    png_with(fonts::system(), svg, scale)
}

/// What to install so that [`png`] need not draw this picture's texts with bitmaps: a sentence, or
/// none where the system's fonts have every sign.
///
/// ```
/// use regard_picture::picture;
/// assert_eq!(picture::missing_fonts(&picture::curves("", &[]))?, None);
/// # Ok::<(), regard_picture::Error>(())
/// ```
pub fn missing_fonts(svg: &str) -> Result<Option<String>> {
    Ok(fonts::advice(&parsed(fonts::system(), svg)?.1))
}

fn png_with(fonts: &Arc<fontdb::Database>, svg: &str, scale: f32) -> Result<Vec<u8>> {
    let pixels = pixels_with(fonts, svg, scale)?;
    pixels.encode_png().map_err(|error| Error::invalid(format!("PNG was not written: {error}")))
}

/// The same as pixels.
pub(crate) fn pixels(svg: &str, scale: f32) -> Result<tiny_skia::Pixmap> {
    pixels_with(fonts::system(), svg, scale)
}

fn pixels_with(fonts: &Arc<fontdb::Database>, svg: &str, scale: f32) -> Result<tiny_skia::Pixmap> {
    let (tree, _) = parsed(fonts, svg)?;
    let size = tree.size();
    let (width, height) = (size.width() * scale, size.height() * scale);
    if !(width >= 1.0 && height >= 1.0 && width <= LARGEST && height <= LARGEST) {
        return Err(Error::invalid(format!(
            "a picture of {width} × {height} pixels cannot be made; 1 to {LARGEST} a side can"
        )));
    }
    let out_of_memory = || Error::invalid("there is no memory for the picture's pixels");
    let mut pixels = tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(out_of_memory)?;
    let scale = tiny_skia::Transform::from_scale(scale, scale);
    paint(tree.root(), scale, &mut pixels.as_mut());
    Ok(pixels)
}

/// Paints what a group holds, in order. Images are painted here, also those that are signs of a
/// font (emoji): resvg's own way would bring decoders of three more formats, where ours are all PNG.
fn paint(group: &usvg::Group, at: tiny_skia::Transform, pixels: &mut tiny_skia::PixmapMut<'_>) {
    let at = at.pre_concat(group.transform());
    for node in group.children() {
        match node {
            usvg::Node::Image(image) => paint_image(image, at, pixels),
            usvg::Node::Group(group) if !group.should_isolate() => paint(group, at, pixels),
            usvg::Node::Text(text) => paint(text.flattened(), at, pixels),
            usvg::Node::Path(path) => paint_path(path, at, pixels),
            usvg::Node::Group(_) => {
                // It would be drawn in the corner, without its place on the paper.
                if let Some(place) = node.abs_layer_bounding_box() {
                    resvg::render_node(node, at.pre_translate(place.x(), place.y()), pixels);
                }
            }
        }
    }
}

/// In plain colors, which are all that we draw with: resvg has no entrance for one path that would
/// take a straight line.
fn paint_path(path: &usvg::Path, at: tiny_skia::Transform, pixels: &mut tiny_skia::PixmapMut<'_>) {
    let color = |paint: &usvg::Paint, opacity: usvg::Opacity| match paint {
        usvg::Paint::Color(color) => {
            let mut paint = tiny_skia::Paint { anti_alias: true, ..tiny_skia::Paint::default() };
            paint.set_color_rgba8(color.red, color.green, color.blue, opacity.to_u8());
            Some(paint)
        }
        _ => None,
    };
    let fill = |pixels: &mut tiny_skia::PixmapMut<'_>| {
        let Some(fill) = path.fill() else { return };
        if let Some(paint) = color(fill.paint(), fill.opacity()) {
            pixels.fill_path(path.data(), &paint, tiny_skia::FillRule::Winding, at, None);
        }
    };
    let stroke = |pixels: &mut tiny_skia::PixmapMut<'_>| {
        let Some(stroke) = path.stroke() else { return };
        if let Some(paint) = color(stroke.paint(), stroke.opacity()) {
            pixels.stroke_path(path.data(), &paint, &stroke.to_tiny_skia(), at, None);
        }
    };
    match path.paint_order() {
        usvg::PaintOrder::FillAndStroke => {
            fill(pixels);
            stroke(pixels);
        }
        usvg::PaintOrder::StrokeAndFill => {
            stroke(pixels);
            fill(pixels);
        }
    }
}

fn paint_image(
    image: &usvg::Image,
    at: tiny_skia::Transform,
    pixels: &mut tiny_skia::PixmapMut<'_>,
) {
    let usvg::ImageKind::PNG(data) = image.kind() else { return };
    let Ok(source) = tiny_skia::Pixmap::decode_png(data) else { return };
    // A map's cells keep their edges; a sign of a font that is made smaller must not break up.
    let quality = match at.get_scale().0 < 1.0 {
        true => tiny_skia::FilterQuality::Bilinear,
        false => tiny_skia::FilterQuality::Nearest,
    };
    let paint = tiny_skia::PixmapPaint { quality, ..tiny_skia::PixmapPaint::default() };
    pixels.draw_pixmap(0, 0, source.as_ref(), &paint, at, None);
}

/// What the fonts could not write.
#[derive(Default)]
pub(crate) struct Missing {
    /// No font at all.
    pub(crate) font: bool,
    /// Of each kind of signs that no font has, at least one.
    pub(crate) signs: BTreeSet<char>,
}

impl Missing {
    pub(crate) fn any(&self) -> bool {
        self.font || !self.signs.is_empty()
    }
}

/// The drawing, its signs from these fonts, or from bitmaps where no font has them.
fn parsed(fonts: &Arc<fontdb::Database>, svg: &str) -> Result<(usvg::Tree, Missing)> {
    let has_fonts = fonts.faces().next().is_some();
    let mut all = fontdb::Database::clone(fonts);
    // Behind the others: it is asked last.
    let bitmaps =
        all.load_font_source(fontdb::Source::Binary(Arc::new(bitmap_font(&characters(svg)?))));
    let missing = Mutex::new(BTreeSet::new());
    let (select, fall_back) =
        (FontResolver::default_font_selector(), FontResolver::default_fallback_selector());
    let tree = {
        let font_resolver = FontResolver {
            // Any font is better than the none that an unknown family would give.
            select_font: Box::new(|font, fonts| {
                select(font, fonts).or_else(|| fonts.faces().next().map(|face| face.id))
            }),
            select_fallback: Box::new(|c, used, fonts| {
                let found = fall_back(c, used, fonts);
                if found.is_none_or(|found| bitmaps.contains(&found))
                    && let Ok(mut missing) = missing.lock()
                {
                    missing.insert(c);
                }
                found
            }),
        };
        let options = usvg::Options { font_resolver, fontdb: Arc::new(all), ..Default::default() };
        usvg::Tree::from_str(svg, &options).map_err(|error| not_svg(&error))?
    };
    let signs = missing.into_inner().unwrap_or_default();
    let is_written = svg.contains("<text");
    Ok((tree, Missing { font: !has_fonts && is_written, signs }))
}

fn not_svg(error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the picture is not SVG: {error}"))
}

/// Every character that a picture writes.
fn characters(svg: &str) -> Result<BTreeSet<char>> {
    let document = roxmltree::Document::parse(svg).map_err(|error| not_svg(&error))?;
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let written = texts.flat_map(|node| node.descendants()).filter_map(|node| node.text());
    Ok(written.flat_map(str::chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::svg::{Svg, Text};

    fn ink(fonts: fontdb::Database, text: &str) -> usize {
        let mut svg = Svg::default();
        svg.text(Text::at(10.0, 30.0, text).size(24.0));
        let png = png_with(&Arc::new(fonts), &svg.finish(200.0, 50.0), 1.0).unwrap();
        let image = image::load_from_memory(&png).unwrap().to_luma8();
        image.pixels().filter(|pixel| pixel.0[0] < 128).count()
    }

    #[test]
    fn without_any_font_a_label_has_ink() {
        assert!(ink(fontdb::Database::new(), "garden") > 100);
        assert!(ink(fontdb::Database::new(), "花园") > 200);
        assert_eq!(ink(fontdb::Database::new(), ""), 0);
    }

    #[test]
    fn straight_lines_are_drawn_and_lie_over_images_that_come_before_them() {
        let mut svg = Svg::default();
        let bytes = vec![255, 255, 255];
        let pixels = crate::picture::svg::Pixels { width: 1, height: 1, bytes };
        svg.pixels([0.0, 0.0, 100.0, 50.0], &pixels);
        svg.line([50.0, 5.0], [50.0, 45.0], "#000000", 2.0);
        svg.line([5.0, 25.0], [95.0, 25.0], "#000000", 2.0);
        let png = png_with(&Arc::default(), &svg.finish(100.0, 50.0), 1.0).unwrap();
        let image = image::load_from_memory(&png).unwrap().to_luma8();
        assert_eq!(
            [(50, 10), (20, 25), (20, 10)].map(|(x, y)| image.get_pixel(x, y).0[0]),
            [0, 0, 255]
        );
    }

    #[test]
    fn without_any_font_marks_stand_over_their_letters() {
        let pixels = |text: &str| {
            let mut svg = Svg::default();
            svg.text(Text::at(10.0, 40.0, text).size(32.0));
            let png = png_with(&Arc::default(), &svg.finish(300.0, 60.0), 1.0).unwrap();
            image::load_from_memory(&png).unwrap().to_luma8()
        };
        let right = |text: &str| {
            let image = pixels(text);
            let dark = image.enumerate_pixels().filter(|(_, _, pixel)| pixel.0[0] < 128);
            dark.map(|(x, _, _)| x).max().unwrap()
        };
        // An e with an accent is as wide as an e, with more ink above it.
        assert_eq!(right("e\u{301}"), right("e"));
        assert!(ink(fontdb::Database::new(), "e\u{301}") > ink(fontdb::Database::new(), "e"));
        // Arabic runs to the left: what is written first stands last.
        let (forward, turned) = (pixels("اب"), pixels("با"));
        assert_ne!(forward, turned);
        let ink_at = |image: &image::GrayImage, from: u32, to: u32| {
            let dark = image.enumerate_pixels().filter(|(_, _, pixel)| pixel.0[0] < 128);
            dark.filter(|(x, _, _)| (from..to).contains(x)).count()
        };
        // Alef, a stroke, has less ink than beh; in "اب" it is the one to the right.
        assert!(ink_at(&forward, 10, 26) > ink_at(&forward, 26, 42));
    }

    #[test]
    fn a_sign_that_nothing_has_takes_no_other_with_it() {
        // Unifont's bitmaps have no such sign; the others of the label are drawn all the same.
        let apart = |text: &str| {
            let mut svg = Svg::default();
            svg.text(Text::at(10.0, 30.0, text).size(24.0));
            let svg = svg.finish(200.0, 50.0);
            (png_with(fonts::system(), &svg, 1.0).unwrap(), missing_fonts(&svg).unwrap())
        };
        assert_ne!(apart("\u{1fae8}\u{e000}一").0, apart("\u{1fae8}\u{e000}龘").0);
        let advice = apart("\u{e000}").1.unwrap();
        assert!(advice.contains("GNU Unifont") && advice.contains("apt-get install"), "{advice}");
        let advice = apart("Z\u{1dd3}\u{0363}").1;
        assert!(!advice.unwrap_or_default().contains("has `Z`,"));
        assert_eq!(apart("plain").1, None);
    }

    #[test]
    fn with_the_fonts_of_the_system_chinese_differs_from_what_is_missing() {
        let system = || fontdb::Database::clone(fonts::system());
        // A box for each missing sign would give both the same ink.
        assert_ne!(ink(system(), "一一"), ink(system(), "龘龘"));
    }
}
