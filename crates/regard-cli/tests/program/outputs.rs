//! Where results go, and that none is lost on the way.

use crate::file::{File, Folder, regard};
use crate::tasks::{SMALL, path, refused, said};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A run of `regress` that takes a moment.
fn regression(folder: &TempDir) -> String {
    let run = path(folder, "run");
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    run
}

/// A file that `attend` takes.
fn attended() -> File {
    let rows = [0.5; 8];
    File::default().f32("q", &[4, 2], &rows).f32("k", &[4, 2], &rows).f32("v", &[4, 2], &rows)
}

fn with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Every verb that writes what it was asked for, with the place as its last argument.
fn writers<'a>(run: &'a str, input: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["show", run, "2", "--as", "svg", "--out"],
        vec!["eval", run, "--outputs"],
        vec!["init", "regress", "--overwrite", "--out"],
        vec!["attend", input, "--out"],
    ]
}

#[cfg(unix)]
#[test]
fn every_output_goes_through_links_and_into_devices_and_pipes() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = TempDir::new().unwrap();
    let (run, input) = (regression(&folder), Folder::new(&attended().serialized()));
    let input = input.path("in.safetensors").display().to_string();
    let [link, real, device, pipe] = ["link", "real", "device", "pipe"].map(|n| path(&folder, n));
    symlink("real", &link).unwrap();
    symlink("/dev/null", &device).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for writer in writers(&run, &input) {
        // Through a link to a file that is not there yet, and to one that is, which keeps its rights.
        let _ = fs::remove_file(&real);
        said(&[&writer[..], &[&link]].concat());
        let written = fs::read(&real).unwrap();
        assert!(!written.is_empty(), "{writer:?}");
        Command::new("chmod").args(["600", &real]).status().unwrap();
        said(&[&writer[..], &[&link]].concat());
        assert_eq!(fs::read(&real).unwrap(), written, "{writer:?}");
        let rights =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&real).unwrap().permissions());
        assert_eq!(rights & 0o777, 0o600, "{writer:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{writer:?}");
        said(&[&writer[..], &[&device]].concat());
        assert!(fs::symlink_metadata(&device).unwrap().is_symlink(), "{writer:?}");
        assert!(fs::metadata(&device).unwrap().file_type().is_char_device(), "{writer:?}");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        said(&[&writer[..], &[&pipe]].concat());
        assert_eq!(reader.join().unwrap(), written, "{writer:?}");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "{writer:?}");
    }
}

#[test]
fn a_dash_is_standard_output_and_has_it_for_itself() {
    let folder = TempDir::new().unwrap();
    let (run, input) = (regression(&folder), Folder::new(&attended().serialized()));
    let input = input.path("in.safetensors").display().to_string();
    for writer in writers(&run, &input) {
        let file = path(&folder, "file");
        said(&[&writer[..], &[&file]].concat());
        let output = regard(&[&writer[..], &["-"]].concat());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, fs::read(&file).unwrap(), "{writer:?}");
    }
    assert!(!Path::new("-").exists());
}

#[test]
fn text_on_standard_output_ends_with_a_line_end() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let shown =
        ["svg", "html", "json"].map(|form| vec!["show", &run, "2", "--as", form, "--out", "-"]);
    let others = [
        vec!["eval", &run, "--json"],
        vec!["eval", &run, "--outputs", "-"],
        vec!["predict", &run, "2", "--json"],
        vec!["predict", &run, "2"],
        vec!["list", "--json"],
        vec!["data", "regress", "--json"],
        vec!["options", "regress"],
        vec!["init", "regress", "--out", "-"],
        vec!["completions", "bash"],
        vec!["man"],
    ];
    for words in shown.into_iter().chain(others) {
        let told = said(&words);
        assert!(told.ends_with('\n') && !told.ends_with("\n\n"), "{words:?}");
    }
}

