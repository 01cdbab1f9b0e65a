//! `image`, from data to pictures.

use crate::corpus;
use crate::{course, files};

use corpus::corpus;
use course::{Course, refusal, resumes_exactly};
use image::{GrayImage, Luma, Rgb, RgbImage};
use regard_picture::scene::Scene;
use regard_tasks::options::Options;
use regard_tasks::task::{Input, Part};
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};

/// A small and quick transformer.
const SMALL: [&str; 5] = ["hidden=16", "heads=2", "layers=2", "feed_forward=32", "size=80"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn accuracy(course: &Course, part: Part) -> f64 {
    course.model().evaluate(part).unwrap().scores.get("accuracy").unwrap()
}

fn setting(key: &str, path: &Path) -> String {
    format!("data.{key}={:?}", path.display().to_string())
}

/// An IDX file of bytes.
fn idx(path: &Path, shape: &[u32], bytes: &[u8]) {
    let head = [0, 0, 8, shape.len() as u8];
    let lengths = shape.iter().flat_map(|n| n.to_be_bytes());
    let all: Vec<u8> = head.into_iter().chain(lengths).chain(bytes.iter().copied()).collect();
    std::fs::write(path, all).unwrap();
}

/// `count` images of 4×4, bright (label 0) or dark (label 1).
fn shades(folder: &Path, name: &str, count: usize) -> [String; 2] {
    let pixel = |at: usize| 200 * u8::from(at.is_multiple_of(2)) + at as u8;
    let pixels: Vec<u8> = (0..count * 16).map(|p| pixel(p / 16)).collect();
    let labels: Vec<u8> = (0..count).map(|at| (at % 2) as u8).collect();
    let paths = ["images", "labels"].map(|kind| folder.join(format!("{name}-{kind}")));
    idx(&paths[0], &[count as u32, 4, 4], &pixels);
    idx(&paths[1], &[count as u32], &labels);
    [setting(&format!("{name}_images"), &paths[0]), setting(&format!("{name}_labels"), &paths[1])]
}

/// A folder of colored images, one folder for each color.
fn colors(folder: &Path, sides: [u32; 2]) -> String {
    for (at, color) in ["blue", "red"].into_iter().enumerate() {
        std::fs::create_dir_all(folder.join(color)).unwrap();
        for n in 0..8u8 {
            let pixel = if at == 0 { [n, n, 200] } else { [200, n, n] };
            let image = RgbImage::from_pixel(sides[0], sides[1], Rgb(pixel));
            image.save(folder.join(color).join(format!("{n}.png"))).unwrap();
        }
    }
    setting("train_folder", folder)
}

#[test]
fn patches_and_convolutions_learn_the_shapes_far_beyond_chance() {
    for model in ["vit", "cnn"] {
        let model = format!("model.model={model}");
        let settings = ["size=1500", "epochs=3", "layers=2", &model];
        let course = Course::done("image", &settings);
        let test = accuracy(&course, Part::Test);
        assert!(test > 0.6, "{model}: {test} of the test part; chance is 0.25");
        let records = course.records();
        assert!(records[2].loss < 0.8 * records[0].loss, "{model}");
    }
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    // Three batches in an epoch; changes and dropout draw their chance by the step.
    let settings = with(&["epochs=3", "shift=2", "flip=true", "label_smoothing=0.1"]);
    resumes_exactly("image", &settings, 4);
}

#[test]
fn the_same_seed_gives_the_same_measures_and_another_seed_others() {
    let records = Course::done("image", &with(&["epochs=1", "shift=1"])).records();
    assert_eq!(records, Course::done("image", &with(&["epochs=1", "shift=1"])).records());
    assert_ne!(records, Course::done("image", &with(&["epochs=1", "shift=1", "seed=2"])).records());
    assert_ne!(records, Course::done("image", &with(&["epochs=1", "shift=0"])).records());
}

#[test]
fn patches_are_drawn_over_the_image_for_every_head() {
    for (pooling, patch, places) in [("class-token", 4, 16), ("mean", 4, 16), ("mean", 1, 256)] {
        let settings =
            [&format!("pooling={pooling}")[..], &format!("patch_size={patch}"), "epochs=1"];
        let course = Course::done("image", &with(&settings));
        assert_eq!(course.drawn("validation:0"), ["patches"]);
        let scenes = course.model().show(&"test:3".into()).unwrap();
        let Scene::Image(scene) = &scenes[0].1 else { panic!("no image") };
        assert_eq!((scene.rows * scene.columns, scene.maps.len()), (places, 2 * 2));
        assert_eq!((scene.pixels.len(), &scene.maps[3].name[..]), (256, "layer 2, head 2"));
        for map in &scene.maps {
            assert_eq!(map.weights.len(), places);
            let sum: f32 = map.weights.iter().sum();
            // A class token attends to itself too, and that is not shown.
            let least = if pooling == "mean" { 0.999 } else { 0.5 };
            assert!((least..1.001).contains(&sum), "{pooling}: {sum}");
        }
    }
}

#[test]
fn positions_windows_and_scores_are_learned_and_drawn() {
    let mut tried = 0;
    for own in [
        &["position=none"][..],
        &["position=sinusoidal", "window=1"],
        &["position=rotary", "head_score=additive"],
        &["position=alibi", "head_score=bilinear", "pooling=mean"],
        &["position=relative", "head_weighting=sparsemax"],
        &["window=1", "pooling=mean"],
        &["head_score=dot", "key_width=3", "value_width=5", "bias=false"],
    ] {
        let course = Course::done(
            "image",
            &with(&[&["epochs=3", "batch_size=16", "learning_rate=0.003"], own].concat()),
        );
        assert_eq!(course.drawn("validation:0"), ["patches"], "{own:?}");
        let losses: Vec<f64> = course.records().iter().map(|record| record.loss).collect();
        assert!(losses[1] < losses[0] && losses[2] < losses[1], "{own:?}: {losses:?}");
        assert!((0.0..=1.0).contains(&accuracy(&course, Part::Test)), "{own:?}");
        tried += 1;
    }
    assert_eq!(tried, 7);
}

#[test]
fn convolutions_attend_to_nothing_and_say_so() {
    let course = Course::done("image", &with(&["model.model=cnn", "epochs=1"]));
    let error = course.model().show(&"validation:0".into()).unwrap_err().to_string();
    assert_eq!(error, "this model attends to nothing: it is a CNN");
}

#[test]
fn idx_files_are_learned_measured_and_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let [images, labels] = shades(folder.path(), "train", 40);
    let [test_images, test_labels] = shades(folder.path(), "test", 6);
    let own = [&images[..], &labels, &test_images, &test_labels];
    let more = ["patch_size=2", "epochs=12", "held_out=0.2", "batch_size=8", "learning_rate=0.01"];
    let course = Course::done("image", &with(&[&own[..], &more].concat()));
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.scores.first()), (6, ("accuracy", 1.0)));
    let confusion = report.confusion.unwrap();
    assert_eq!(confusion.counts, [[3, 0], [0, 3]]);
    assert_eq!(report.samples[1], ("test:1".into(), "1".into(), "1".into()));
    assert_eq!(course.model().evaluate(Part::Validation).unwrap().examples, 8);

    // A file of another size is brought to the model's.
    let bright = folder.path().join("bright.png");
    GrayImage::from_pixel(12, 9, Luma([210])).save(&bright).unwrap();
    let inputs = [files::content(&bright), "test:1".into()];
    let predictions = course.model().predict(&inputs).unwrap();
    assert_eq!([&predictions[0].output, &predictions[1].output], ["0", "1"]);
    assert!(predictions[0].details["probabilities"]["0"].as_f64().unwrap() > 0.5);
    assert_eq!(course.drawn(inputs[0].clone()), ["patches"]);

    let refused = |input: Input| course.model().predict(&[input]).unwrap_err().to_string();
    assert_eq!(refused("test:6".into()), "`test:6`: the part has 6 images, from 0");
    // A text is no path, even where there is such a file.
    let named = refused(bright.display().to_string().into());
    assert!(named.contains("is neither an example of the data, as `test:3`, nor"), "{named}");
    assert!(refused(Input::file("no.png", *b"no picture")).starts_with("no.png: damaged image"));

    let description = course.task.describe(&course.options).unwrap();
    assert!(description.facts.contains(&("training images".into(), "32".into())));
    assert!(description.facts.contains(&("pixels".into(), "4×4".into())));
    assert_eq!(description.labels.len(), 2);
}

