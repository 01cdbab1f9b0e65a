//! What each head does, over a part: where it looks, how sharply, at what, and which heads do the same.

use super::row::{Row, Rows};
use super::{examples, places::places};
use crate::task::input::{Input, InputForm};
use crate::task::model::Model;
use crate::task::part::Part;
use regard::attention::Site;
use regard_data::{Error, Result, quietly, tick};
use regard_picture::scene::{Map, Scene};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the heads of a model do over a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The part.
    pub part: Part,
    /// The examples that were looked at.
    pub examples: usize,
    /// Every head that a scene shows.
    pub heads: Vec<HeadProfile>,
    /// Heads that look at the same: their places in `heads`, and the share of their weights that is the
    /// same.
    pub alike: Vec<(usize, usize, f64)>,
}

/// What a head does. Shares are of its weight, the mean over all queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadProfile {
    /// The scene that shows it.
    pub scene: String,
    /// The place of that scene among all of an input.
    pub scene_at: usize,
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// The queries that were looked at.
    pub queries: usize,
    /// How far the keys are that it looks at; none where queries and keys are not one sequence.
    pub distance: Option<f64>,
    /// The share on the query's own place, as above.
    pub itself: Option<f64>,
    /// The share on the place before.
    pub previous: Option<f64>,
    /// The share on the place after.
    pub next: Option<f64>,
    /// The share on the first key.
    pub first: f64,
    /// The share on punctuation and marks such as `<start>`, and how much of the keys these are.
    pub separators: [f64; 2],
    /// The share on other words of the query's own class, and how much of the other words these are;
    /// none where the data have no classes.
    pub same_label: Option<[f64; 2]>,
    /// The class that it looks at most beyond chance: its name, the share on it, and how much of the
    /// keys it is.
    pub label: Option<(String, f64, f64)>,
    /// The greatest weight of a query.
    pub sharpness: f64,
    /// Over how many keys a query's weight is spread: e to the entropy.
    pub spread: f64,
    /// How many keys a query has.
    pub keys: f64,
    /// Queries with the greatest weights, no two of the same words.
    pub strongest: Vec<Strongest>,
    /// What it does most.
    pub does: Does,
}

/// A query with a great weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Strongest {
    /// The example, from 0.
    pub example: usize,
    /// Who looks.
    pub row: String,
    /// At what.
    pub column: String,
    /// The weight.
    pub weight: f64,
}

/// What a head does most.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Does {
    /// It looks one word back.
    Previous {
        /// With this share of its weight.
        share: f64,
    },
    /// It looks at the word itself.
    Itself {
        /// With this share of its weight.
        share: f64,
    },
    /// It looks one word ahead.
    Next {
        /// With this share of its weight.
        share: f64,
    },
    /// It looks at the first word.
    First {
        /// With this share of its weight.
        share: f64,
    },
    /// It looks at punctuation and marks.
    Separators {
        /// With this share of its weight.
        share: f64,
    },
    /// It looks at words of one class.
    Label {
        /// The class.
        label: String,
        /// With this share of its weight.
        share: f64,
    },
    /// It looks at one key, here or there.
    Sharp {
        /// With this share of its weight.
        share: f64,
    },
    /// It is spread over many keys.
    Spread {
        /// So many.
        over: f64,
        /// Of so many.
        of: f64,
    },
}

/// The least share that says what a head mostly does.
const MOSTLY: f64 = 0.4;
/// Separators and classes say something from this many times their number on.
const BEYOND_CHANCE: f64 = 1.5;
/// Queries that are kept.
const KEPT: usize = 3;
/// Heads that agree in this share of their weights do the same.
const SAME: f64 = 0.8;
/// Weights that are compared at most, over all pairs of heads.
const COMPARED: usize = 20_000_000;

/// Sums over queries.
#[derive(Default)]
struct Sums {
    scene_at: usize,
    queries: usize,
    placed: usize,
    distance: f64,
    itself: f64,
    previous: f64,
    next: f64,
    first: f64,
    separators: [f64; 2],
    same_label: [f64; 2],
    labeled: usize,
    /// Weight and number, by class.
    labels: BTreeMap<String, [f64; 2]>,
    sharpness: f64,
    spread: f64,
    keys: f64,
    strongest: Vec<Strongest>,
}

/// A head, and the scene that shows it.
type Place = (String, Site, usize, usize);

