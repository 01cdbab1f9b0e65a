//! `draw`, from data to pictures.

use crate::{course, files};

use course::{Course, options, refusal, resumes_exactly};
use image::{Rgb, RgbImage};
use regard_data::Codebook;
use regard_data::toy::{CaptionLanguage, SceneReader, captioned, plainly_captioned};
use regard_picture::scene::Scene;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// A small and quick artist: two by two patches of eight pixels.
const SMALL: [&str; 8] = [
    "size=60",
    "image_size=16",
    "patch_size=8",
    "embedding=16",
    "hidden=16",
    "heads=2",
    "feed_forward=32",
    "batch_size=16",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], &["score_hidden=16", "epochs=1"], more].concat()
}

#[test]
fn a_rule_finds_what_every_sentence_names_in_its_picture_in_both_languages() {
    let mut read = 0;
    for language in [CaptionLanguage::English, CaptionLanguage::Chinese] {
        for (side, count) in [(24, 60), (32, 10)] {
            let reader = SceneReader::new(side, language);
            let pictures = plainly_captioned(count, side, language, 1).unwrap();
            let noisy = captioned(count, side, language, 1).unwrap();
            for (one, noisy) in pictures.iter().zip(&noisy) {
                assert_eq!(one.sentences, noisy.sentences, "the scenes are those of `caption`");
                let found = reader.read(&one.pixels);
                assert_eq!(found.sentences(language)[..], one.sentences, "side {side}");
                for sentence in &one.sentences {
                    assert_eq!(reader.named(sentence), Some(found));
                }
                read += 1;
            }
            assert_eq!(reader.named("a red elephant"), None);
        }
    }
    assert_eq!(read, 140);
}

#[test]
fn a_codebook_gives_back_what_it_knows_and_the_nearest_of_what_it_does_not() {
    let pictures = plainly_captioned(200, 24, CaptionLanguage::English, 1).unwrap();
    let bytes = |pixels: &[f32]| pixels.iter().map(|x| (x * 255.0).round() as u8).collect();
    let pictures: Vec<Vec<u8>> = pictures.iter().map(|one| bytes(&one.pixels)).collect();
    for patch in [1, 2, 3, 4, 6, 8, 12, 24] {
        let book = Codebook::learn(&pictures, [3, 24, 24], patch, 65_536).unwrap();
        assert_eq!(book.grid(), [24 / patch; 2]);
        for (picture, codes) in pictures.iter().zip(book.encode_all(&pictures).unwrap()) {
            assert!(book.decode(&codes).unwrap() == *picture, "patches of {patch}");
        }
    }
    // Where codes are few, each patch becomes the one with the least squared difference: compared with
    // every other choice.
    let few = Codebook::learn(&pictures, [3, 24, 24], 3, 20).unwrap();
    assert!((2..=20).contains(&few.len()));
    let picture = &pictures[3];
    let codes = few.encode(picture).unwrap();
    let distance = |codes: &[usize]| -> u64 {
        let made = few.decode(codes).unwrap();
        made.iter().zip(picture).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum()
    };
    let best = distance(&codes);
    for place in [0, 9, 27, 63] {
        for other in 0..few.len() {
            let mut changed = codes.clone();
            changed[place] = other;
            assert!(distance(&changed) >= best, "place {place}, code {other}");
        }
    }
    let error = |result: regard_data::Result<Vec<u8>>| result.unwrap_err().to_string();
    assert!(error(few.decode(&codes[1..])).contains("63 codes"));
    assert!(error(few.decode(&[999; 64])).contains("999"));
    assert!(few.encode(&picture[1..]).is_err());
    assert!(Codebook::learn(&pictures, [3, 24, 24], 5, 20).is_err());
}

