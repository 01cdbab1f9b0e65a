//! What somebody does, how something is, where something is: one clause in both languages.

use super::super::{chance, pick};
use super::Pair;
use super::lexicon::{
    CALL, FAVORS, FREQUENCIES, FUTURE, GO, GOALS, HABITS, Kind, MEANS, NOUNS, PAST, PLACES, SOLD,
    STATES, TODAY, VERBS, Verb,
};
use super::noun_phrase::{Agreement, Person, Thing, adjective, spots};
use regard::tensor::Random;

/// What is said of an event.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Statement,
    Negation,
    Question,
}

/// A doing, its object on both sides, and what Chinese says before the verb.
struct Event {
    verb: &'static Verb,
    english: String,
    before: String,
    chinese: String,
    /// Whether it may be said where.
    placed: bool,
    /// Whether nothing may follow it: see [`Thing::is_open`].
    last: bool,
}

/// Any statement that can stand beside another.
pub(super) fn statement(random: &Random) -> Pair {
    match random.below(20) {
        0..=12 => doing(random, Form::Statement),
        13 | 14 => doing(random, Form::Negation),
        15 => state(random, Form::Statement),
        16 => comparison(random),
        17 => quality(random, Form::Statement),
        18 => quality(random, Form::Negation),
        _ => existence(random, Form::Statement),
    }
}

/// A question, a denial of existence, or another sentence that stands alone.
pub(super) fn question(random: &Random) -> Pair {
    match random.below(8) {
        0..=3 => doing(random, Form::Question),
        4 => state(random, Form::Question),
        5 => quality(random, Form::Question),
        6 => existence(random, Form::Question),
        _ => existence(random, Form::Negation),
    }
}

fn form_of(chinese: String, form: Form) -> String {
    if form == Form::Question { format!("{chinese}吗？") } else { chinese }
}

