//! Files that the tests of several tasks write and hand over.

use crate::course::refusal;
use regard_tasks::task::Input;
use std::path::Path;

/// A recording of one channel.
pub(crate) fn wav(path: &Path, samples: &[f32], rate: u32) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    samples.iter().for_each(|x| writer.write_sample((x * 32000.0) as i16).unwrap());
    writer.finalize().unwrap();
}

/// The content of a file, as the program gives it.
pub(crate) fn content(path: impl AsRef<Path>) -> Input {
    let path = path.as_ref();
    Input::file(path.display().to_string(), std::fs::read(path).unwrap())
}

/// What is said of a task's list of files, written as `bad.tsv` beside them.
pub(crate) fn refused_list(task: &str, folder: &Path, text: &str, more: &[&str]) -> String {
    let path = folder.join("bad.tsv");
    std::fs::write(&path, text).unwrap();
    refusal(task, &[more, &[&format!("train={}", path.display())]].concat())
}

/// What is said of a list ends so.
pub(crate) fn ends(told: &str, end: &str) {
    assert!(told.ends_with(end), "{told}");
}