#[test]
fn a_device_that_is_not_there_is_refused_in_one_sentence_and_costs_no_run() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let best = || std::fs::read(std::path::Path::new(&run).join("best.safetensors")).unwrap();
    let before = best();
    let verbs = [
        &["train", "regress", "--out", &run, "--overwrite"][..],
        &["train", "--resume", &run],
        &["eval", &run],
        &["predict", &run, "2"],
        &["show", &run, "2"],
        &["compare", &run, &run],
        &["serve", &run],
    ];
    for verb in verbs {
        let told = refused(&[verb, &["--device", "cuda:99"]].concat());
        let parts: Vec<&str> = told.trim().split(": ").collect();
        let again = parts.iter().enumerate().any(|(at, part)| parts[..at].contains(part));
        assert!(told.lines().count() == 1 && !again, "{told}");
        let told = refused(&[verb, &["--device", "gpu"]].concat());
        assert!(told.contains("is no device; auto, cpu, cuda and cuda:1 are"), "{told}");
    }
    assert_eq!(best(), before);
    let compared = path(&folder, "compared");
    let over = ["compare", "regress", "--over", "bandwidth=1.0,2.0", "--out", &compared];
    refused(&[&over[..], &["--device", "cuda:99"]].concat());
    assert!(!std::path::Path::new(&compared).exists());
}

#[test]
fn a_place_that_cannot_be_written_to_is_refused_before_anything_is_computed() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let nowhere = path(&folder, "no/file.svg");
    for writer in [&["show", &run, "2", "--out"][..], &["eval", &run, "--outputs"]] {
        let told = refused(&[writer, &[&nowhere]].concat());
        assert!(told.contains("there is no folder"), "{told}");
        let told = refused(&[writer, &[&path(&folder, "")], &["--part", "test"][..0]].concat());
        assert!(told.contains("this is a folder") || told.contains("by its ending"), "{told}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_called_that() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    for words in [&["predict", &run, "2"][..], &["list"], &["man"], &["show", &run, "2"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_regard"));
        let output = command.args(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("regard: standard output: No space left"), "{words:?}: {told}");
    }
}

#[test]
fn the_input_of_attend_is_replaced_only_on_request() {
    let folder = Folder::new(&attended().serialized());
    let input = folder.path("in.safetensors").display().to_string();
    let before = fs::read(&input).unwrap();
    let told = refused(&["attend", &input, "--out", &input]);
    assert!(told.ends_with("--out is the input; `--overwrite` replaces it"), "{told}");
    assert_eq!(fs::read(&input).unwrap(), before);
    said(&["attend", &input, "--out", &input, "--overwrite"]);
    assert_ne!(fs::read(&input).unwrap(), before);
}

#[test]
fn every_line_of_the_data_has_its_line_in_the_outputs() {
    let folder = TempDir::new().unwrap();
    let (run, test) = (path(&folder, "run"), path(&folder, "test.tsv"));
    said(&[&["train", "translate", "--out", &run][..], &SMALL].concat());
    let lines =
        "May 3, 1999\t1999-05-03\n\n4 May 2001\t\n\t2001-05-04\nJune 1, 2000\t2000-06-01\n\n";
    fs::write(&test, lines).unwrap();
    let outputs = path(&folder, "outputs.txt");
    let set = format!("test_pairs={test}");
    let told = said(&["eval", &run, "--set", &set, "--outputs", &outputs]);
    assert!(told.starts_with("test part, 2 examples"), "{told}");
    assert!(told.contains("4 of 6 lines lack a source or a target"), "{told}");
    let text = fs::read_to_string(&outputs).unwrap();
    let blank: Vec<bool> = text.lines().map(str::is_empty).collect();
    assert_eq!(blank, [false, true, false, true, false, true], "{text}");
    // And the same where lines are predicted for.
    let inputs = path(&folder, "inputs.txt");
    fs::write(&inputs, "May 3, 1999\n\n \n4 May 2001\n").unwrap();
    let told = said(&["predict", &run, "--file", &inputs]);
    let blank: Vec<bool> = told.lines().map(str::is_empty).collect();
    assert_eq!(blank, [false, true, true, false], "{told}");
    let output = with_input(&["predict", &run], &fs::read(&inputs).unwrap());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), told);
}

#[test]
fn standard_input_is_read_in_the_encoding_named_and_a_bad_line_of_it_is_named() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let output = with_input(&["predict", &run], b"1\r\n2\nabc\n4\n");
    assert!(!output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "regard: standard input, line 3: `abc` is not one number: x\n");
    let bytes = b"1\ngr\xfcn\n";
    let told = String::from_utf8(with_input(&["predict", &run], bytes).stderr).unwrap();
    assert!(
        told.starts_with("regard: standard input, line 2: these bytes are not UTF-8"),
        "{told}"
    );
    let output = with_input(&["predict", &run, "--encoding", "latin1"], bytes);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "regard: standard input, line 2: `grün` is not one number: x\n");
}

