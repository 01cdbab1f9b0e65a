//! A drawing as it is written: shapes and texts in SVG.

use std::fmt::Write as _;

use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};

use super::color::{FAINT, INK, PAPER};
use super::label;
use crate::scene::base64;

/// Families of which a system is likely to have one, with and without Chinese.
const FAMILIES: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Noto Sans', 'DejaVu Sans', \
    'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans SC', 'Source Han Sans SC', \
    'WenQuanYi Micro Hei', 'Noto Sans Arabic', 'Apple Color Emoji', 'Segoe UI Emoji', \
    'Noto Color Emoji', sans-serif";

const HALO: &str =
    " stroke=\"#ffffff\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\"";

/// A drawing under way.
#[derive(Default)]
pub(crate) struct Svg {
    body: String,
}

/// Which point of a text its place is.
#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A text with its place. Every text of a picture is made here: the one who rasterizes it relies on
/// each `<text>` saying all about itself.
pub(crate) struct Text<'a> {
    text: &'a str,
    x: f64,
    y: f64,
    size: f64,
    anchor: Anchor,
    turn: f64,
    fill: &'a str,
    bold: bool,
    halo: bool,
}

impl<'a> Text<'a> {
    /// Starting at x, standing on y.
    pub(crate) fn at(x: f64, y: f64, text: &'a str) -> Self {
        Self {
            text,
            x,
            y,
            size: 12.0,
            anchor: Anchor::Start,
            turn: 0.0,
            fill: INK,
            bold: false,
            halo: false,
        }
    }

    pub(crate) fn size(self, size: f64) -> Self {
        Self { size, ..self }
    }

    pub(crate) fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub(crate) fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    /// Turned about its place, in degrees, clockwise.
    pub(crate) fn turned(self, turn: f64) -> Self {
        Self { turn, ..self }
    }

    pub(crate) fn fill(self, fill: &'a str) -> Self {
        Self { fill, ..self }
    }

    pub(crate) fn faint(self) -> Self {
        self.fill(FAINT)
    }

    /// With paper around its letters, so that lines do not cross them.
    pub(crate) fn halo(self) -> Self {
        Self { halo: true, ..self }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

impl Svg {
    pub(crate) fn text(&mut self, text: Text<'_>) {
        let Text { x, y, size, fill, .. } = text;
        let (x, y) = (short(x), short(y));
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let turn = match text.turn {
            0.0 => String::new(),
            turn => format!(" transform=\"rotate({turn} {x} {y})\""),
        };
        let bold = if text.bold { " font-weight=\"600\"" } else { "" };
        let halo = if text.halo { HALO } else { "" };
        let words = escaped(text.text);
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"{anchor}{bold}{halo}{turn}>{words}</text>"
        ));
    }

    pub(crate) fn rect(&mut self, [x, y, w, h]: [f64; 4], fill: &str, more: &str) {
        let [x, y, w, h] = [x, y, w, h].map(short);
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"{more}/>"
        ));
    }

    pub(crate) fn line(&mut self, [x, y]: [f64; 2], [x2, y2]: [f64; 2], stroke: &str, width: f64) {
        let [x, y, x2, y2, width] = [x, y, x2, y2, width].map(short);
        self.push(format_args!(
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        ));
    }

    pub(crate) fn circle(&mut self, [x, y]: [f64; 2], radius: f64, fill: &str, more: &str) {
        let [x, y, radius] = [x, y, radius].map(short);
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        self.push(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"{more}/>"
        ));
    }

    /// A line through points; those that are not numbers break it.
    pub(crate) fn polyline(&mut self, points: &[[f64; 2]], stroke: &str, more: &str) {
        let mut d = String::new();
        let mut pen_is_down = false;
        for &[x, y] in points {
            if x.is_finite() && y.is_finite() {
                let letter = if pen_is_down { 'L' } else { 'M' };
                let _ = write!(d, "{letter}{} {}", short(x), short(y));
                pen_is_down = true;
            } else {
                pen_is_down = false;
            }
        }
        self.path(
            &d,
            &format!("fill=\"none\" stroke=\"{stroke}\" stroke-linejoin=\"round\" {more}"),
        );
    }

    pub(crate) fn path(&mut self, d: &str, more: &str) {
        if !d.is_empty() {
            self.push(format_args!("<path d=\"{d}\" {more}/>"));
        }
    }

    /// What already is SVG.
    pub(crate) fn raw(&mut self, svg: &str) {
        self.push(format_args!("{svg}"));
    }

    /// An image of few large pixels.
    pub(crate) fn pixels(&mut self, [x, y, w, h]: [f64; 4], pixels: &Pixels) {
        if pixels.width == 0 || pixels.height == 0 {
            return;
        }
        let [x, y, w, h] = [x, y, w, h].map(short);
        let data = pixels.address();
        self.push(format_args!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" image-rendering=\"optimizeSpeed\" href=\"{data}\"/>"
        ));
    }

    /// A thin line around a box, outside of it.
    pub(crate) fn frame(&mut self, [x, y, w, h]: [f64; 4]) {
        self.rect([x - 0.5, y - 0.5, w + 1.0, h + 1.0], "none", "stroke=\"#cbd2d9\"");
    }

    /// The title in two lines at most, at the top left; gives where the next thing may begin.
    pub(crate) fn title(&mut self, title: &str, x: f64, width: f64) -> f64 {
        if title.trim().is_empty() {
            return 16.0;
        }
        let mut y = 14.0;
        for line in label::two_lines(title, 16.0, width.max(200.0)) {
            y += 20.0;
            self.text(Text::at(x, y, &line).size(16.0).bold());
        }
        y + 16.0
    }

    /// The file.
    pub(crate) fn finish(self, width: f64, height: f64) -> String {
        let (width, height) = (width.ceil().max(1.0), height.ceil().max(1.0));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FAMILIES}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

/// Pixels row by row, each of 3 (red, green, blue) or 4 (and opacity) bytes.
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Pixels {
    /// A `data:` address that holds them as PNG; empty where there is none.
    pub(crate) fn address(&self) -> String {
        let png = self.png().map(|png| format!("data:image/png;base64,{}", base64(&png)));
        png.unwrap_or_default()
    }

    pub(crate) fn png(&self) -> image::ImageResult<Vec<u8>> {
        let kind = match self.bytes.len() / (self.width * self.height).max(1) {
            4 => ExtendedColorType::Rgba8,
            _ => ExtendedColorType::Rgb8,
        };
        let mut png = Vec::new();
        let (width, height) = (self.width as u32, self.height as u32);
        PngEncoder::new(&mut png).write_image(&self.bytes, width, height, kind)?;
        Ok(png)
    }
}

/// Text as XML may hold it: signs escaped, and what XML has no room for left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// A coordinate with two digits after the point, and none that is not a number.
pub(crate) fn short(value: f64) -> f64 {
    if value.is_finite() { (value * 100.0).round() / 100.0 } else { 0.0 }
}
