//! A picture in pixels, with text that is right on any machine.
//!
//! A system may have no font, or none with Chinese signs. A label with a sign that no font of the
//! system has is drawn from GNU Unifont's bitmaps, which come with the program.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock};

use resvg::{tiny_skia, usvg};
use usvg::{FontResolver, fontdb, roxmltree};

use super::label;
use super::svg::short;
use crate::{Error, Result};

/// The largest side in pixels; more would ask for gigabytes.
const LARGEST: f32 = 16_384.0;

/// A picture that [`svg`](super::svg) or another drew, as a PNG file, each unit of the drawing
/// `scale` pixels wide.
///
/// Refuses what is no SVG, and a scale that gives no pixels or more than 16384 a side.
///
/// ```
/// # use regard_tasks::picture::{self, Panel};
/// let svg = picture::curves("run 1", &[Panel::new("loss", "epoch").line("training", &[(1.0, 2.0)])]);
/// assert_eq!(&picture::png(&svg, 2.0)?[1..4], b"PNG");
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        Arc::new(fonts)
    });
    png_with(fonts, svg, scale)
}

fn png_with(fonts: &Arc<fontdb::Database>, svg: &str, scale: f32) -> Result<Vec<u8>> {
    let (mut tree, missing) = parsed(fonts, svg)?;
    if missing.any() {
        tree = parsed(fonts, &with_bitmaps(svg, &missing)?)?.0;
    }
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
    resvg::render(&tree, scale, &mut pixels.as_mut());
    paint_images(tree.root(), scale, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| Error::invalid(format!("PNG was not written: {error}")))
}

/// Paints a group's images, over everything else: resvg's own way would bring decoders of three more
/// formats, where ours are all PNG and nothing is drawn over them.
fn paint_images(
    group: &usvg::Group,
    scale: tiny_skia::Transform,
    pixels: &mut tiny_skia::PixmapMut<'_>,
) {
    for node in group.children() {
        match node {
            usvg::Node::Image(image) => paint_image(image, scale, pixels),
            usvg::Node::Group(group) => paint_images(group, scale, pixels),
            _ => {}
        }
    }
}

fn paint_image(
    image: &usvg::Image,
    scale: tiny_skia::Transform,
    pixels: &mut tiny_skia::PixmapMut<'_>,
) {
    let usvg::ImageKind::PNG(data) = image.kind() else { return };
    let Ok(source) = tiny_skia::Pixmap::decode_png(data) else { return };
    let paint = tiny_skia::PixmapPaint {
        quality: tiny_skia::FilterQuality::Nearest,
        ..tiny_skia::PixmapPaint::default()
    };
    let at = scale.pre_concat(image.abs_transform());
    pixels.draw_pixmap(0, 0, source.as_ref(), &paint, at, None);
}

/// What the fonts could not write.
#[derive(Default)]
struct Missing {
    /// No font at all.
    font: bool,
    /// Of each label that has signs no font has, at least one of those.
    signs: HashSet<char>,
}

impl Missing {
    fn any(&self) -> bool {
        self.font || !self.signs.is_empty()
    }

    fn concerns(&self, text: &str) -> bool {
        self.font || text.chars().any(|c| self.signs.contains(&c))
    }
}

fn parsed(fonts: &Arc<fontdb::Database>, svg: &str) -> Result<(usvg::Tree, Missing)> {
    let missing = Mutex::new(Missing::default());
    let note = |what: &dyn Fn(&mut Missing)| {
        if let Ok(mut missing) = missing.lock() {
            what(&mut missing);
        }
    };
    let (select, fall_back) =
        (FontResolver::default_font_selector(), FontResolver::default_fallback_selector());
    let tree = {
        let font_resolver = FontResolver {
            select_font: Box::new(|font, fonts| {
                // Any font is better than the none that an unknown family would give.
                let found =
                    select(font, fonts).or_else(|| fonts.faces().next().map(|face| face.id));
                if found.is_none() {
                    note(&|missing| missing.font = true);
                }
                found
            }),
            select_fallback: Box::new(|c, used, fonts| {
                let found = fall_back(c, used, fonts);
                if found.is_none() {
                    note(&|missing| {
                        missing.signs.insert(c);
                    });
                }
                found
            }),
        };
        let options = usvg::Options { font_resolver, fontdb: fonts.clone(), ..Default::default() };
        usvg::Tree::from_str(svg, &options).map_err(|error| not_svg(&error))?
    };
    Ok((tree, missing.into_inner().unwrap_or_default()))
}

fn not_svg(error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the picture is not SVG: {error}"))
}

/// The drawing with bitmaps' outlines in place of the labels that could not be written.
fn with_bitmaps(svg: &str, missing: &Missing) -> Result<String> {
    let document = roxmltree::Document::parse(svg).map_err(|error| not_svg(&error))?;
    let mut out = String::with_capacity(svg.len() * 2);
    let mut copied = 0;
    for node in document.descendants().filter(|node| node.has_tag_name("text")) {
        let text: String =
            node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
        if missing.concerns(&text) {
            out.push_str(&svg[copied..node.range().start]);
            out.push_str(&outline(node, &text));
            copied = node.range().end;
        }
    }
    out.push_str(&svg[copied..]);
    Ok(out)
}

/// A label as a path of squares, 16 to an em, standing on the line of the text it replaces.
fn outline(node: roxmltree::Node<'_, '_>, text: &str) -> String {
    let given = |name: &str, otherwise: f64| {
        node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    };
    let glyphs: Vec<&unifont::Glyph> = text
        .chars()
        .filter(|&c| !label::is_empty(c))
        .filter_map(|c| unifont::get_glyph(c).or_else(|| unifont::get_glyph('\u{fffd}')))
        .collect();
    let side = given("font-size", 12.0) / 16.0;
    let width = side * glyphs.iter().map(|glyph| glyph.get_width()).sum::<usize>() as f64;
    let mut left = given("x", 0.0)
        - match node.attribute("text-anchor") {
            Some("middle") => width / 2.0,
            Some("end") => width,
            _ => 0.0,
        };
    // Unifont's letters stand on the line between its 14th and 15th row.
    let top = given("y", 0.0) - 14.0 * side;
    let mut d = String::new();
    for glyph in glyphs {
        for (row, column, length) in runs(glyph) {
            let (x, y) = (left + column as f64 * side, top + row as f64 * side);
            let across = short(length as f64 * side);
            let _ = write!(d, "M{} {}h{across}v{}h-{across}z", short(x), short(y), short(side));
        }
        left += side * glyph.get_width() as f64;
    }
    let mut path = format!("<path d=\"{d}\"");
    for name in ["fill", "transform", "stroke", "stroke-width", "stroke-linejoin", "paint-order"] {
        if let Some(value) = node.attribute(name) {
            let _ = write!(path, " {name}=\"{value}\"");
        }
    }
    path + "/>"
}

/// The (row, first column, length) of each run of black pixels.
fn runs(glyph: &unifont::Glyph) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for row in 0..16 {
        for column in (0..glyph.get_width()).filter(|&column| glyph.get_pixel(column, row)) {
            match runs.last_mut() {
                Some(run) if run.0 == row && run.1 + run.2 == column => run.2 += 1,
                _ => runs.push((row, column, 1)),
            }
        }
    }
    runs
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
    fn with_the_fonts_of_the_system_chinese_differs_from_what_is_missing() {
        let system = || {
            let mut fonts = fontdb::Database::new();
            fonts.load_system_fonts();
            fonts
        };
        // A box for each missing sign would give both the same ink.
        assert_ne!(ink(system(), "一一"), ink(system(), "龘龘"));
    }
}
