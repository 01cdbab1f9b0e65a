//! The tests that stand beside what they try, in the sources: these files alone are compiled once
//! more for them, not the whole crate.
#![allow(dead_code, unused_imports, unreachable_pub)] // what a file has for the rest of its crate
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../src/task/attributed.rs"]
mod attributed;
#[path = "../src/options/class_weights.rs"]
mod class_weights;
#[path = "../src/tasks/label/encoded_sentence.rs"]
mod encoded_sentence;
#[path = "../src/run/events.rs"]
mod events;
#[path = "../src/task/faithfulness.rs"]
mod faithfulness;
#[path = "../src/tasks/image/augmentation.rs"]
mod image_augmentation;
#[path = "../src/tasks/labels/weights.rs"]
mod label_weights;
#[path = "../src/tasks/labels/labelings.rs"]
mod labelings;
#[path = "../src/train/pace.rs"]
mod pace;
#[path = "../src/inspect/places.rs"]
mod places;
#[path = "../src/run/protobuf.rs"]
mod protobuf;
#[path = "../src/task/quadrature.rs"]
mod quadrature;
#[path = "../src/task/saliency.rs"]
mod saliency;
#[path = "../src/tasks/components/sound.rs"]
mod sound;
#[path = "../src/tasks/transcribe/augmentation.rs"]
mod sound_augmentation;

// The rooms that these files name, as far as they name them.
mod options {
    pub(crate) use crate::class_weights;
}
mod run {
    pub(crate) use crate::protobuf;
    pub(crate) use regard_tasks::run as clock;
    pub(crate) use regard_tasks::run as folder;
}
use regard_tasks::run as record;
use regard_tasks::train as callback;

/// The files below a folder whose text has a test.
fn with_tests(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            with_tests(&path, found);
        } else if std::fs::read_to_string(&path).is_ok_and(|text| text.contains("#[test]")) {
            found.push(path);
        }
    }
}

#[test]
fn no_test_in_the_sources_is_left_out() {
    // The crates whose own tests are run by such a file; of a packed crate there is this one alone.
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["regard-tasks", "regard-picture", "regard-data", "regard-tensor", "regard"] {
        let folder = here.parent().unwrap().join(name);
        let Ok(list) = std::fs::read_to_string(folder.join("tests/inside.rs")) else { continue };
        let mut files = Vec::new();
        with_tests(&folder.join("src"), &mut files);
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let named = |path: &std::path::Path| {
                let within = path.strip_prefix(&folder).unwrap().display();
                list.contains(&format!("#[path = \"../{within}\"]"))
            };
            // A folder's own file brings in the others.
            let folders = file.ancestors().skip(1).take_while(|path| path.starts_with(&folder));
            let brought_in = folders.map(|path| path.join("mod.rs")).any(|path| named(&path));
            assert!(named(&file) || brought_in, "{}: name it in tests/inside.rs", file.display());
        }
    }
}
