//! People and things, with all that can stand before or behind them.

use super::super::{chance, pick};
use super::lexicon::{
    ADJECTIVES, Adjective, GROUPS, Kind, NAMES, NOUNS, NUMBERS, Noun, OUTSIDE, PAST, PRONOUNS,
    RELATIONS, SOLD, SPOTS,
};
use regard::tensor::Random;

/// How a verb agrees with its subject.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Agreement {
    I,
    One,
    Many,
}

impl Agreement {
    pub(super) fn be(self) -> &'static str {
        match self {
            Self::I => "am",
            Self::One => "is",
            Self::Many => "are",
        }
    }

    pub(super) fn act(self) -> &'static str {
        if self == Self::One { "does" } else { "do" }
    }
}

/// Somebody.
pub(super) struct Person {
    pub(super) subject: String,
    pub(super) object: String,
    pub(super) chinese: String,
    pub(super) agreement: Agreement,
}

impl Person {
    fn called(english: &str, chinese: &str, agreement: Agreement) -> Self {
        let (subject, object) = (english.to_string(), english.to_string());
        Self { subject, object, chinese: chinese.to_string(), agreement }
    }

    pub(super) fn draw(random: &Random) -> Self {
        match random.below(20) {
            0..=8 => {
                let (subject, object, _, chinese, one) = *pick(random, &PRONOUNS);
                let agreement = match subject {
                    "I" => Agreement::I,
                    _ if one => Agreement::One,
                    _ => Agreement::Many,
                };
                Self { object: object.into(), ..Self::called(subject, chinese, agreement) }
            }
            9..=14 => {
                let (english, chinese) = relation(random);
                Self::called(&english, &chinese, Agreement::One)
            }
            15..=17 => {
                let (english, chinese) = *pick(random, &NAMES);
                Self::called(english, chinese, Agreement::One)
            }
            _ => {
                let (english, chinese) = *pick(random, &GROUPS);
                Self::called(english, chinese, Agreement::Many)
            }
        }
    }

    /// Somebody else, spoken about: "I went with me" says nothing.
    pub(super) fn other_than(random: &Random, person: &Person) -> Self {
        loop {
            let other = Self::draw(random);
            let speaks = ["I", "you", "we"].contains(&other.subject.as_str());
            if !speaks && other.chinese != person.chinese {
                return other;
            }
        }
    }
}

/// "my brother".
fn relation(random: &Random) -> (String, String) {
    let (_, _, whose, owner, _) = *pick(random, &PRONOUNS);
    let (english, chinese) = *pick(random, &RELATIONS);
    (format!("{whose} {english}"), format!("{owner}{chinese}"))
}

/// Something.
pub(super) struct Thing {
    pub(super) english: String,
    pub(super) chinese: String,
    pub(super) agreement: Agreement,
    pub(super) kind: Kind,
}

impl Thing {
    fn new(noun: &Noun, agreement: Agreement, english: String, chinese: String) -> Self {
        Self { english, chinese, agreement, kind: noun.kind }
    }

    /// Whether it ends with a clause, to which whatever follows would seem to belong.
    pub(super) fn is_open(&self) -> bool {
        self.english.contains(" that ")
    }

    /// Something of these kinds, known or not.
    pub(super) fn any(random: &Random, kinds: &[Kind]) -> Self {
        if chance(random, 0.4) { Self::unknown(random, kinds) } else { Self::known(random, kinds) }
    }

    /// "a red book", "three red books", "tea".
    pub(super) fn unknown(random: &Random, kinds: &[Kind]) -> Self {
        let (noun, described) = Described::draw(random, kinds);
        let Described { one, many, chinese } = described;
        let Some(many) = many else { return Self::new(noun, Agreement::One, one, chinese) };
        if chance(random, 0.5) {
            let (number, figure) = *pick(random, &NUMBERS);
            let counted = format!("{figure}{}{chinese}", noun.measure);
            Self::new(noun, Agreement::Many, format!("{number} {many}"), counted)
        } else {
            let counted = format!("一{}{chinese}", noun.measure);
            Self::new(noun, Agreement::One, format!("{} {one}", article(&one)), counted)
        }
    }

    /// "red books", "tea": whichever, however many.
    pub(super) fn bare(random: &Random, kinds: &[Kind]) -> Self {
        let (noun, Described { one, many, chinese }) = Described::draw(random, kinds);
        match many {
            Some(many) => Self::new(noun, Agreement::Many, many, chinese),
            None => Self::new(noun, Agreement::One, one, chinese),
        }
    }