#[test]
fn a_folder_of_colors_is_learned_in_color() {
    let folder = tempfile::tempdir().unwrap();
    let own = colors(folder.path(), [8, 4]);
    let more = [
        &own[..],
        "color=true",
        "image_size=4",
        "patch_size=2",
        "epochs=10",
        "learning_rate=0.01",
        "batch_size=4",
    ];
    let course = Course::done("image", &with(&more));
    assert_eq!(accuracy(&course, Part::Training), 1.0);
    let red = files::content(folder.path().join("red/3.png"));
    assert_eq!(course.model().predict(std::slice::from_ref(&red)).unwrap()[0].output, "red");
    let scenes = course.model().show(&red).unwrap();
    let Scene::Image(scene) = &scenes[0].1 else { panic!("no image") };
    assert_eq!((scene.channels, scene.pixels.len()), (3, 48));
    assert!(scene.pixels[0] > 0.7 && scene.pixels[1] < 0.1 && scene.pixels[2] < 0.1);
}

#[test]
fn labels_that_training_has_not_seen_count_as_wrong_and_other_sizes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [images, labels] = shades(folder.path(), "train", 20);
    let strange = folder.path().join("strange");
    idx(&strange, &[6], &[0, 1, 0, 7, 1, 1]);
    let [test_images, _] = shades(folder.path(), "test", 6);
    let test_labels = setting("test_labels", &strange);
    let own = with(&[&images, &labels, &test_images, &test_labels, "patch_size=2", "epochs=1"]);
    let course = Course::done("image", &own);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (6, 6));
    assert!(report.notes[0].contains("1 of the test part's 6 labels is unseen"), "{report:?}");
    assert!(report.notes[0].contains("(7)"), "{report:?}");
    assert!(report.scores.get("accuracy").unwrap() <= 5.0 / 6.0 + 1e-9);
    assert!(report.scores.get("loss").unwrap().is_finite());

    let wide = folder.path().join("wide");
    idx(&wide, &[6, 4, 8], &[0; 6 * 32]);
    let options = course.options.clone().set(&setting("test_images", &wide)).unwrap();
    let error = course.run.model(&options).unwrap().evaluate(Part::Test).unwrap_err().to_string();
    assert_eq!(
        error,
        "the test part has images of 4×8 pixels and 1 channels; the model was made for 4×4 and 1"
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let [images, labels] = shades(folder.path(), "train", 20);
    let one = "the train part needs `data.train_images` and `data.train_labels`, or \
               `data.train_folder` alone";
    assert_eq!(refusal("image", &[&images]), one);
    assert!(refusal("image", &[&images, &labels, "patch_size=3"]).contains("a patch of 3"));
    assert!(refusal("image", &["model.model=rnn"]).contains("rnn"));
    for of_patches in [
        "key_width=3",
        "value_width=3",
        "bias=false",
        "head_score=dot",
        "head_weighting=argmax",
        "position=none",
        "window=1",
    ] {
        let (name, _) = of_patches.split_once('=').unwrap();
        let refused = refusal("image", &["model.model=cnn", of_patches]);
        assert!(
            refused.starts_with(&format!("`model.{name}="))
                && refused.ends_with(
                    "has no effect with `model.model=cnn`; it needs `model.model` to be vit"
                ),
            "{refused}"
        );
    }
    assert!(refusal("image", &["window=0"]).contains("a window of 0 sees no neighbor"));
    assert!(refusal("image", &["head_weighting=sample"]).contains("sampling within a block"));
    assert!(refusal("image", &["held_out=0.7"]).contains("held_out"));
    assert!(refusal("image", &["image_size=4"]).contains("side 4"));
    assert!(
        refusal("image", &[&images, &labels, "held_out=0.0", "patch_size=2"])
            .contains("0 validation images")
    );
    let lying = folder.path().join("lying");
    idx(&lying, &[20, 4, 4], &[0; 7]);
    let refused = refusal("image", &[&setting("train_images", &lying), &labels]);
    assert!(refused.contains("lying: its header says 20 images of 4×4"), "{refused}");
}

