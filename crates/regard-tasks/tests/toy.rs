//! The embedded data: the same from the same seed, balanced, and right.

use regard_tasks::toy;
use std::collections::{HashMap, HashSet};

#[test]
fn the_same_seed_gives_the_same_phrases_and_another_seed_others() {
    let first = toy::phrases(200, 1).unwrap();
    assert_eq!(first, toy::phrases(200, 1).unwrap());
    assert_ne!(first, toy::phrases(200, 2).unwrap());
}

#[test]
fn fewer_phrases_are_the_first_of_more() {
    assert_eq!(toy::phrases(50, 1).unwrap(), toy::phrases(200, 1).unwrap()[..50]);
}

#[test]
fn no_phrase_of_either_language_comes_twice() {
    let pairs = toy::phrases(20_000, 3).unwrap();
    let english: HashSet<_> = pairs.iter().map(|pair| &pair.0).collect();
    let chinese: HashSet<_> = pairs.iter().map(|pair| &pair.1).collect();
    assert_eq!((english.len(), chinese.len()), (20_000, 20_000));
}

#[test]
fn phrases_are_of_3_to_20_words_and_some_200_are_known() {
    let pairs = toy::phrases(5000, 4).unwrap();
    let lengths: Vec<usize> = pairs.iter().map(|pair| pair.0.split(' ').count()).collect();
    assert!(lengths.iter().all(|length| (3..=20).contains(length)));
    assert!(lengths.contains(&4) && lengths.contains(&20));
    let words: HashSet<&str> = pairs.iter().flat_map(|pair| pair.0.split(' ')).collect();
    assert!((150..250).contains(&words.len()), "{} words", words.len());
}

#[test]
fn chinese_has_only_chinese_characters_and_marks() {
    for (english, chinese) in toy::phrases(5000, 5).unwrap() {
        assert!(english.is_ascii(), "{english}");
        let fits = |c| matches!(c, '\u{4e00}'..='\u{9fff}' | '，' | '？');
        assert!(chinese.chars().all(fits), "{chinese}");
    }
}

#[test]
fn a_question_is_one_in_both_languages() {
    let pairs = toy::phrases(2000, 6).unwrap();
    let asked = pairs.iter().filter(|pair| pair.0.ends_with(" ?")).count();
    assert!(asked > 200);
    for (english, chinese) in pairs {
        assert_eq!(english.ends_with('?'), chinese.ends_with("吗？"), "{english} {chinese}");
    }
}

#[test]
fn time_and_place_come_before_the_verb_in_chinese() {
    let pairs = toy::phrases(20_000, 7).unwrap();
    let crossed = pairs.iter().filter(|(english, chinese)| {
        let place = english.ends_with("in the garden yesterday");
        place && !chinese.contains('，') && chinese.contains("昨天在花园里")
    });
    assert!(crossed.count() > 5);
    // Nothing tells whose place it would be, the dog's or the painter's.
    assert!(pairs.iter().all(|pair| !pair.1.contains("花园里的")));
}

/// Sakamoto's rule, from 0, Sunday.
fn weekday(year: usize, month: usize, day: usize) -> usize {
    let year = if month < 3 { year - 1 } else { year };
    let shift = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4][month - 1];
    (year + year / 4 - year / 100 + year / 400 + shift + day) % 7
}

#[test]
fn written_dates_say_the_same_as_their_normal_form() {
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let dates = toy::dates(20_000, 1).unwrap();
    let mut named = 0;
    for (written, normal) in &dates {
        let figures: Vec<usize> = normal.split('-').map(|part| part.parse().unwrap()).collect();
        let [year, month, day] = figures[..] else { panic!("{normal}") };
        assert!(written.contains(&year.to_string()), "{written} {normal}");
        let month_is_right = match months.iter().position(|name| written.contains(name)) {
            Some(at) => at + 1 == month,
            None => {
                let parts: Vec<usize> =
                    written.split(['.', '/']).map(|part| part.parse().unwrap()).collect();
                parts == [day, month, year]
            }
        };
        assert!(month_is_right, "{written} {normal}");
        if let Some(at) = weekdays.iter().position(|name| written.starts_with(name)) {
            assert_eq!(at, weekday(year, month, day), "{written} {normal}");
            named += 1;
        }
    }
    assert!(named > 2000);
    let all: HashMap<&str, &str> =
        dates.iter().map(|(written, normal)| (written.as_str(), normal.as_str())).collect();
    assert_eq!(all.len(), dates.len());
}
