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
struct Word {
    english: &'static str,
    chinese: &'static str,
}

struct Color {
    name: Word,
    rgb: [f64; 3],
}

const SHAPES: [Word; 4] = [
    Word { english: "circle", chinese: "圆形" },
    Word { english: "square", chinese: "方形" },
    Word { english: "triangle", chinese: "三角形" },
    Word { english: "cross", chinese: "十字" },
];

const COLORS: [Color; 5] = [
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

/// A picture and what may be said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Captioned {
    /// `[3, side, side]`, red, green and blue, from 0 to 1.
    pub pixels: Vec<f32>,
    /// Sentences that are all right.
    pub sentences: Vec<String>,
}

struct Thing {
    shape: usize,
    color: usize,
    small: bool,
    /// Its middle, as parts of the side.
    place: [f64; 2],
}

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
    if side < LEAST_SIDE {
        return Err(Error::invalid(format!(
            "pictures of side {side} were asked for; below {LEAST_SIDE} shapes look alike"
        )));
    }
    let (seed, _) = Random::named(seed, "captioned").state();
    let one = |at| {
        let random = Random::resume(seed, at * DRAWS);
        let drawn = draw(&random, side, language);
        debug_assert_eq!(random.state().1, (at + 1) * DRAWS);
        drawn
    };
    (0..count as u64).into_par_iter().map(one).collect()
}

/// How many numbers a picture takes from its stream; so each has a place of its own there.
const DRAWS: u64 = 15;

fn draw(random: &Random, side: usize, language: CaptionLanguage) -> Result<Captioned> {
    let axis = random.below(2);
    let across = |reach: f64, low: f64| low + reach + (0.5 - 2.0 * reach) * random.number();
    let middle = 0.5 + 0.1 * (2.0 * random.number() - 1.0);
    let thing = |low: f64| {
        let small = chance(random, 0.5);
        let reach = if small { SMALL } else { USUAL };
        let along = across(reach, low);
        let beside = middle + 0.08 * (2.0 * random.number() - 1.0);
        let place = if axis == 0 { [along, beside] } else { [beside, along] };
        Thing { shape: random.below(SHAPES.len()), color: random.below(COLORS.len()), small, place }
    };
    let first = thing(0.0);
    let mut second = thing(0.5);
    // Two things alike leave nothing to choose by, and one sentence for both ways.
    if (second.shape, second.color, second.small) == (first.shape, first.color, first.small) {
        second.color = (second.color + 1) % COLORS.len();
    }
    let [before, after] = &RELATIONS[axis];
    let sentences = vec![
        sentence(language, &first, before, &second),
        sentence(language, &second, after, &first),
    ];
    Ok(Captioned { pixels: paint(random, side, &[first, second])?, sentences })
}

fn sentence(language: CaptionLanguage, one: &Thing, relation: &Word, other: &Thing) -> String {
    match language {
        CaptionLanguage::English => {
            let name = |thing: &Thing| {
                let small = if thing.small { "small " } else { "" };
                let color = COLORS[thing.color].name.english;
                format!("a {small}{color} {}", SHAPES[thing.shape].english)
            };
            format!("{} {} {}", name(one), relation.english, name(other))
        }
        CaptionLanguage::Chinese => {
            let name = |thing: &Thing| {
                let small = if thing.small { "小" } else { "" };
                let color = COLORS[thing.color].name.chinese;
                format!("一个{color}的{small}{}", SHAPES[thing.shape].chinese)
            };
            format!("{}在{}的{}", name(one), name(other), relation.chinese)
        }
    }
}

fn paint(random: &Random, side: usize, things: &[Thing]) -> Result<Vec<f32>> {
    let ground = 0.3 * random.number();
    let light = 0.8 + 0.2 * random.number();
    let mut pixels = normal(random, 3 * side * side, NOISE)?;
    for (at, pixel) in pixels.iter_mut().enumerate() {
        let (plane, place) = (at / (side * side), at % (side * side));
        let middle = |at: usize| (at as f64 + 0.5) / side as f64;
        let (x, y) = (middle(place % side), middle(place / side));
        let seen = things.iter().find(|thing| thing.covers(x, y));
        let value = seen.map_or(ground, |thing| light * COLORS[thing.color].rgb[plane]);
        *pixel = (*pixel + value as f32).clamp(0.0, 1.0);
    }
    Ok(pixels)
}

impl Thing {
    /// Whether it covers a point; y grows downwards.
    fn covers(&self, x: f64, y: f64) -> bool {
        let reach = if self.small { SMALL } else { USUAL };
        let (x, y) = ((x - self.place[0]) / reach, (y - self.place[1]) / reach);
        let inside = x.abs() <= 1.0 && y.abs() <= 1.0;
        match SHAPES[self.shape].english {
            "circle" => x.hypot(y) <= 1.0,
            "square" => inside,
            "triangle" => inside && x.abs() <= (y + 1.0) / 2.0,
            _ => inside && x.abs().min(y.abs()) <= 0.3,
        }
    }
}
