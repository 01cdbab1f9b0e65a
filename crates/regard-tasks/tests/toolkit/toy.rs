//! The embedded data: the same from the same seed, balanced, and right.

use regard_data::toy;
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
fn fewer_pictures_and_recordings_are_the_first_of_more() {
    let pictures = |count| toy::captioned(count, 32, toy::CaptionLanguage::English, 1).unwrap();
    assert!(pictures(3).iter().zip(pictures(9)).all(|(a, b)| a.pixels == b.pixels));
    assert!(pictures(3).iter().zip(pictures(9)).all(|(a, b)| a.sentences == b.sentences));
    let recordings = |count| toy::spoken(count, 1).unwrap();
    assert!(recordings(3).iter().zip(recordings(9)).all(|(a, b)| a.samples == b.samples));
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

#[test]
fn the_same_english_never_has_two_translations() {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut met_again = 0;
    for seed in 0..8 {
        for (english, chinese) in toy::phrases(10_000, seed).unwrap() {
            match known.get(&english) {
                Some(other) => {
                    assert_eq!(other, &chinese, "{english}");
                    met_again += 1;
                }
                None => {
                    known.insert(english, chinese);
                }
            }
        }
    }
    assert!(met_again > 1000, "{met_again}");
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

#[test]
fn the_sine_has_the_noise_it_says() {
    let points = toy::sine(4000, 1).unwrap();
    assert_eq!(points, toy::sine(4000, 1).unwrap());
    assert_ne!(points, toy::sine(4000, 2).unwrap());
    let noise: Vec<f32> = points.iter().map(|(x, y)| y - toy::sine_truth(*x)).collect();
    let mean = noise.iter().sum::<f32>() / 4000.0;
    let deviation = (noise.iter().map(|one| one * one).sum::<f32>() / 4000.0).sqrt();
    assert!(mean.abs() < 0.03 && (deviation - 0.5).abs() < 0.03, "{mean} {deviation}");
    let middle = points.iter().filter(|(x, _)| *x < 2.5).count();
    assert!((1850..2150).contains(&middle));
    assert!((toy::sine_truth(1.0) - 2.682_942).abs() < 1e-5);
}

#[test]
fn i_saw_a_saw_has_a_verb_and_a_noun() {
    let sentences = toy::tagged(20_000, 1).unwrap();
    let text = |sentence: &Vec<(String, String)>| {
        sentence.iter().map(|(word, tag)| format!("{word}/{tag}")).collect::<Vec<_>>().join(" ")
    };
    let all: HashSet<String> = sentences.iter().map(text).collect();
    assert_eq!(all.len(), 20_000);
    assert!(all.contains("I/PRON saw/VERB a/DET saw/NOUN ./PUNCT"));
}

#[test]
fn the_same_words_never_have_two_taggings() {
    let mut known: HashMap<Vec<String>, Vec<String>> = HashMap::new();
    let mut met_again = 0;
    for seed in 0..8 {
        for sentence in toy::tagged(10_000, seed).unwrap() {
            let (words, tags): (Vec<String>, Vec<String>) = sentence.into_iter().unzip();
            match known.get(&words) {
                Some(others) => {
                    assert_eq!(others, &tags, "{words:?}");
                    met_again += 1;
                }
                None => {
                    known.insert(words, tags);
                }
            }
        }
    }
    assert!(met_again > 1000);
}

#[test]
fn words_are_ambiguous_even_with_their_neighbors_known() {
    let mut alone: HashMap<String, HashSet<String>> = HashMap::new();
    let mut among: HashMap<Vec<String>, HashSet<String>> = HashMap::new();
    for sentence in toy::tagged(5000, 2).unwrap() {
        for three in sentence.windows(3) {
            let words = three.iter().map(|(word, _)| word.clone()).collect();
            alone.entry(three[1].0.clone()).or_default().insert(three[1].1.clone());
            among.entry(words).or_default().insert(three[1].1.clone());
        }
    }
    let of_several = |tags: &&HashSet<String>| tags.len() > 1;
    assert!(alone.values().filter(of_several).count() >= 12);
    assert!(among.values().filter(of_several).count() >= 12);
}

#[test]
fn tags_are_those_of_universal_dependencies() {
    let known = ["ADJ", "ADP", "ADV", "AUX", "DET", "NOUN", "PART", "PRON", "PROPN", "PUNCT"];
    let known: HashSet<&str> = known.into_iter().chain(["SCONJ", "VERB"]).collect();
    let sentences = toy::tagged(3000, 3).unwrap();
    let used: HashSet<&str> = sentences.iter().flatten().map(|(_, tag)| tag.as_str()).collect();
    assert_eq!(used, known);
}

/// How many there are of each label.
fn counts<T>(labeled: &[(String, T)]) -> Vec<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    labeled.iter().for_each(|(label, _)| *counts.entry(label).or_default() += 1);
    counts.into_values().collect()
}

#[test]
fn labels_are_balanced_and_seeds_repeat() {
    let cues = toy::cues(400, 1).unwrap();
    assert_eq!(counts(&cues), [100; 4]);
    assert_eq!(cues, toy::cues(400, 1).unwrap());
    assert_ne!(cues, toy::cues(400, 2).unwrap());
    let tones = toy::tones(40, 1).unwrap();
    assert_eq!(counts(&tones), [10; 4]);
    assert_eq!(tones, toy::tones(40, 1).unwrap());
    let shapes = toy::shapes(40, 16, 1).unwrap();
    assert_eq!(counts(&shapes), [10; 4]);
    assert_eq!(shapes, toy::shapes(40, 16, 1).unwrap());
}

#[test]
fn one_word_of_a_text_tells_its_label() {
    let texts = toy::cues(2000, 1).unwrap();
    let mut labels: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (label, text) in &texts {
        let length = text.split(' ').count();
        assert!((8..=40).contains(&length));
        text.split(' ').for_each(|word| {
            labels.entry(word).or_default().insert(label);
        });
    }
    let is_cue = |word: &&str| labels[word].len() == 1;
    assert_eq!(labels.keys().filter(|word| is_cue(word)).count(), 20);
    assert!(texts.iter().all(|(_, text)| text.split(' ').filter(is_cue).count() == 1));
}

#[test]
fn tones_are_sound_after_silence_at_the_speakers_pitch() {
    for (speaker, wave) in toy::tones(40, 3).unwrap() {
        assert!(wave.iter().all(|sample| sample.abs() <= 1.0));
        // The lag after which the last tenth of a second is most like itself.
        let end = &wave[wave.len() - 1200..];
        let alike = |lag: usize| -> f32 { (0..800).map(|at| end[at] * end[at + lag]).sum() };
        let lag = (26..95).max_by(|a, b| alike(*a).total_cmp(&alike(*b))).unwrap();
        let (low, high) = match speaker.as_str() {
            "Ada" => (210.0, 290.0),
            "Ben" => (90.0, 130.0),
            "Cleo" => (170.0, 240.0),
            _ => (110.0, 180.0),
        };
        let pitch = toy::TONE_RATE as f32 / lag as f32;
        // Twice the period is as alike as the period.
        let fits = |pitch: f32| (low * 0.93..high * 1.07).contains(&pitch);
        assert!(fits(pitch) || fits(2.0 * pitch) || fits(3.0 * pitch), "{speaker} {pitch}");
    }
}

#[test]
fn shapes_are_bright_on_dark_and_of_different_areas() {
    let mut areas: HashMap<String, f32> = HashMap::new();
    for (shape, pixels) in toy::shapes(400, 16, 1).unwrap() {
        assert!(pixels.iter().all(|pixel| (0.0..=1.0).contains(pixel)));
        let lit = pixels.iter().filter(|pixel| **pixel > 0.3).count();
        assert!((10..=180).contains(&lit), "{shape} of {lit} pixels");
        *areas.entry(shape).or_default() += lit as f32 / 100.0;
    }
    assert!(areas["square"] > areas["circle"] && areas["circle"] > areas["triangle"]);
    assert!(toy::shapes(1, 4, 1).unwrap_err().to_string().contains("side 4"));
}

#[test]
fn the_karate_club_is_zacharys() {
    let club = toy::karate();
    assert_eq!((club.nodes, club.edges.len()), (34, 78));
    let distinct: HashSet<_> = club.edges.iter().collect();
    assert_eq!(distinct.len(), 78);
    assert!(club.edges.iter().all(|(a, b)| a < b && *b < 34));
    assert_eq!([0, 33, 32, 11].map(|node| club.degree(node)), [16, 17, 12, 1]);
    assert_eq!(club.labels.iter().sum::<usize>(), 17);
    assert_eq!((club.labels[0], club.labels[33]), (0, 1));
    assert_eq!(club.features[5].iter().sum::<f32>(), 1.0);
}

#[test]
fn blocks_are_dense_inside_and_sparse_outside() {
    let graph = toy::blocks(200, 4, 0.2, 0.01, 1).unwrap();
    assert_eq!(graph, toy::blocks(200, 4, 0.2, 0.01, 1).unwrap());
    let inside = graph.edges.iter().filter(|(a, b)| graph.labels[*a] == graph.labels[*b]).count();
    let outside = graph.edges.len() - inside;
    // 4 · (50 · 49 / 2) · 0.2 = 980 and 6 · 50 · 50 · 0.01 = 150.
    assert!((880..1080).contains(&inside) && (110..190).contains(&outside), "{inside} {outside}");
    assert!((0..4).all(|class| graph.labels.iter().filter(|one| **one == class).count() == 50));
    assert!(toy::blocks(10, 0, 0.1, 0.1, 1).is_err());
    let error = toy::blocks(10, 2, 1.5, 0.1, 1).unwrap_err().to_string();
    assert_eq!(error, "1.5 is no probability of an edge");
}
