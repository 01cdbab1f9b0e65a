//! Little stories and a question whose answer needs one, two or three of their sentences.

use super::{chance, distinct, pick};
use crate::Result;
use regard::tensor::Random;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The language of a story.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoryLanguage {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

/// A story and a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// What happened, in order.
    pub sentences: Vec<String>,
    /// The question.
    pub question: String,
    /// Its answer, a place.
    pub answer: String,
    /// The sentences that tell it, from 0, from the one about what is asked for to the one with the
    /// answer.
    pub supporting: Vec<usize>,
}

/// English first, Chinese second.
type Both = [&'static str; 2];

const PEOPLE: [Both; 6] = [
    ["Mary", "李雷"],
    ["John", "韩梅"],
    ["Sandra", "王芳"],
    ["Daniel", "张伟"],
    ["Anna", "赵敏"],
    ["Tom", "陈刚"],
];
const PLACES: [Both; 8] = [
    ["kitchen", "厨房"],
    ["garden", "花园"],
    ["hallway", "走廊"],
    ["bathroom", "浴室"],
    ["office", "书店"],
    ["school", "学校"],
    ["attic", "阁楼"],
    ["cellar", "地窖"],
];
const THINGS: [Both; 4] = [["key", "钥匙"], ["letter", "信件"], ["coin", "硬币"], ["ring", "戒指"]];
const BOXES: [Both; 4] = [["box", "盒子"], ["bag", "书包"], ["basket", "竹篮"], ["jar", "瓦罐"]];

const GO: [Both; 3] = [
    ["{} went to the {}.", "{}去了{}。"],
    ["{} moved to the {}.", "{}来到{}。"],
    ["{} walked to the {}.", "{}走到{}。"],
];
const TAKE: [Both; 2] = [["{} took the {}.", "{}拿起{}。"], ["{} picked up the {}.", "{}捡起{}。"]];
const GIVE: Both = ["{} gave the {} to {}.", "{}把{}给了{}。"];
const PUT: Both = ["{} put the {} into the {}.", "{}把{}放进{}。"];
const WHERE_IS: Both = ["Where is {}?", "{}在哪里？"];
const WHERE_IS_THE: Both = ["Where is the {}?", "{}在哪里？"];

/// What happens, to whom, and who or what comes of it, with the sentence that tells it.
#[derive(Default)]
struct World {
    sentences: Vec<String>,
    /// Where each person went last.
    at: BTreeMap<usize, (usize, usize)>,
    /// Who has each object.
    holder: BTreeMap<usize, (usize, usize)>,
    /// Which box each thing is in.
    inside: BTreeMap<usize, (usize, usize)>,
}

struct Teller<'a> {
    random: &'a Random,
    language: usize,
    facts: usize,
}

impl Teller<'_> {
    fn filled(&self, pattern: &Both, names: &[&Both]) -> String {
        let mut parts = pattern[self.language].split("{}");
        let mut text = parts.next().unwrap_or_default().to_string();
        for (name, part) in names.iter().zip(parts) {
            text.push_str(name[self.language]);
            text.push_str(part);
        }
        text
    }

    /// What people carry: boxes where things are put into them.
    fn objects(&self) -> &'static [Both; 4] {
        if self.facts == 3 { &BOXES } else { &THINGS }
    }

    fn go(&self, world: &mut World) {
        let (who, place) = (self.random.below(PEOPLE.len()), self.random.below(PLACES.len()));
        world.at.insert(who, (place, world.sentences.len()));
        let how = pick(self.random, &GO);
        world.sentences.push(self.filled(how, &[&PEOPLE[who], &PLACES[place]]));
    }

    fn pass(&self, world: &mut World) {
        let (what, who) = (self.random.below(BOXES.len()), self.random.below(PEOPLE.len()));
        let object = &self.objects()[what];
        let sentence = match world.holder.get(&what) {
            Some(&(before, _)) if before != who && chance(self.random, 0.5) => {
                self.filled(&GIVE, &[&PEOPLE[before], object, &PEOPLE[who]])
            }
            _ => self.filled(pick(self.random, &TAKE), &[&PEOPLE[who], object]),
        };
        world.holder.insert(what, (who, world.sentences.len()));
        world.sentences.push(sentence);
    }

    fn put(&self, world: &mut World) {
        let who = pick(self.random, &PEOPLE);
        let (what, into) = (self.random.below(THINGS.len()), self.random.below(BOXES.len()));
        world.inside.insert(what, (into, world.sentences.len()));
        world.sentences.push(self.filled(&PUT, &[who, &THINGS[what], &BOXES[into]]));
    }

    /// All that can be asked: the name, its place, the sentences that tell it.
    fn askable(&self, world: &World) -> Vec<(&'static Both, usize, Vec<usize>)> {
        let person = |who: usize| {
            let &(place, told) = world.at.get(&who)?;
            Some((place, vec![told]))
        };
        let object = |what: usize| {
            let &(who, told) = world.holder.get(&what)?;
            let (place, rest) = person(who)?;
            Some((place, [vec![told], rest].concat()))
        };
        let thing = |what: usize| {
            let &(into, told) = world.inside.get(&what)?;
            let (place, rest) = object(into)?;
            Some((place, [vec![told], rest].concat()))
        };
        let of = |name: &'static Both, found: Option<(usize, Vec<usize>)>| {
            found.map(|(place, told)| (name, place, told))
        };
        match self.facts {
            1 => PEOPLE.iter().enumerate().filter_map(|(at, name)| of(name, person(at))).collect(),
            2 => THINGS.iter().enumerate().filter_map(|(at, name)| of(name, object(at))).collect(),
            _ => THINGS.iter().enumerate().filter_map(|(at, name)| of(name, thing(at))).collect(),
        }
    }

    fn story(&self) -> Story {
        loop {
            let mut world = World::default();
            for _ in 0..3 * self.facts + self.random.below(6) {
                match (self.facts, self.random.number()) {
                    (1, _) | (_, ..0.45) => self.go(&mut world),
                    (2, _) | (_, ..0.75) => self.pass(&mut world),
                    _ => self.put(&mut world),
                }
            }
            let askable = self.askable(&world);
            if askable.is_empty() {
                continue;
            }
            let (name, place, supporting) = pick(self.random, &askable).clone();
            let question = if self.facts == 1 { &WHERE_IS } else { &WHERE_IS_THE };
            return Story {
                sentences: world.sentences,
                question: self.filled(question, &[name]),
                answer: PLACES[place][self.language].into(),
                supporting,
            };
        }
    }
}

/// `count` different stories with a question each. With one fact a person is looked for, and only
/// the last place the person went to counts; with two an object, which is where the last one to get
/// it is; with three a thing in a box that somebody has.
///
/// ```
/// use regard_data::toy::{StoryLanguage, stories};
/// let story = &stories(1, 1, 2, StoryLanguage::English)?[0];
/// assert_eq!(story.supporting.len(), 2);
/// assert!(story.sentences[story.supporting[1]].contains(&story.answer));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn stories(
    count: usize,
    seed: u64,
    facts: usize,
    language: StoryLanguage,
) -> Result<Vec<Story>> {
    if !(1..=3).contains(&facts) {
        let what = format!("stories with {facts} supporting facts; there are 1 to 3");
        return Err(crate::Error::invalid(what));
    }
    let random = Random::named(seed, "stories");
    let language = match language {
        StoryLanguage::English => 0,
        StoryLanguage::Chinese => 1,
    };
    let teller = Teller { random: &random, language, facts };
    let text = |story: &Story| vec![format!("{} {}", story.sentences.join(" "), story.question)];
    distinct(count, "stories", || teller.story(), text)
}
