//! Little reports with a headline. Every name is made of syllables and occurs in one report alone,
//! so that no part of the data knows a name of another: they can be copied, and not be learned.

use super::{chance, distinct, pick};
use crate::Result;
use regard::tensor::Random;

const ONSETS: [&str; 16] =
    ["b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "br", "st"];
const VOWELS: [&str; 7] = ["a", "e", "i", "o", "u", "ei", "ou"];
const CODAS: [&str; 8] = ["", "", "", "n", "r", "l", "s", "m"];
const PLACE_ENDS: [&str; 5] = ["ville", "ton", "by", "wick", "ford"];

const SHOPS: [&str; 8] =
    ["bakery", "bookshop", "school", "museum", "theater", "garden", "library", "café"];
const PRIZES: [&str; 5] = ["cooking", "chess", "poetry", "running", "singing"];
const THINGS: [&str; 6] = ["bridge", "house", "boat", "mill", "tower", "farm"];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NUMBERS: [&str; 6] = ["two", "three", "five", "ten", "twenty", "forty"];

/// What a report is made of.
struct Report {
    text: String,
    headline: String,
    names: Vec<String>,
}

/// `count` pairs of a report and its headline, in English; no name occurs in two reports. Refuses
/// more than there are names for.
///
/// ```
/// let reports = regard_data::toy::reports(3, 1)?;
/// let (text, headline) = &reports[0];
/// assert!(text.split(' ').count() > 2 * headline.split(' ').count());
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn reports(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "reports");
    let names = |report: &Report| report.names.clone();
    let drawn = distinct(count, "reports", || draw(&random), names)?;
    Ok(drawn.into_iter().map(|report| (report.text, report.headline)).collect())
}

fn syllable(random: &Random) -> String {
    [*pick(random, &ONSETS), *pick(random, &VOWELS), *pick(random, &CODAS)].concat()
}

fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// The names of one report.
struct Names<'a> {
    random: &'a Random,
    all: Vec<String>,
}

impl Names<'_> {
    /// A name that nobody else in the report has.
    fn unused(&mut self, end: &str) -> String {
        loop {
            let name =
                capital(&[syllable(self.random), syllable(self.random), end.into()].concat());
            if !self.all.contains(&name) {
                self.all.push(name.clone());
                return name;
            }
        }
    }

    fn person(&mut self) -> String {
        let last = syllable(self.random);
        [self.unused(""), self.unused(&last)].join(" ")
    }

    fn place(&mut self) -> String {
        let end = pick(self.random, &PLACE_ENDS);
        self.unused(end)
    }
}

fn draw(random: &Random) -> Report {
    let mut names = Names { random, all: Vec::new() };
    let (event, headline) = event(random, &mut names);
    let mut sentences: Vec<String> =
        (0..2 + random.below(3)).map(|_| aside(random, &mut names)).collect();
    sentences.insert(random.below(sentences.len() + 1), event);
    Report { text: sentences.join(" "), headline, names: names.all }
}

/// What the report is about, and its headline.
fn event(random: &Random, names: &mut Names) -> (String, String) {
    let (who, place, day) = (names.person(), names.place(), *pick(random, &DAYS));
    match random.below(5) {
        0 => {
            let what = pick(random, &SHOPS);
            let text = match chance(random, 0.5) {
                true => format!("On {day} {who} opened a {what} in {place}."),
                false => format!("A {what} was opened in {place} by {who} last {day}."),
            };
            (text, format!("{who} opens a {what} in {place}"))
        }
        1 => {
            let what = pick(random, &PRIZES);
            let text = match chance(random, 0.5) {
                true => format!("The {what} prize of {place} went to {who} on {day}."),
                false => format!("{who} won the {what} prize of {place} last {day}."),
            };
            (text, format!("{who} wins the {what} prize of {place}"))
        }
        2 => {
            let (what, other) = (pick(random, &THINGS), names.person());
            let text = match chance(random, 0.5) {
                true => format!("{who} sold a {what} near {place} to {other} on {day}."),
                false => format!("{other} bought a {what} near {place} from {who} last {day}."),
            };
            (text, format!("{who} sells a {what} to {other}"))
        }
        3 => {
            let other = names.person();
            let text = match chance(random, 0.5) {
                true => format!("{who} and {other} were married in {place} on {day}."),
                false => format!("Last {day} {place} saw {who} marry {other}."),
            };
            (text, format!("{who} and {other} marry in {place}"))
        }
        _ => {
            let what = pick(random, &THINGS);
            let text = match chance(random, 0.5) {
                true => format!("A {what} burned down in {place} on {day}, which {who} had built."),
                false => format!("{who} lost a {what} to a fire in {place} last {day}."),
            };
            (text, format!("Fire in {place}: {who} loses a {what}"))
        }
    }
}

/// What no headline needs.
fn aside(random: &Random, names: &mut Names) -> String {
    let number = pick(random, &NUMBERS);
    match random.below(6) {
        0 => format!("The weather was {}.", pick(random, &["fine", "bad", "cold", "warm"])),
        1 => format!("{} called it a good day.", names.person()),
        2 => format!("{} from {} came with {number} friends.", names.person(), names.place()),
        3 => format!("There was music, and {number} people danced."),
        4 => format!("The road to {} was closed for {number} hours.", names.place()),
        _ => format!("“I was there,” said {}.", names.person()),
    }
}