#[test]
fn the_comparison_is_of_attention_and_convolutions() {
    let names: Vec<String> =
        task_named("image").unwrap().comparison().into_iter().map(|v| v.name).collect();
    assert_eq!(names, ["ViT", "CNN"]);
}

fn configured() -> Options {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let options = task_named("image").unwrap().options().unwrap();
    options.file(&root.join("configs/fashion-mnist.toml")).unwrap()
}

#[test]
fn the_configuration_for_fashion_mnist_has_known_options() {
    assert_eq!(configured().get("training.warmup_steps").unwrap().as_integer(), Some(500));
}

#[test]
#[ignore = "needs ../shared/data"]
fn the_configuration_for_fashion_mnist_trains_on_it() {
    let (folder, options) = (corpus("fashion-mnist"), configured());
    let files = [
        ("train_images", "train-images-idx3-ubyte.gz"),
        ("train_labels", "train-labels-idx1-ubyte.gz"),
        ("test_images", "t10k-images-idx3-ubyte.gz"),
        ("test_labels", "t10k-labels-idx1-ubyte.gz"),
    ];
    let options = files.iter().fold(options, |options, (key, file)| {
        options.set(&setting(key, &folder.join(file))).unwrap()
    });
    let mut learner = task_named("image").unwrap().begin(&options).unwrap();
    let random = regard::tensor::Random::new(1);
    let batches = learner.batches(16, &random).unwrap();
    assert_eq!(batches.concat().len(), 55_000);
    let loss = learner.loss(&batches[0], &random).unwrap().item().unwrap();
    assert!((1.5..4.0).contains(&loss), "{loss}");
}