    /// Something pointed at, owned, placed or remembered; or bare.
    pub(super) fn known(random: &Random, kinds: &[Kind]) -> Self {
        match random.below(12) {
            0 | 1 => Self::bare(random, kinds),
            2 | 3 => Self::pointed_at(random, kinds),
            4 | 5 => Self::owned(random, kinds),
            _ => Self::definite(random, kinds),
        }
    }

    /// "this book", "those books".
    fn pointed_at(random: &Random, kinds: &[Kind]) -> Self {
        let (noun, Described { one, many, chinese }) = Described::draw(random, kinds);
        let near = chance(random, 0.5);
        let point = if near { "这" } else { "那" };
        match many {
            Some(many) if chance(random, 0.4) => {
                let these = if near { "these" } else { "those" };
                let chinese = format!("{point}些{chinese}");
                Self::new(noun, Agreement::Many, format!("{these} {many}"), chinese)
            }
            _ => {
                let this = if near { "this" } else { "that" };
                let chinese = format!("{point}{}{chinese}", noun.measure);
                Self::new(noun, Agreement::One, format!("{this} {one}"), chinese)
            }
        }
    }

    /// "my book", "my friend's book".
    fn owned(random: &Random, kinds: &[Kind]) -> Self {
        let (noun, Described { one, chinese, .. }) = Described::draw(random, kinds);
        let (whose, owner) = if chance(random, 0.5) {
            let (_, _, whose, owner, _) = *pick(random, &PRONOUNS);
            (whose.to_string(), owner.to_string())
        } else {
            let (english, chinese) = relation(random);
            (format!("{english} 's"), chinese)
        };
        Self::new(noun, Agreement::One, format!("{whose} {one}"), format!("{owner}的{chinese}"))
    }

    /// "the book", "the book on the table", "the books that he bought yesterday".
    fn definite(random: &Random, kinds: &[Kind]) -> Self {
        let (noun, Described { one, many, chinese }) = Described::draw(random, kinds);
        let (head, agreement) = match many {
            Some(many) if chance(random, 0.3) => (many, Agreement::Many),
            _ => (one, Agreement::One),
        };
        let (behind, before) = match random.below(3) {
            0 => (String::new(), String::new()),
            1 => {
                let (english, place) = *pick(random, spots(noun.kind));
                (format!(" {english}"), format!("{place}的"))
            }
            _ => remembered(random, noun.kind),
        };
        Self::new(noun, agreement, format!("the {head}{behind}"), format!("{before}{chinese}"))
    }
}

/// " that he bought yesterday": Chinese puts it before the noun.
fn remembered(random: &Random, kind: Kind) -> (String, String) {
    let (verb, chinese) = match kind {
        Kind::Letter => ("wrote", "写"),
        _ if SOLD.contains(&kind) => ("bought", "买"),
        _ => ("saw", "看见"),
    };
    let who = Person::draw(random);
    let (when, time) = if chance(random, 0.4) { *pick(random, &PAST) } else { Default::default() };
    let gap = if when.is_empty() { "" } else { " " };
    let english = format!(" that {} {verb}{gap}{when}", who.subject);
    (english, format!("{}{time}{chinese}的", who.chinese))
}

/// Where a thing of this kind may be.
pub(super) fn spots(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Furniture | Kind::Vehicle | Kind::Plant | Kind::Animal => &OUTSIDE,
        _ => &SPOTS,
    }
}

/// An adjective for a kind, of those that `fits` takes.
pub(super) fn adjective(
    random: &Random,
    kind: Kind,
    fits: impl Fn(&Adjective) -> bool,
) -> Option<&'static Adjective> {
    let fitting: Vec<&Adjective> =
        ADJECTIVES.iter().filter(|one| one.kinds.contains(&kind) && fits(one)).collect();
    if fitting.is_empty() { None } else { Some(*pick(random, &fitting)) }
}

/// A noun, perhaps with an adjective.
struct Described {
    one: String,
    many: Option<String>,
    chinese: String,
}

impl Described {
    fn draw(random: &Random, kinds: &[Kind]) -> (&'static Noun, Self) {
        let nouns: Vec<&'static Noun> =
            NOUNS.iter().filter(|noun| kinds.contains(&noun.kind)).collect();
        let noun = *pick(random, &nouns);
        let adjective = if chance(random, 0.4) {
            adjective(random, noun.kind, |one| !one.chinese.is_empty())
        } else {
            None
        };
        let (english, chinese) = match adjective {
            Some(adjective) => (format!("{} ", adjective.english), adjective.chinese),
            None => (String::new(), ""),
        };
        let described = Self {
            one: format!("{english}{}", noun.one),
            many: noun.many.map(|many| format!("{english}{many}")),
            chinese: format!("{chinese}{}", noun.chinese),
        };
        (noun, described)
    }
}

fn article(next: &str) -> &'static str {
    if next.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
