//! Small colored pictures of two shapes, with sentences that say what stands where.

use super::{chance, normal};
use crate::{Error, Result};
use rayon::prelude::*;
use regard::tensor::Random;

const NOISE: f64 = 0.03;
/// Below this, shapes cannot be told apart.
const LEAST_SIDE: usize = 16;

/// The language of the sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptionLanguage {
    /// "a red circle left of a small blue square"
    English,
    /// 一个红色的圆形在一个蓝色的小方形的左边
    Chinese,
}

/// A name in both languages.
pub(super) struct Word {
    english: &'static str,
    chinese: &'static str,
}

pub(super) struct Color {
    name: Word,
    pub(super) rgb: [f64; 3],
}

pub(super) const SHAPES: [Word; 4] = [
    Word { english: "circle", chinese: "圆形" },
    Word { english: "square", chinese: "方形" },
    Word { english: "triangle", chinese: "三角形" },
    Word { english: "cross", chinese: "十字" },
];

pub(super) const COLORS: [Color; 5] = [
    Color { name: Word { english: "red", chinese: "红色" }, rgb: [0.9, 0.15, 0.1] },
    Color { name: Word { english: "green", chinese: "绿色" }, rgb: [0.1, 0.75, 0.2] },
    Color { name: Word { english: "blue", chinese: "蓝色" }, rgb: [0.15, 0.25, 0.95] },
    Color { name: Word { english: "yellow", chinese: "黄色" }, rgb: [0.95, 0.85, 0.1] },
    Color { name: Word { english: "white", chinese: "白色" }, rgb: [0.95, 0.95, 0.95] },
];

/// Where the first of two shapes stands, and where the second does.
const RELATIONS: [[Word; 2]; 2] = [
    [Word { english: "left of", chinese: "左边" }, Word { english: "right of", chinese: "右边" }],
    [Word { english: "above", chinese: "上面" }, Word { english: "below", chinese: "下面" }],
];

/// Half of what a shape spans, as a part of the side.
const SMALL: f64 = 0.13;
const USUAL: f64 = 0.21;
/// How far the middle of both things may lie from that of the picture, and each from theirs.
const ASIDE: f64 = 0.1;
const APART: f64 = 0.08;
/// The farthest that a thing lies from the middle of the picture, across the line of both.
pub(super) const BESIDE: f64 = ASIDE + APART;

/// A picture and what may be said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Captioned {
    /// `[3, side, side]`, red, green and blue, from 0 to 1.
    pub pixels: Vec<f32>,
    /// Sentences that are all right.
    pub sentences: Vec<String>,
}

/// What a thing is: by these the sentences name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Look {
    pub(super) shape: usize,
    pub(super) color: usize,
    pub(super) small: bool,
}

/// A thing, and its middle as parts of the side.
pub(super) struct Thing {
    pub(super) look: Look,
    pub(super) place: [f64; 2],
}

/// How a scene is painted.
#[derive(Clone, Copy, PartialEq)]
enum Painting {
    /// With noise, on any ground, in any light.
    Noisy,
    /// Without noise, always on the same ground, in the same light and at eighths of the side.
    Plain,
}

/// The ground and the light of plain pictures: the means of what noisy ones have.
pub(super) const PLAIN_GROUND: f64 = 0.15;
pub(super) const PLAIN_LIGHT: f64 = 0.9;
/// Where the shapes of plain pictures stand: at multiples of a side divided by this.
pub(super) const PLAIN_STEPS: f64 = 8.0;

/// `count` pictures of side × side pixels with two shapes each, of any color and size, one beside
/// or above the other, with noise; and both ways to say so. Refuses a side below 16.
///
/// ```
/// use regard_data::toy::{CaptionLanguage, captioned};
/// let pictures = captioned(3, 32, CaptionLanguage::English, 1)?;
/// assert!(pictures.iter().all(|one| one.pixels.len() == 3 * 32 * 32));
/// assert!(pictures[0].sentences.iter().all(|sentence| sentence.starts_with("a ")));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn captioned(
    count: usize,
    side: usize,
    language: CaptionLanguage,
    seed: u64,
) -> Result<Vec<Captioned>> {
    painted(count, side, language, seed, Painting::Noisy)
}

/// As [`captioned`], the same scenes without noise, on one ground, in one light, and with shapes whose
/// middles stand at eighths of the side: what a sentence leaves open is which of these, and nothing else.
///
/// ```
/// use regard_data::toy::{CaptionLanguage, captioned, plainly_captioned};
/// let [noisy, plain] = [captioned, plainly_captioned].map(|f| f(3, 24, CaptionLanguage::English, 1));
/// assert_eq!(noisy?[2].sentences, plain?[2].sentences);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn plainly_captioned(
    count: usize,
    side: usize,
    language: CaptionLanguage,
    seed: u64,
) -> Result<Vec<Captioned>> {
    painted(count, side, language, seed, Painting::Plain)
}

