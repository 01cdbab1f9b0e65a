//! Pictures of recordings: drawn in every form, on one time, and whatever is missing.

use regard_data::files::Segment;
use regard_picture::picture;
use regard_picture::scene::{Map, Maps, Scene, SoundScene, Track};
use resvg::usvg::roxmltree::Document;

const WORDS: [&str; 4] = ["three", "一", "four", "<end>"];

fn sound(heads: usize) -> SoundScene {
    let (frames, features, keys) = (120, 20, 40);
    let loud = |at: usize| {
        let (frame, feature) = (at / features, at % features);
        if (frame / 30) % 2 == 1 && feature.abs_diff(5 + frame / 10) < 2 { 2.0 } else { -1.0 }
    };
    let map = |head: usize| {
        let weight = |at: usize| {
            let (row, key) = (at / keys, at % keys);
            (-(key as f32 - 10.0 * row as f32 - 5.0 - head as f32).abs() / 2.0).exp()
        };
        Map::new(format!("layer {}", head + 1), (0..4 * keys).map(weight).collect())
    };
    let segment = |(at, label): (usize, &str)| Segment {
        start: at as f64 * 0.3,
        end: (at + 1) as f64 * 0.3,
        label: label.into(),
    };
    let track = |name: &str, labels: [&str; 4]| Track {
        name: name.into(),
        segments: labels.into_iter().enumerate().map(segment).collect(),
    };
    SoundScene {
        spectrogram: (0..frames * features).map(loud).collect(),
        features,
        step: 0.01,
        unit: "seconds".into(),
        key_step: 0.03,
        weights: Maps {
            row_axis: "output".into(),
            column_axis: "time".into(),
            rows: WORDS.map(String::from).to_vec(),
            columns: SoundScene::times(keys, 0.03),
            maps: (0..heads).map(map).collect(),
        },
        tracks: vec![
            track("truth", ["pause", "three", "pause", "four"]),
            track("predicted", ["pause", "three", "three", "four"]),
        ],
        moment: Some(0.45),
    }
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("the drawing is XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|text| text.text().unwrap_or_default().to_string()).collect()
}

#[test]
fn words_stand_over_the_time_they_were_heard_at_in_seconds() {
    let scene = Scene::Sound(sound(1));
    let svg = picture::svg(&scene, "test:0", None);
    let written = texts(&svg);
    for word in WORDS {
        // Above the spectrogram, and beside its row.
        assert!(written.iter().filter(|text| **text == word).count() >= 2, "{word}");
    }
    for word in ["seconds", "0.0", "1.0", "truth", "predicted", "pause", "test:0"] {
        assert!(written.iter().any(|text| text == word), "{word}: {written:?}");
    }
    // "three" is heard from 0 to 0.3 s: over the first quarter of the axis.
    let document = Document::parse(&svg).unwrap();
    let place = |text: &str| {
        let found = document.descendants().find(|node| node.text() == Some(text)).unwrap();
        found.attribute("x").unwrap().parse::<f64>().unwrap()
    };
    assert!(place("three") < place("一") && place("一") < place("four"));
    assert!(picture::png(&svg, 1.0).unwrap().len() > 3000);
}

#[test]
fn every_form_is_made_of_one_map_and_of_many() {
    for heads in [0, 1, 4, 40] {
        let scene = Scene::Sound(sound(heads));
        for which in [None, Some(0), Some(3), Some(99)] {
            let svg = picture::svg(&scene, "a recording", which);
            assert!(Document::parse(&svg).is_ok());
            assert!(svg.len() < 400_000, "{} bytes", svg.len());
        }
        assert!(picture::page(&scene, "a recording").contains("</html>"));
        assert!(!picture::terminal(&scene, 0, 80, false).is_empty());
        let numbers = picture::numbers(&scene).unwrap();
        let file = safetensors::SafeTensors::deserialize(&numbers).unwrap();
        assert_eq!(file.tensor("spectrogram").unwrap().shape(), [120, 20]);
        assert_eq!(file.tensor("weights").unwrap().shape(), [heads, 4, 40]);
        assert!(picture::numbers_json(&scene).contains("\"kind\":\"sound\""));
    }
}

#[test]
fn what_is_empty_or_does_not_fit_is_drawn_without_a_panic() {
    let change: [fn(&mut SoundScene); 8] = [
        |scene| scene.spectrogram.clear(),
        |scene| scene.spectrogram.truncate(7),
        |scene| scene.spectrogram.fill(f32::NAN),
        |scene| scene.features = 0,
        |scene| scene.weights.rows.clear(),
        |scene| scene.weights.columns.clear(),
        |scene| scene.weights.maps.iter_mut().for_each(|map| map.weights.fill(f32::NAN)),
        |scene| scene.tracks[0].segments[0].end = f64::NAN,
    ];
    for change in change {
        let mut scene = sound(2);
        change(&mut scene);
        let scene = Scene::Sound(scene);
        let svg = picture::svg(&scene, "", None);
        assert!(Document::parse(&svg).is_ok());
        assert!(picture::png(&svg, 1.0).is_ok());
        assert!(!picture::page(&scene, "").is_empty());
        assert!(!picture::terminal(&scene, 0, 40, true).is_empty());
    }
}
