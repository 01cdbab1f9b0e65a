//! What stands in a plain picture of two shapes, by a rule: the scene that fits best.

use super::captioned::{
    BESIDE, COLORS, CaptionLanguage, Look, PLAIN_GROUND, PLAIN_LIGHT, PLAIN_STEPS, SHAPES, Thing,
    sentences,
};
use rayon::prelude::*;
use std::collections::HashMap;

/// What stands in a picture: two things, and which way one stands from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognized {
    /// 0: the first is left of the second; 1: above it.
    axis: usize,
    things: [Look; 2],
}

impl Recognized {
    /// Both sentences that say so.
    pub fn sentences(&self, language: CaptionLanguage) -> [String; 2] {
        sentences(language, self.axis, self.things)
    }

    /// How much of another scene is there too: the shares of its shapes, of its colors, of its sizes,
    /// and 1 or 0 for the places.
    ///
    /// ```
    /// use regard_data::toy::{CaptionLanguage, SceneReader};
    /// let reader = SceneReader::new(24, CaptionLanguage::English);
    /// let asked = reader.named("a red circle left of a small blue square").unwrap();
    /// let found = reader.named("a red circle above a small green square").unwrap();
    /// assert_eq!(found.shares_of(&asked), [1.0, 0.5, 1.0, 0.0]);
    /// ```
    pub fn shares_of(&self, other: &Self) -> [f64; 4] {
        let pairs = || self.things.iter().zip(&other.things);
        let share = |same: fn(&Look, &Look) -> bool| {
            pairs().filter(|(a, b)| same(a, b)).count() as f64 / 2.0
        };
        [
            share(|a, b| a.shape == b.shape),
            share(|a, b| a.color == b.color),
            share(|a, b| a.small == b.small),
            f64::from(u8::from(self.axis == other.axis)),
        ]
    }
}

/// A thing of no color yet, somewhere in a half of the picture, by the pixels that it covers.
struct Template {
    shape: usize,
    small: bool,
    covers: Vec<usize>,
}

/// Reads scenes: out of sentences, and out of pictures by the squared error of everything that could
/// stand there, half by half.
pub struct SceneReader {
    side: usize,
    /// By axis and half.
    templates: [[Vec<Template>; 2]; 2],
    named: HashMap<String, Recognized>,
}

/// All that can be told apart by name.
fn looks() -> impl Iterator<Item = Look> {
    (0..SHAPES.len() * COLORS.len() * 2).map(|at| Look {
        shape: at / 2 % SHAPES.len(),
        color: at / 2 / SHAPES.len(),
        small: at % 2 == 1,
    })
}

impl SceneReader {
    /// For pictures with this side and sentences of this language.
    ///
    /// ```
    /// use regard_data::toy::{CaptionLanguage, SceneReader, plainly_captioned};
    /// let language = CaptionLanguage::English;
    /// let picture = &plainly_captioned(1, 24, language, 1)?[0];
    /// let reader = SceneReader::new(24, language);
    /// assert_eq!(reader.read(&picture.pixels).sentences(language)[0], picture.sentences[0]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn new(side: usize, language: CaptionLanguage) -> Self {
        let mut named = HashMap::new();
        for axis in 0..2 {
            for first in looks() {
                for second in looks() {
                    let scene = Recognized { axis, things: [first, second] };
                    named.extend(scene.sentences(language).map(|sentence| (sentence, scene)));
                }
            }
        }
        let templates = [0, 1].map(|axis| [0.0, 0.5].map(|low| templates(side, axis, low)));
        Self { side, templates, named }
    }

    /// The scene that a sentence names; none where it names none.
    pub fn named(&self, sentence: &str) -> Option<Recognized> {
        self.named.get(sentence).copied()
    }

    /// The scene in a picture, `[3, side, side]` from 0 to 1: of all that could stand there, on the
    /// ground and in the light of [`plainly_captioned`](super::plainly_captioned), what is nearest.
    pub fn read(&self, pixels: &[f32]) -> Recognized {
        let plane = self.side * self.side;
        // How much nearer each pixel is to a color than to the ground; below 0 where it is nearer.
        let distance = |at: usize, color: [f64; 3]| -> f64 {
            (0..3).map(|c| (f64::from(pixels[c * plane + at]) - color[c]).powi(2)).sum()
        };
        let colors = COLORS.map(|color| color.rgb.map(|value| value * PLAIN_LIGHT));
        let gains: Vec<[f64; COLORS.len()]> = (0..plane)
            .map(|at| {
                let ground = distance(at, [PLAIN_GROUND; 3]);
                colors.map(|color| distance(at, color) - ground)
            })
            .collect();
        let best = |templates: &Vec<Template>| {
            let fit = |template: &Template| {
                let mut sums = [0.0; COLORS.len()];
                for &at in &template.covers {
                    sums.iter_mut().zip(gains[at]).for_each(|(sum, gain)| *sum += gain);
                }
                let least = (0..COLORS.len()).min_by(|&a, &b| sums[a].total_cmp(&sums[b]));
                let color = least.unwrap_or(0);
                (sums[color], Look { shape: template.shape, color, small: template.small })
            };
            let nothing = (f64::INFINITY, Look { shape: 0, color: 0, small: false });
            templates.iter().map(fit).fold(nothing, |a, b| if b.0 < a.0 { b } else { a })
        };
        let [across, down] = [0, 1].map(|axis| {
            let [first, second] = [0, 1].map(|half| best(&self.templates[axis][half]));
            (first.0 + second.0, Recognized { axis, things: [first.1, second.1] })
        });
        if down.0 < across.0 { down.1 } else { across.1 }
    }

    /// As [`read`](Self::read), of many.
    pub fn read_all(&self, pictures: &[Vec<f32>]) -> Vec<Recognized> {
        pictures.par_iter().map(|pixels| self.read(pixels)).collect()
    }
}

/// Everything that could stand in a half of a picture: where plain shapes do stand, and at steps of two
/// thirds of a pixel, since a model may draw them elsewhere.
fn templates(side: usize, axis: usize, low: f64) -> Vec<Template> {
    let steps = |from: f64, to: f64| -> Vec<f64> {
        let count = ((to - from) * side as f64 * 1.5).ceil() as usize;
        let between = (0..=count).map(|at| from + (to - from) * at as f64 / count.max(1) as f64);
        // Rounded, a place may lie a little outside.
        let near = (from - 0.01)..=(to + 0.01);
        let plain = (0..=PLAIN_STEPS as usize).map(|at| at as f64 / PLAIN_STEPS);
        plain.filter(|place| near.contains(place)).chain(between).collect()
    };
    let mut all = Vec::new();
    for look in looks().filter(|look| look.color == 0) {
        let reach = look.reach();
        for along in steps(low + reach, low + 0.5 - reach) {
            for beside in steps(0.5 - BESIDE, 0.5 + BESIDE) {
                let place = if axis == 0 { [along, beside] } else { [beside, along] };
                let thing = Thing { look, place };
                let covers = (0..side * side)
                    .filter(|at| thing.covers(at % side, at / side, side))
                    .collect();
                all.push(Template { shape: look.shape, small: look.small, covers });
            }
        }
    }
    all
}
