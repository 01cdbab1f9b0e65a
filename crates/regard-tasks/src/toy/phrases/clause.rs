//! What somebody does, how something is, where something is: one clause in both languages.

use super::super::{chance, pick};
use super::Pair;
use super::lexicon::{
    CALL, FAVOURS, FREQUENCIES, FUTURE, GO, GOALS, HABITS, Kind, MEANS, NOUNS, PAST, PLACES, SOLD,
    STATES, TODAY, VERBS, Verb,
};
use super::noun_phrase::{Agreement, Person, Thing, adjective, spots};
use regard::Random;

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
        2 | 3 => favour(random, subject, form),
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
fn favour(random: &Random, subject: &Person, form: Form) -> Event {
    let (verb, to) = pick(random, &FAVOURS);
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

/// The verb of each language, as time and form want it, and when it is.
struct Told {
    /// Before the subject: "does".
    auxiliary: String,
    /// After it: "does not eat".
    predicate: String,
    time: Option<(&'static str, &'static str)>,
    /// Between time and place: 不, 会, 经常.
    chinese: &'static str,
    /// After the verb: 了.
    done: &'static str,
    /// After everything: 了.
    over: &'static str,
}

fn told(random: &Random, verb: &Verb, agreement: Agreement, form: Form, placed: bool) -> Told {
    let at = |times: &[(&'static str, &'static str)], likelihood| {
        chance(random, likelihood).then(|| *pick(random, times))
    };
    let (act, be) = (agreement.act(), agreement.be());
    let plain = if agreement == Agreement::One { verb.third } else { verb.base };
    let base = Told {
        auxiliary: String::new(),
        predicate: String::new(),
        time: None,
        chinese: "",
        done: "",
        over: "",
    };
    let (auxiliary, predicate) = (|word: &str| word.to_string(), |parts: &[&str]| words(parts));
    match (random.below(10), form) {
        // The past always says when: "read" alone would not tell.
        (0..=3, Form::Statement) => {
            Told { predicate: verb.past.into(), time: at(&PAST, 1.0), done: "了", ..base }
        }
        (0..=3, Form::Negation) => Told {
            predicate: predicate(&["did not", verb.base]),
            time: at(&PAST, 1.0),
            chinese: "没有",
            ..base
        },
        (0..=3, Form::Question) => Told {
            auxiliary: auxiliary("did"),
            predicate: verb.base.into(),
            time: at(&PAST, 1.0),
            over: "了",
            ..base
        },
        (4..=5, Form::Statement) => Told {
            predicate: predicate(&["will", verb.base]),
            time: at(&FUTURE, 0.7),
            chinese: "会",
            ..base
        },
        (4..=5, Form::Negation) => Told {
            predicate: predicate(&["will not", verb.base]),
            time: at(&FUTURE, 0.7),
            chinese: "不会",
            ..base
        },
        (4..=5, Form::Question) => Told {
            auxiliary: auxiliary("will"),
            predicate: verb.base.into(),
            time: at(&FUTURE, 0.7),
            chinese: "会",
            ..base
        },
        (6, Form::Statement) => Told {
            predicate: predicate(&[
                if agreement == Agreement::One { "wants to" } else { "want to" },
                verb.base,
            ]),
            time: at(&FUTURE, 0.5),
            chinese: "想",
            ..base
        },
        (6, Form::Negation) => Told {
            predicate: predicate(&[act, "not want to", verb.base]),
            time: at(&FUTURE, 0.5),
            chinese: "不想",
            ..base
        },
        (6, Form::Question) => Told {
            auxiliary: auxiliary(act),
            predicate: predicate(&["want to", verb.base]),
            time: at(&FUTURE, 0.5),
            chinese: "想",
            ..base
        },
        (7, Form::Statement) => {
            let (often, chinese) = *pick(random, &FREQUENCIES);
            Told { predicate: words(&[often, plain]), chinese, ..base }
        }
        (8, Form::Statement | Form::Question) => {
            // A place brings its own 在.
            let chinese = if placed { "正" } else { "正在" };
            let time = at(&[("now", "现在")], 0.6);
            match form {
                Form::Question => Told {
                    auxiliary: auxiliary(be),
                    predicate: verb.going_on.into(),
                    time,
                    chinese,
                    ..base
                },
                _ => Told { predicate: words(&[be, verb.going_on]), time, chinese, ..base },
            }
        }
        (_, Form::Statement) => {
            let times = if chance(random, 0.5) { &HABITS[..] } else { &TODAY[..] };
            Told { predicate: plain.into(), time: at(times, 0.7), ..base }
        }
        (_, Form::Negation) => Told {
            predicate: predicate(&[act, "not", verb.base]),
            time: at(&TODAY, 0.6),
            chinese: "不",
            ..base
        },
        (_, Form::Question) => Told {
            auxiliary: auxiliary(act),
            predicate: verb.base.into(),
            time: at(&TODAY, 0.6),
            ..base
        },
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
    let told = told(random, event.verb, subject.agreement, form, place.is_some());

    let (when, time) = told.time.unwrap_or_default();
    let early = event.last || form != Form::Question && chance(random, 0.3);
    let english = words(&[
        if early { when } else { "" },
        &told.auxiliary,
        &subject.subject,
        &told.predicate,
        &event.english,
        &friend.as_ref().map_or(String::new(), |friend| format!("with {}", friend.object)),
        place.map_or("", |place| place.0),
        if early { "" } else { when },
        if form == Form::Question { "?" } else { "" },
    ]);
    let chinese = [
        &subject.chinese,
        time,
        told.chinese,
        &friend.map_or(String::new(), |friend| format!("和{}一起", friend.chinese)),
        &place.map_or(String::new(), |place| format!("在{}", place.1)),
        &event.before,
        event.verb.chinese,
        told.done,
        &event.chinese,
        told.over,
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