#[test]
fn it_learns_to_draw_and_shows_where_each_word_was_used() {
    let settings =
        ["size=300", "image_size=16", "patch_size=4", "epochs=6", "batch_size=16", "hidden=32"];
    let settings =
        [&settings[..], &["embedding=32", "layers=1", "learning_rate=0.004", "warmup_steps=20"]]
            .concat();
    let course = Course::done("draw", &settings);
    let records = course.records();
    assert!(records[5].loss < 0.6 * records[0].loss, "{records:?}");
    let model = course.model();
    let report = model.evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (50, 50));
    let names: Vec<&str> = report.scores.values.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["exact", "shapes", "colors", "sizes", "places", "perplexity", "error"]);
    // There are far more codes to choose from; what a long training reaches is in docs/results.md.
    assert!(report.scores.get("perplexity").unwrap() < 8.0, "{:?}", report.scores);

    let sentence = "a red circle left of a small blue square";
    let answers = model.predict(&[sentence.into(), "test:0".into()]).unwrap();
    for answer in &answers {
        let picture = image::load_from_memory(&answer.picture().unwrap()).unwrap();
        assert_eq!((picture.width(), picture.height()), (16, 16));
        assert_eq!(answer.details["codes"].as_array().unwrap().len(), 16);
    }
    assert_eq!(answers[0].details["sentences"][0], sentence);
    assert_eq!(answers[1].details["sentences"].as_array().unwrap().len(), 2);
    let unknown = model.predict(&["a purple circle".into()]).unwrap().remove(0);
    assert_eq!(unknown.unknown_words(), ["purple"]);
    let typed = model.typed(&"test:0".into()).unwrap();
    assert_eq!(typed.as_deref(), Some(&answers[1].input[..]));

    assert_eq!(course.drawn(sentence), ["words", "alignment", "encoder", "decoder"]);
    let scenes = model.show(&sentence.into()).unwrap();
    let (Scene::Image(words), Scene::Maps(alignment)) = (&scenes[0].1, &scenes[1].1) else {
        panic!("{scenes:?}")
    };
    assert_eq!((words.columns, words.rows, words.channels, words.maps.len()), (4, 4, 3, 9));
    assert_eq!(words.maps[8].name, "square");
    assert_eq!((alignment.rows.len(), alignment.columns.len()), (16, 9));
    for patch in 0..16 {
        let sum: f32 = words.maps.iter().map(|map| map.weights[patch]).sum();
        assert!((sum - 1.0).abs() < 1e-4, "the words of a patch share a weight of 1: {sum}");
    }
    // The picture that is overlaid is the one that is predicted.
    let png = image::load_from_memory(&answers[0].picture().unwrap()).unwrap().to_rgb8();
    for (a, b) in words.pixels.iter().zip(png.as_raw()) {
        assert_eq!((a * 255.0).round() as u8, *b);
    }
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    resumes_exactly("draw", &with(&["epochs=2", "dropout=0.1"]), 9);
}

#[test]
fn every_kind_of_model_draws_in_chinese_too() {
    let kinds: [(&[&str], &[&str]); 6] = [
        (&["context=fixed", "encoder=gru", "decoder=gru", "embedded=chinese"], &[]),
        (&["context=fixed", "decoder=gru"], &["encoder"]),
        (&["context=attention", "encoder=gru", "decoder=lstm"], &["words", "alignment"]),
        (&["encoder=cnn", "decoder=cnn", "context=attention"], &["words", "alignment"]),
        (
            &["context=attention", "decoder=gru", "weighting=sample", "beam=3"],
            &["words", "alignment", "encoder"],
        ),
        (
            &["tied_embeddings=output", "codes=8", "embedded=chinese"],
            &["words", "alignment", "encoder", "decoder"],
        ),
    ];
    for (kind, scenes) in kinds {
        let course = Course::done("draw", &with(kind));
        let [one, two] = &course.model().n_best(&["test:1".into()], 2).unwrap()[0][..] else {
            panic!("{kind:?}")
        };
        assert!(one.score >= two.score && one.output != two.output, "{kind:?}");
        match scenes.is_empty() {
            true => {
                let told = course.model().show(&"test:1".into()).unwrap_err().to_string();
                assert!(told.starts_with("this model attends to nothing"), "{told}");
            }
            false => assert_eq!(course.drawn("test:1"), scenes, "{kind:?}"),
        }
    }
}

