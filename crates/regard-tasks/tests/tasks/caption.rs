//! `caption`, from data to pictures.

use crate::{course, files};

use course::{Course, options, refusal, resumes_exactly};
use image::{Rgb, RgbImage};
use regard_data::toy::{CaptionLanguage, captioned};
use regard_picture::scene::Scene;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// A small and quick captioner.
const SMALL: [&str; 9] = [
    "size=60",
    "image_size=16",
    "embedding=16",
    "hidden=16",
    "score_hidden=16",
    "heads=2",
    "feed_forward=32",
    "batch_size=16",
    "epochs=1",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn sentences_say_what_is_painted_in_both_languages() {
    let english = captioned(200, 32, CaptionLanguage::English, 1).unwrap();
    let chinese = captioned(200, 32, CaptionLanguage::Chinese, 1).unwrap();
    for (one, other) in english.iter().zip(&chinese) {
        assert_eq!(one.pixels, other.pixels);
        assert_eq!((one.sentences.len(), other.sentences.len()), (2, 2));
        let [first, second] = &one.sentences[..] else { panic!() };
        let turned = [("left of", "right of"), ("above", "below")];
        let pair = turned.iter().find(|(word, _)| first.contains(word)).unwrap();
        assert!(second.contains(pair.1), "{first} | {second}");
        let (a, b) = first.split_once(&format!(" {} ", pair.0)).unwrap();
        assert_eq!(*second, format!("{b} {} {a}", pair.1));
        assert_eq!(other.sentences[0].contains("左边"), first.contains("left of"));
        assert_eq!(other.sentences[0].matches('小').count(), first.matches("small").count());
        assert!(one.pixels.iter().all(|x| (0.0..=1.0).contains(x)));
        // The middle of the first half in which something red stands is red.
        if a.starts_with("a red square") && first.contains("left of") {
            let red: f32 = one.pixels[..1024].iter().sum();
            let blue: f32 = one.pixels[2048..].iter().sum();
            assert!(red > blue || b.contains("blue") || b.contains("white"), "{first}");
        }
    }
}

#[test]
fn it_learns_far_beyond_chance_and_then_predicts_and_draws() {
    let settings =
        ["size=800", "image_size=16", "epochs=8", "batch_size=32", "learning_rate=0.004"];
    let course = Course::done("caption", &settings);
    let records = course.records();
    assert!(records[7].loss < 0.6 * records[0].loss, "{records:?}");
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (80, 80));
    let bleu = report.scores.get("BLEU").unwrap();
    assert!(bleu > 40.0, "{:?}", report.scores);
    let signature = report.signature.clone().unwrap();
    assert!(signature.contains("|tok:13a|"), "English is split as sacreBLEU does: {signature}");
    assert!(report.samples[0].1.contains(" | "), "both sentences are references");
    let answers = course.model().predict(&["test:0".into(), "validation:3".into()]).unwrap();
    assert!(answers.iter().all(|answer| answer.output.starts_with("a ")), "{answers:?}");
    assert_eq!(course.drawn("test:0"), ["words", "encoder"]);
    let scenes = course.model().show(&"test:0".into()).unwrap();
    let Scene::Image(scene) = &scenes[0].1 else { panic!("{scenes:?}") };
    assert_eq!((scene.columns, scene.rows, scene.channels), (2, 2, 3));
    assert_eq!(scene.maps.last().unwrap().name, "<end>");
    for map in &scene.maps {
        assert!((map.weights.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    resumes_exactly("caption", &with(&["epochs=2", "dropout=0.1", "weighting=sample"]), 9);
}

#[test]
fn every_kind_of_model_captions_in_chinese_too() {
    let kinds: [(&[&str], &[&str]); 6] = [
        (&["context=fixed", "encoder=gru", "embedded=chinese"], &[]),
        (&["context=fixed", "embedded=chinese"], &["encoder"]),
        (&["encoder=gru", "decoder=lstm", "embedded=chinese"], &["words"]),
        (&["encoder=cnn", "decoder=cnn", "color=false"], &["words", "alignment"]),
        (&["encoder=none", "decoder=gru", "patch_size=2"], &["words"]),
        (
            &["decoder=transformer", "context=multi-head"],
            &["words", "alignment", "encoder", "decoder"],
        ),
    ];
    for (kind, scenes) in kinds {
        let course = Course::done("caption", &with(kind));
        assert_eq!(course.model().predict(&["test:1".into()]).unwrap().len(), 1, "{kind:?}");
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
        let image = RgbImage::from_pixel(20, 12, Rgb(pixel));
        image.save(folder.join(format!("{at}.png"))).unwrap();
        list += &format!("{at}.png\tthis picture is all {color}\n");
        if at % 3 == 0 {
            list += &format!("{at}.png\there is nothing but {color}\n");
        }
    }
    let path = folder.join("list.tsv");
    std::fs::write(&path, list).unwrap();
    format!("train={}", path.display())
}

#[test]
fn own_pictures_are_read_with_several_sentences_and_parts_are_held_out() {
    let folder = tempfile::tempdir().unwrap();
    let train = colors(folder.path());
    let settings = with(&[
        &train,
        "held_out=0.2",
        "epochs=40",
        "batch_size=4",
        "beam=1",
        "learning_rate=0.01",
        "warmup_steps=0",
    ]);
    let description =
        task_named("caption").unwrap().describe(&options("caption", &settings)).unwrap();
    let facts: Vec<&str> = description.facts.iter().map(|(_, text)| &text[..]).take(3).collect();
    assert_eq!(facts, ["12", "4", "4"]);
    let course = Course::done("caption", &settings);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!(report.examples, 4);
    let answer =
        course.model().predict(&[files::content(folder.path().join("0.png"))]).unwrap().remove(0);
    assert!(answer.output.ends_with("red"), "{}", answer.output);
}

#[test]
fn what_cannot_be_read_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    colors(folder.path());
    let list = |text: &str| files::refused_list("caption", folder.path(), text, &with(&[]));
    files::ends(
        &list("0.png\tred\n1.png blue\n"),
        "bad.tsv, line 2: path and sentence with a tab between were expected, 1 column is there",
    );
    files::ends(
        &list("0.png\t \n"),
        "bad.tsv, line 1: path and sentence with a tab between were expected, 1 column is there",
    );
    files::ends(&list("\tred\n"), "bad.tsv, line 1: the path is empty");
    assert!(list("0.png\tred\nmissing.png\tred\n").contains("line 2: there is no file"));
    files::ends(&list(""), "bad.tsv: it lists no pictures");
    std::fs::write(folder.path().join("0.png"), "no picture").unwrap();
    let told = list(&"0.png\tred\n".repeat(3));
    assert!(told.contains("0.png: ") && !told.contains("line"), "{told}");
    assert_eq!(
        refusal("caption", &["image_size=30"]),
        "`model.patch_size` cannot be 8: it divides `data.image_size`, which is 30"
    );
    assert!(refusal("caption", &with(&["tied_embeddings=all"])).contains("source without tokens"));
    let course = Course::done("caption", &with(&[]));
    let told = course.model().predict(&["test:99".into()]).err().unwrap().to_string();
    assert_eq!(told, "`test:99`: the part has 50 pictures, from 0");
}