fn painted(
    count: usize,
    side: usize,
    language: CaptionLanguage,
    seed: u64,
    painting: Painting,
) -> Result<Vec<Captioned>> {
    if side < LEAST_SIDE {
        return Err(Error::invalid(format!(
            "pictures of side {side} were asked for; below {LEAST_SIDE} shapes look alike"
        )));
    }
    let (seed, _) = Random::named(seed, "captioned").state();
    let one = |at| {
        let random = Random::resume(seed, at * DRAWS);
        let drawn = draw(&random, side, language, painting);
        debug_assert_eq!(random.state().1, (at + 1) * DRAWS);
        drawn
    };
    (0..count as u64).into_par_iter().map(one).collect()
}

/// How many numbers a picture takes from its stream; so each has a place of its own there.
const DRAWS: u64 = 15;

fn draw(
    random: &Random,
    side: usize,
    language: CaptionLanguage,
    painting: Painting,
) -> Result<Captioned> {
    let axis = random.below(2);
    let across = |reach: f64, low: f64| low + reach + (0.5 - 2.0 * reach) * random.number();
    let middle = 0.5 + ASIDE * (2.0 * random.number() - 1.0);
    let thing = |low: f64| {
        let small = chance(random, 0.5);
        let reach = if small { SMALL } else { USUAL };
        let along = across(reach, low);
        let beside = middle + APART * (2.0 * random.number() - 1.0);
        let place = if axis == 0 { [along, beside] } else { [beside, along] };
        let (shape, color) = (random.below(SHAPES.len()), random.below(COLORS.len()));
        Thing { look: Look { shape, color, small }, place }
    };
    let [mut first, mut second] = [0.0, 0.5].map(thing);
    if painting == Painting::Plain {
        for place in first.place.iter_mut().chain(&mut second.place) {
            *place = (*place * PLAIN_STEPS).round() / PLAIN_STEPS;
        }
    }
    // Two things alike leave nothing to choose by, and one sentence for both ways.
    if second.look == first.look {
        second.look.color = (second.look.color + 1) % COLORS.len();
    }
    let sentences = sentences(language, axis, [first.look, second.look]).into();
    let pixels = paint(random, side, &[first, second], painting)?;
    Ok(Captioned { pixels, sentences })
}

/// Both ways to say what stands where, the first thing being left of the second (axis 0) or above it.
pub(super) fn sentences(
    language: CaptionLanguage,
    axis: usize,
    [first, second]: [Look; 2],
) -> [String; 2] {
    let [before, after] = &RELATIONS[axis];
    [sentence(language, first, before, second), sentence(language, second, after, first)]
}

fn sentence(language: CaptionLanguage, one: Look, relation: &Word, other: Look) -> String {
    match language {
        CaptionLanguage::English => {
            let name = |look: Look| {
                let small = if look.small { "small " } else { "" };
                let color = COLORS[look.color].name.english;
                format!("a {small}{color} {}", SHAPES[look.shape].english)
            };
            format!("{} {} {}", name(one), relation.english, name(other))
        }
        CaptionLanguage::Chinese => {
            let name = |look: Look| {
                let small = if look.small { "小" } else { "" };
                let color = COLORS[look.color].name.chinese;
                format!("一个{color}的{small}{}", SHAPES[look.shape].chinese)
            };
            format!("{}在{}的{}", name(one), name(other), relation.chinese)
        }
    }
}

fn paint(random: &Random, side: usize, things: &[Thing], painting: Painting) -> Result<Vec<f32>> {
    let (mut ground, mut light) = (0.3 * random.number(), 0.8 + 0.2 * random.number());
    let mut pixels = normal(random, 3 * side * side, NOISE)?;
    if painting == Painting::Plain {
        (ground, light) = (PLAIN_GROUND, PLAIN_LIGHT);
        pixels.fill(0.0);
    }
    for (at, pixel) in pixels.iter_mut().enumerate() {
        let (plane, place) = (at / (side * side), at % (side * side));
        let seen = things.iter().find(|thing| thing.covers(place % side, place / side, side));
        let value = seen.map_or(ground, |thing| light * COLORS[thing.look.color].rgb[plane]);
        *pixel = (*pixel + value as f32).clamp(0.0, 1.0);
    }
    Ok(pixels)
}

impl Look {
    /// Half of what it spans, as a part of the side.
    pub(super) fn reach(self) -> f64 {
        if self.small { SMALL } else { USUAL }
    }
}

impl Thing {
    /// Whether it covers the middle of a pixel of a picture with this side; y grows downwards.
    pub(super) fn covers(&self, x: usize, y: usize, side: usize) -> bool {
        let middle = |at: usize| (at as f64 + 0.5) / side as f64;
        let reach = self.look.reach();
        let (x, y) = ((middle(x) - self.place[0]) / reach, (middle(y) - self.place[1]) / reach);
        let inside = x.abs() <= 1.0 && y.abs() <= 1.0;
        match SHAPES[self.look.shape].english {
            "circle" => x.hypot(y) <= 1.0,
            "square" => inside,
            "triangle" => inside && x.abs() <= (y + 1.0) / 2.0,
            _ => inside && x.abs().min(y.abs()) <= 0.3,
        }
    }
}