impl Profile {
    /// Looks at some examples of a part, evenly over all of it. Refuses a part without examples, and a
    /// model whose scenes show no head.
    pub fn compute(model: &dyn Model, part: Part) -> Result<Self> {
        let count = quietly(|| model.judge(part))?.len();
        if count == 0 {
            let name = part.name();
            return Err(Error::invalid(format!("the {name} part holds no examples")));
        }
        let mut some = places(count);
        if model.asks().form == InputForm::Node {
            // Each of them computes the whole graph.
            let step = some.len().div_ceil(32).max(1);
            some = some.into_iter().step_by(step).collect();
        }
        let mut heads: Vec<(Place, Sums)> = Vec::new();
        let mut pairs: BTreeMap<(usize, usize), (f64, usize)> = BTreeMap::new();
        let (mut done, mut left) = (0, COMPARED);
        examples::each(model, part, &some, |example, input| {
            let scenes = quietly(|| model.show(input))?;
            let labels = word_labels(model, input);
            for (at, (name, scene)) in scenes.iter().enumerate() {
                let found = add_scene(&mut heads, (example, at, name), scene, &labels);
                compare(&mut pairs, &mut left, scene, &found);
            }
            done += 1;
            tick("looking", done, some.len())
        })?;
        if heads.is_empty() {
            return Err(Error::invalid("this model has no heads that a scene shows"));
        }
        let mut alike: Vec<(usize, usize, f64)> = pairs
            .into_iter()
            .map(|((a, b), (sum, count))| (a, b, sum / count.max(1) as f64))
            .filter(|pair| pair.2 >= SAME)
            .collect();
        alike.sort_by(|a, b| b.2.total_cmp(&a.2));
        let heads = heads.into_iter().map(|(place, sums)| sums.profile(place)).collect();
        Ok(Self { part, examples: some.len(), heads, alike })
    }
}

/// The classes of a sentence's words, where the task knows them: `the/DET cat/NOUN`.
fn word_labels(model: &dyn Model, input: &Input) -> Vec<String> {
    if model.asks().form != InputForm::Sentence || model.asks().labels.is_empty() {
        return Vec::new();
    }
    let truth = model.truth(input).unwrap_or_default();
    let label = |word: &str| word.rsplit_once('/').map(|(_, label)| label.to_string());
    truth.split_whitespace().map(label).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Adds every head of a scene; which of its maps is which head.
fn add_scene(
    heads: &mut Vec<(Place, Sums)>,
    (example, scene_at, name): (usize, usize, &str),
    scene: &Scene,
    labels: &[String],
) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, map) in scene.maps().iter().enumerate() {
        let Some((site, layer, head)) = head_of(map) else { continue };
        let rows = Rows::of(scene, map, labels);
        if rows.row_names.is_empty() {
            continue;
        }
        let place = (name.to_string(), site, layer, head);
        let known = heads.iter().position(|(known, _)| *known == place);
        let head = known.unwrap_or_else(|| {
            heads.push((place, Sums { scene_at, ..Sums::default() }));
            heads.len() - 1
        });
        rows.all.iter().for_each(|row| heads[head].1.add(example, &rows, row));
        found.push((at, head));
    }
    found
}

fn head_of(map: &Map) -> Option<(Site, usize, usize)> {
    map.place.and_then(|place| Some((place.site, place.layer, place.head?)))
}

/// Adds how much of their weights the heads of a scene have in common, as long as there is time left.
fn compare(
    pairs: &mut BTreeMap<(usize, usize), (f64, usize)>,
    left: &mut usize,
    scene: &Scene,
    found: &[(usize, usize)],
) {
    let maps = scene.maps();
    let Some(size) = found.first().map(|&(at, _)| maps[at].weights.len()) else { return };
    let cost = found.len() * found.len() / 2 * size;
    if cost > *left {
        return;
    }
    *left -= cost;
    for (place, &(a, first)) in found.iter().enumerate() {
        for &(b, second) in &found[place + 1..] {
            let both = maps[a].weights.iter().zip(&maps[b].weights);
            let (mut common, mut all) = (0.0, 0.0);
            for (&a, &b) in both.filter(|(a, b)| a.is_finite() && b.is_finite()) {
                common += f64::from(a.min(b));
                all += f64::from(a + b) / 2.0;
            }
            if all > 0.0 {
                let pair = pairs.entry((first, second)).or_default();
                *pair = (pair.0 + common / all, pair.1 + 1);
            }
        }
    }
}

/// Whether a key is punctuation or a mark.
fn is_separator(name: &str) -> bool {
    let is_mark = |open, close| name.len() > 2 && name.starts_with(open) && name.ends_with(close);
    is_mark('<', '>') || is_mark('[', ']') || !name.chars().any(char::is_alphanumeric)
}

impl Sums {
    fn add(&mut self, example: usize, rows: &Rows<'_>, row: &Row) {
        self.queries += 1;
        let count = row.keys.len() as f64;
        self.keys += count;
        let mut entropy = 0.0;
        let mut best = (0, 0.0);
        for &(key, weight) in &row.keys {
            entropy -= if weight > 0.0 { weight * weight.ln() } else { 0.0 };
            best = if weight > best.1 { (key, weight) } else { best };
            if key == 0 {
                self.first += weight;
            }
            if rows.key_names.get(key).is_some_and(|name| is_separator(name)) {
                self.separators[0] += weight;
                self.separators[1] += 1.0 / count;
            }
            if let Some(own) = row.own {
                self.distance += weight * key.abs_diff(own) as f64;
                self.itself += if key == own { weight } else { 0.0 };
                self.previous += if key + 1 == own { weight } else { 0.0 };
                self.next += if key == own + 1 { weight } else { 0.0 };
            }
            if let Some(label) = rows.label(key) {
                let sum = self.labels.entry(label.into()).or_default();
                *sum = [sum[0] + weight, sum[1] + 1.0 / count];
            }
        }
        self.placed += usize::from(row.own.is_some());
        self.add_same_label(rows, row);
        self.sharpness += best.1;
        self.spread += entropy.exp();
        let (row, column) = (rows.row_names[row.at].to_string(), rows.key_name(best.0));
        self.keep(Strongest { example, row, column, weight: best.1 });
    }