/// Pictures of one color each, with one or two sentences.
fn colors(folder: &Path) -> String {
    let mut list = String::new();
    for (at, (color, pixel)) in
        [("red", [200, 0, 0]), ("blue", [0, 0, 200])].into_iter().cycle().take(20).enumerate()
    {
        RgbImage::from_pixel(20, 12, Rgb(pixel)).save(folder.join(format!("{at}.png"))).unwrap();
        list += &format!("{at}.png\tall of it is {color}\n");
        if at % 3 == 0 {
            list += &format!("{at}.png\tnothing but {color}\n");
        }
    }
    let path = folder.join("list.tsv");
    std::fs::write(&path, list).unwrap();
    format!("train={}", path.display())
}

#[test]
fn own_pictures_are_learned_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let train = colors(folder.path());
    let settings = with(&[
        &train,
        "held_out=0.2",
        "epochs=30",
        "batch_size=4",
        "learning_rate=0.01",
        "warmup_steps=0",
    ]);
    let description = task_named("draw").unwrap().describe(&options("draw", &settings)).unwrap();
    let fact = |name: &str| {
        let found = description.facts.iter().find(|(fact, _)| fact == name);
        found.unwrap().1.clone()
    };
    assert_eq!((fact("training pictures"), fact("codes")), ("12".into(), "2".into()));
    assert_eq!(fact("error of the codes"), "0.0000");
    let course = Course::done("draw", &settings);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, &report.scores.values[0].0[..]), (4, "perplexity"));
    assert!(report.scores.get("error").unwrap() < 1e-6, "{:?}", report.scores);
    for (sentence, color) in [("nothing but red", [200, 0, 0]), ("all of it is blue", [0, 0, 200])]
    {
        let answer = course.model().predict(&[sentence.into()]).unwrap().remove(0);
        let picture = image::load_from_memory(&answer.picture().unwrap()).unwrap().to_rgb8();
        assert!(picture.pixels().all(|pixel| pixel.0 == color), "{sentence}");
    }
    // In gray as well, where nothing names a color.
    let gray = with(&[&train, "color=false"]);
    let answer = Course::done("draw", &gray).model().predict(&["nothing but red".into()]).unwrap();
    let picture = image::load_from_memory(&answer[0].picture().unwrap()).unwrap();
    assert_eq!(picture.color(), image::ColorType::L8);
}

#[test]
fn what_cannot_be_drawn_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    colors(folder.path());
    let list = |text: &str| files::refused_list("draw", folder.path(), text, &with(&[]));
    files::ends(
        &list("0.png\tred\n1.png blue\n"),
        "bad.tsv, line 2: path and sentence with a tab between were expected, 1 column is there",
    );
    files::ends(
        &list(&(0..10).map(|at| format!("{}.png\tred\n", 2 * at)).collect::<String>()),
        "all patches of the training pictures are alike: there is nothing to draw",
    );
    for (setting, told) in [
        (
            "patch_size=5",
            "`model.patch_size` cannot be 5: it divides `data.image_size`, which is 16",
        ),
        ("codes=1", "`model.codes` cannot be 1; it is 2 to 65536 patches"),
        ("beam=0", "`search.beam` cannot be 0; 1 to 1000 can be searched"),
    ] {
        assert_eq!(refusal("draw", &with(&[setting])), told);
    }
    assert!(refusal("draw", &with(&["color=false"])).contains("without the colors"));
    assert!(
        refusal("draw", &with(&["tied_embeddings=all"])).contains("one table of words and patches")
    );
    assert!(refusal("draw", &with(&["image_size=8"])).contains("below 16 shapes look alike"));
    let course = Course::done("draw", &with(&[]));
    let told = |input: &str| course.model().predict(&[input.into()]).err().unwrap().to_string();
    assert_eq!(told("test:99"), "`test:99`: the part has 50 pictures, from 0");
    assert_eq!(told(" "), "` `: there are no words to draw");
    let beam = course.model().abilities().predict_with_beam(&["a".into()], 3);
    assert!(beam.unwrap_err().to_string().contains("writes no text"));
}