/// Words with one space between them; parts may be empty.
fn words(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

fn event(random: &Random, subject: &Person, form: Form) -> Event {
    match random.below(12) {
        0 | 1 => going(random),
        2 | 3 => favor(random, subject, form),
        4 => call(random, subject),
        _ => action(random, subject, form),
    }
}

/// "to the park by bus".
fn going(random: &Random) -> Event {
    let (goal, chinese) = *pick(random, &GOALS);
    let (means, before) =
        if chance(random, 0.6) { *pick(random, &MEANS) } else { Default::default() };
    let (english, before, chinese) = (words(&[goal, means]), before.into(), chinese.into());
    Event { verb: &GO, english, before, chinese, placed: false, last: false }
}

/// "an apple for Tom".
fn favor(random: &Random, subject: &Person, form: Form) -> Event {
    let (verb, to) = pick(random, &FAVORS);
    let thing = closed(|| object(random, verb.objects, form));
    let person = Person::other_than(random, subject);
    Event {
        verb,
        english: words(&[&thing.english, to, &person.object]),
        before: format!("给{}", person.chinese),
        chinese: thing.chinese,
        placed: true,
        last: false,
    }
}

fn call(random: &Random, subject: &Person) -> Event {
    let person = Person::other_than(random, subject);
    let (before, chinese) = (format!("给{}", person.chinese), "电话".into());
    Event { verb: &CALL, english: person.object, before, chinese, placed: true, last: false }
}

fn action(random: &Random, subject: &Person, form: Form) -> Event {
    let verb = pick(random, &VERBS);
    let (english, chinese, last) = if verb.objects == [Kind::Person] {
        let person = Person::other_than(random, subject);
        (person.object, person.chinese, false)
    } else {
        let draw = || object(random, verb.objects, form);
        let thing = if form == Form::Question { closed(draw) } else { draw() };
        let last = thing.is_open();
        (thing.english, thing.chinese, last)
    };
    Event { verb, english, before: String::new(), chinese, placed: !last, last }
}

/// Chinese does not deny or doubt "an apple", only "apples" or "the apple".
fn object(random: &Random, kinds: &[Kind], form: Form) -> Thing {
    match form {
        Form::Statement => Thing::any(random, kinds),
        _ => Thing::known(random, kinds),
    }
}

fn closed(mut draw: impl FnMut() -> Thing) -> Thing {
    loop {
        let thing = draw();
        if !thing.is_open() {
            return thing;
        }
    }
}

/// When a thing is done, and what that makes of the verb.
struct Tense {
    /// For questions and negations: "did".
    auxiliary: &'static str,
    /// The verb with that: "eat".
    infinitive: String,
    /// The verb without: "ate".
    alone: String,
    time: Option<(&'static str, &'static str)>,
    /// Between time and place: 会 in a statement or question, 不会 in a negation.
    chinese: [&'static str; 2],
    /// Whether Chinese marks it with 了.
    over: bool,
}

impl Tense {
    fn draw(random: &Random, verb: &Verb, agreement: Agreement, form: Form, placed: bool) -> Self {
        let at = |times: &[(&'static str, &'static str)], likelihood| {
            chance(random, likelihood).then(|| *pick(random, times))
        };
        let one = agreement == Agreement::One;
        let alone = if one { verb.third } else { verb.base };
        let habit = Self {
            auxiliary: agreement.act(),
            infinitive: verb.base.into(),
            alone: alone.into(),
            time: None,
            chinese: ["", "不"],
            over: false,
        };
        match random.below(10) {
            0..=3 => Self {
                auxiliary: "did",
                alone: verb.past.into(),
                // Always: "read" alone would not tell.
                time: at(&PAST, 1.0),
                chinese: ["", "没有"],
                over: true,
                ..habit
            },
            4..=5 => Self {
                auxiliary: "will",
                alone: words(&["will", verb.base]),
                time: at(&FUTURE, 0.7),
                chinese: ["会", "不会"],
                ..habit
            },
            6 => Self {
                infinitive: words(&["want to", verb.base]),
                alone: words(&[if one { "wants to" } else { "want to" }, verb.base]),
                time: at(&FUTURE, 0.5),
                chinese: ["想", "不想"],
                ..habit
            },
            7 if form == Form::Statement => {
                let (often, chinese) = *pick(random, &FREQUENCIES);
                Self { alone: words(&[often, alone]), chinese: [chinese; 2], ..habit }
            }
            8 if form != Form::Negation => Self {
                auxiliary: agreement.be(),
                infinitive: verb.going_on.into(),
                alone: words(&[agreement.be(), verb.going_on]),
                time: at(&[("now", "现在")], 0.6),
                // A place brings its own 在.
                chinese: if placed { ["正"; 2] } else { ["正在"; 2] },
                ..habit
            },
            _ if form == Form::Statement && chance(random, 0.5) => {
                Self { time: at(&HABITS, 0.7), ..habit }
            }
            _ => Self { time: at(&TODAY, 0.6), ..habit },
        }
    }
}

/// "yesterday I ate apples with Tom in the garden": Chinese says who, when, with whom, where, and
/// only then what.
fn doing(random: &Random, form: Form) -> Pair {
    let subject = Person::draw(random);
    let event = event(random, &subject, form);
    let place = (event.placed && chance(random, 0.5)).then(|| *pick(random, &PLACES));
    let friend = (!event.last && chance(random, 0.25))
        .then(|| Person::other_than(random, &subject))
        .filter(|friend| !event.english.ends_with(&friend.object));
    let tense = Tense::draw(random, event.verb, subject.agreement, form, place.is_some());

    let (asked, predicate) = match form {
        Form::Statement => ("", tense.alone),
        Form::Negation => ("", words(&[tense.auxiliary, "not", &tense.infinitive])),
        Form::Question => (tense.auxiliary, tense.infinitive),
    };
    let (when, time) = tense.time.unwrap_or_default();
    let early = event.last || form != Form::Question && chance(random, 0.3);
    let english = words(&[
        if early { when } else { "" },
        asked,
        &subject.subject,
        &predicate,
        &event.english,
        &friend.as_ref().map_or(String::new(), |friend| format!("with {}", friend.object)),
        place.map_or("", |place| place.0),
        if early { "" } else { when },
        if form == Form::Question { "?" } else { "" },
    ]);
    // 吃了苹果, but 吃苹果了吗？
    let over = |in_form| if tense.over && form == in_form { "了" } else { "" };
    let chinese = [
        &subject.chinese,
        time,
        tense.chinese[(form == Form::Negation) as usize],
        &friend.map_or(String::new(), |friend| format!("和{}一起", friend.chinese)),
        &place.map_or(String::new(), |place| format!("在{}", place.1)),
        &event.before,
        event.verb.chinese,
        over(Form::Statement),
        &event.chinese,
        over(Form::Question),
    ]
    .concat();
    (english, form_of(chinese, form))
}

/// "he likes apples", "does he know Anna ?"
fn state(random: &Random, form: Form) -> Pair {
    let subject = Person::draw(random);
    let (base, third, chinese, kinds) = *pick(random, &STATES);
    let (english, object) = if kinds == [Kind::Person] {
        let person = Person::other_than(random, &subject);
        (person.object, person.chinese)
    } else {
        let thing = Thing::known(random, kinds);
        (thing.english, thing.chinese)
    };
    let one = subject.agreement == Agreement::One;
    let said = match form {
        Form::Question => words(&[subject.agreement.act(), &subject.subject, base, &english, "?"]),
        _ => words(&[&subject.subject, if one { third } else { base }, &english]),
    };
    (said, form_of(format!("{}{chinese}{object}", subject.chinese), form))
}

/// Somebody or something to say how it is.
fn topic(random: &Random) -> (String, String, Agreement, Kind) {
    if chance(random, 0.4) {
        let person = Person::draw(random);
        (person.subject, person.chinese, person.agreement, Kind::Person)
    } else {
        let thing = Thing::known(random, &all_kinds());
        (thing.english, thing.chinese, thing.agreement, thing.kind)
    }
}

fn all_kinds() -> Vec<Kind> {
    NOUNS.iter().map(|noun| noun.kind).collect()
}

/// "the book on the table is very interesting".
fn quality(random: &Random, form: Form) -> Pair {
    loop {
        let (english, chinese, agreement, kind) = topic(random);
        let Some(adjective) = adjective(random, kind, |one| one.predicate.is_some()) else {
            continue;
        };
        let Some(predicate) = adjective.predicate else { continue };
        // "Cheap tea is not cheap."
        if english.contains(adjective.english) {
            continue;
        }
        let be = agreement.be();
        return match form {
            Form::Statement => {
                let (how, degree) = *pick(random, &[("", "很"), ("very", "非常")]);
                let english = words(&[&english, be, how, adjective.english]);
                (english, format!("{chinese}{degree}{predicate}"))
            }
            Form::Negation => {
                let english = words(&[&english, be, "not", adjective.english]);
                (english, format!("{chinese}不{predicate}"))
            }
            Form::Question => {
                let english = words(&[be, &english, adjective.english, "?"]);
                (english, form_of(format!("{chinese}{predicate}"), form))
            }
        };
    }
}

/// "Anna is taller than my brother": what is said comes last in Chinese.
fn comparison(random: &Random) -> Pair {
    loop {
        let (english, chinese, agreement, kind) = topic(random);
        let Some(adjective) = adjective(random, kind, |one| one.comparative.is_some()) else {
            continue;
        };
        let (Some(than), Some(predicate)) = (adjective.comparative, adjective.predicate) else {
            continue;
        };
        let (other, compared) = if kind == Kind::Person {
            let person = Person::draw(random);
            (person.object, person.chinese)
        } else {
            let thing = Thing::known(random, &[kind]);
            (thing.english, thing.chinese)
        };
        if chinese != compared {
            let english = words(&[&english, agreement.be(), than, "than", &other]);
            return (english, format!("{chinese}比{compared}{predicate}"));
        }
    }
}

/// "there are three books on the table": Chinese begins with the table.
fn existence(random: &Random, form: Form) -> Pair {
    let kinds: Vec<Kind> = SOLD.iter().copied().chain([Kind::Animal]).collect();
    let thing = match form {
        Form::Negation => Thing::bare(random, &kinds),
        _ => Thing::unknown(random, &kinds),
    };
    let (place, spot) = *pick(random, spots(thing.kind));
    let be = thing.agreement.be();
    let english = match form {
        Form::Statement => words(&["there", be, &thing.english, place]),
        Form::Negation => words(&["there", be, "no", &thing.english, place]),
        Form::Question => words(&[be, "there", &thing.english, place, "?"]),
    };
    let has = if form == Form::Negation { "没有" } else { "有" };
    (english, form_of(format!("{spot}{has}{}", thing.chinese), form))
}