    /// The weight on others of the query's own class, beside what chance would give.
    fn add_same_label(&mut self, rows: &Rows<'_>, row: &Row) {
        let Some((own, label)) = row.own.and_then(|own| Some((own, rows.label(own)?))) else {
            return;
        };
        let others = || row.keys.iter().filter(move |key| key.0 != own);
        let same = |key: &&(usize, f64)| rows.label(key.0) == Some(label);
        let weight: f64 = others().map(|key| key.1).sum();
        let count = others().count();
        if weight > 0.0 && count > 0 {
            self.labeled += 1;
            self.same_label[0] += others().filter(same).map(|key| key.1).sum::<f64>() / weight;
            self.same_label[1] += others().filter(same).count() as f64 / count as f64;
        }
    }

    fn keep(&mut self, one: Strongest) {
        let words = |other: &Strongest| (other.row.clone(), other.column.clone());
        if let Some(same) = self.strongest.iter_mut().find(|other| words(other) == words(&one)) {
            if one.weight > same.weight {
                *same = one;
            }
        } else {
            self.strongest.push(one);
        }
        self.strongest.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.strongest.truncate(KEPT);
    }

    fn profile(self, (scene, site, layer, head): Place) -> HeadProfile {
        let queries = self.queries.max(1) as f64;
        let mean = |sum: f64| sum / queries;
        let is_sequence = site.is_self_attention() && self.placed > 0;
        let placed = |sum: f64| is_sequence.then(|| sum / self.placed.max(1) as f64);
        let own = (self.placed > 0).then(|| self.itself / self.placed as f64);
        let label = self.labels.iter().map(|(name, &[w, n])| (name.clone(), mean(w), mean(n)));
        let label = label.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)));
        let labeled = self.labeled as f64;
        let mut profile = HeadProfile {
            scene,
            scene_at: self.scene_at,
            site,
            layer,
            head,
            queries: self.queries,
            distance: placed(self.distance),
            itself: own,
            previous: placed(self.previous),
            next: placed(self.next),
            first: mean(self.first),
            separators: self.separators.map(mean),
            same_label: (self.labeled > 0).then(|| self.same_label.map(|sum| sum / labeled)),
            label,
            sharpness: mean(self.sharpness),
            spread: mean(self.spread),
            keys: mean(self.keys),
            strongest: self.strongest,
            does: Does::Sharp { share: 0.0 },
        };
        profile.does = profile.mostly();
        profile
    }
}

impl HeadProfile {
    /// What it does most, of what it does with enough of its weight.
    fn mostly(&self) -> Does {
        let mut all = vec![
            (self.previous, Does::Previous { share: self.previous.unwrap_or(0.0) }),
            (self.itself, Does::Itself { share: self.itself.unwrap_or(0.0) }),
            (self.next, Does::Next { share: self.next.unwrap_or(0.0) }),
            (self.distance.map(|_| self.first), Does::First { share: self.first }),
        ];
        let [share, chance] = self.separators;
        let is_more = share > BEYOND_CHANCE * chance;
        all.push((is_more.then_some(share), Does::Separators { share }));
        if let Some((label, share, chance)) = self.label.clone() {
            let is_more = share > BEYOND_CHANCE * chance;
            all.push((is_more.then_some(share), Does::Label { label, share }));
        }
        let share = |one: &(Option<f64>, Does)| one.0.unwrap_or(0.0);
        let best = all.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        match best {
            Some((Some(share), does)) if share >= MOSTLY => does,
            _ if self.sharpness >= 0.5 => Does::Sharp { share: self.sharpness },
            _ => Does::Spread { over: self.spread, of: self.keys },
        }
    }

    /// What it does, in a sentence.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| format!("{:.0}% of its weight", 100.0 * share);
        let place = |what: &str, share| format!("mostly looks {what} ({})", percent(share));
        let writes = self.site == Site::Decoder;
        match &self.does {
            Does::Previous { share } if writes => {
                place("at the word before the one just written", *share)
            }
            Does::Itself { share } if writes => place("at the word just written", *share),
            Does::Itself { share } if self.site == Site::Graph => {
                place("at the node itself", *share)
            }
            Does::Previous { share } => place("one word back", *share),
            Does::Itself { share } => place("at the word itself", *share),
            Does::Next { share } => place("one word ahead", *share),
            Does::First { share } => place("at the first word", *share),
            Does::Separators { share } => place("at punctuation and marks", *share),
            Does::Label { label, share } => place(&format!("at {label}"), *share),
            Does::Sharp { share } => {
                format!("picks one key, with {} on it in the mean", percent(*share))
            }
            Does::Spread { over, of } => format!("is spread over about {over:.1} of {of:.1} keys"),
        }
    }
}