#[test]
fn a_run_that_cannot_be_written_to_is_still_measured() {
    let folder = TempDir::new().unwrap();
    let (run, out) = (path(&folder, "run"), path(&folder, "confusion.svg"));
    said(&["train", "graph", "--out", &run, "--set", "epochs=1"]);
    // Nobody, not even root, writes a file where a folder is.
    fs::create_dir(Path::new(&run).join("confusion.svg")).unwrap();
    let output = regard(&["eval", &run]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("accuracy"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("note: no picture") && told.contains("`--out` names"), "{told}");
    said(&["eval", &run, "--out", &out]);
    assert!(fs::read_to_string(&out).unwrap().starts_with("<svg"));
}

#[test]
fn the_best_checkpoint_holds_weights_alone() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let names = |file: &str| -> Vec<String> {
        let bytes = fs::read(Path::new(&run).join(file)).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        file.names().into_iter().map(str::to_string).collect()
    };
    let best = names("best.safetensors");
    assert!(best.iter().all(|name| name.starts_with("model/")), "{best:?}");
    assert!(names("last.safetensors").iter().any(|name| name.starts_with("optimizer/")));
}

#[test]
fn a_run_is_used_from_any_folder() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let rows: String = (0..60).map(|i| format!("{i},{}\n", i * 2)).collect();
    fs::write(folder.path().join("rows.csv"), format!("x,y\n{rows}")).unwrap();
    let there = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regard"));
        command.current_dir(folder.path()).args(arguments).output().unwrap()
    };
    let settings = ["--set", "train=rows.csv", "--set", "epochs=1"];
    let output = there(&[&["train", "regress", "--out", "run"][..], &settings].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(there(&["eval", "run", "--json"]).stdout, regard(&["eval", &run, "--json"]).stdout);
    said(&["train", "--resume", &run, "--set", "epochs=2"]);
    // A path that is named now is meant from here.
    let told = refused(&["eval", &run, "--set", "test=rows.csv"]);
    assert!(told.contains("rows.csv: there is no such file"), "{told}");
}

/// What is written to a closed standard output is lost: that is no success.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_closed_standard_output_is_said_and_fails() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    let program = env!("CARGO_BIN_EXE_regard");
    let ended = |redirect: &str| {
        let line = format!("'{program}' predict '{run}' 0.5 {redirect}");
        std::process::Command::new("sh").args(["-c", &line]).output().unwrap()
    };
    let closed = ended(">&-");
    assert_eq!(closed.status.code(), Some(1), "{closed:?}");
    let told = String::from_utf8(closed.stderr).unwrap();
    assert!(told.contains("standard output is closed"), "{told}");
    // Who throws the output away, says so.
    for thrown in ["> /dev/null", "1<> /dev/null", "| cat", "< /dev/null", "<&-"] {
        assert!(ended(thrown).status.success(), "{thrown}");
    }
}

#[test]
fn an_input_without_an_answer_says_so_in_its_line_and_the_rest_is_answered() {
    let folder = TempDir::new().unwrap();
    let run = regression(&folder);
    let file = path(&folder, "lines.txt");
    fs::write(&file, "1\nabc\n\n2\n").unwrap();
    let plain = regard(&["predict", &run, "--file", &file, "--keep-going"]);
    assert_eq!(plain.status.code(), Some(1), "{plain:?}");
    let lines = String::from_utf8(plain.stdout.clone()).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((lines.len(), lines[1], lines[2]), (4, "error: `abc` is not one number: x", ""));
    assert!(lines[0].parse::<f64>().is_ok() && lines[3].parse::<f64>().is_ok(), "{lines:?}");
    let told = String::from_utf8(plain.stderr).unwrap();
    assert_eq!(told, "regard: 1 of 4 inputs have no answer\n");
    let json = regard(&["predict", &run, "--keep-going", "--json", "1", "abc"]);
    let json = String::from_utf8(json.stdout).unwrap();
    let second: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["error"], "`abc` is not one number: x");
    // The same by standard input, and a long one in batches.
    let piped = with_input(&["predict", &run, "--keep-going"], b"1\nabc\n\n2");
    assert_eq!(piped.stdout, plain.stdout);
    let many: String = (0..20_000).map(|at| format!("{}\n", at % 7)).collect();
    let all = with_input(&["predict", &run], many.as_bytes());
    assert_eq!(String::from_utf8(all.stdout).unwrap().lines().count(), 20_000);
}
