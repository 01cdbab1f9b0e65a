//! What the program says: that it is so, and that it is of use.

use crate::file::regard;
use crate::tasks::{SMALL, path, refused, said};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// What a verb says on standard error.
fn aside(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_damaged_in_a_run_is_called_that() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let at = |name: &str| Path::new(&run).join(name);
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    let whole = fs::read_to_string(at("vocabulary.json")).unwrap();
    fs::write(at("vocabulary.json"), &whole[..whole.len() / 2]).unwrap();
    let told = refused(&["train", "--resume", &run, "--set", "epochs=2"]);
    assert!(told.contains("vocabulary.json: ") && told.contains("line 1"), "{told}");
    assert!(!told.contains("have changed"), "{told}");
    fs::write(at("vocabulary.json"), whole).unwrap();
    fs::remove_file(at("best.safetensors")).unwrap();
    let told = refused(&["eval", &run]);
    assert!(told.contains("best.safetensors: is not there") && told.contains("removed"), "{told}");
    // Before the first validation there is none yet.
    fs::remove_file(at("metrics.jsonl")).unwrap();
    let told = refused(&["eval", &run]);
    assert!(told.contains("no epoch has been validated yet"), "{told}");
}

#[test]
fn a_run_of_an_older_version_is_measured_with_a_word_about_its_parts() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    assert!(!aside(&["eval", &run]).contains("held out"));
    let file = Path::new(&run).join("run.json");
    let old = r#"{"task": "regress", "version": "0.1.0", "parameters": 1}"#;
    fs::write(file, old).unwrap();
    assert!(aside(&["eval", &run]).contains("a version that held out other examples"));
}

#[test]
fn numbers_that_are_too_large_are_called_that() {
    let told = refused(&["train", "regress", "--set", "seed=18446744073709551615"]);
    assert_eq!(
        told,
        "regard: `training.seed` cannot be 18446744073709551615; whole numbers go up to \
         9223372036854775807"
    );
}

#[test]
fn a_wrong_option_is_named_as_its_user_writes_it() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    for (task, set, told) in [
        ("label", "hidden=65", "(`model.heads` = 4, `model.hidden` = 65)"),
        ("translate", "score_hidden=0", "`model.score_hidden` = 0"),
        ("image", "patch_size=5", "`model.patch_size` = 5"),
        ("label", "window=-1", "`model.window` cannot be -1; it is a whole number from 0"),
        ("label", "betas=3", "`training.betas` cannot be 3; it is a list of two"),
        ("translate", "score=dotty", "`model.score` cannot be \"dotty\"; there are `dot`"),
    ] {
        let error = refused(&["train", task, "--out", &run, "--set", set]);
        assert!(error.contains(told), "{set}: {error}");
    }
}

#[test]
fn a_comparison_takes_lists_and_keys_that_come_twice_as_they_are_meant() {
    let folder = TempDir::new().unwrap();
    let out = path(&folder, "out");
    let arguments = ["compare", "regress", "--set", "size=60", "--set", "epochs=1", "--out", &out];
    let over = [
        "--over",
        "betas=[0.9, 0.98],[0.9, 0.999]",
        "--over",
        "bandwidth=1,2",
        "--over",
        "bandwidth=3",
    ];
    let told = said(&[&arguments[..], &over, &["--seeds", "2"]].concat());
    assert!(
        told.starts_with("measured on the validation part, 2 seeds, mean ± standard"),
        "{told}"
    );
    for betas in ["[0.9, 0.98]", "[0.9, 0.999]"] {
        for width in 1..4 {
            assert!(told.contains(&format!("\n{betas}, {width} ")), "{told}");
        }
    }
    assert!(told.contains("p: how likely a difference from the first variant"), "{told}");
    let json = fs::read_to_string(Path::new(&out).join("comparison.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["part"], "validation");
    assert_eq!(json["variants"].as_array().unwrap().len(), 6);
    assert!(json["variants"][1]["p"].as_f64().unwrap() <= 1.0);
}

#[test]
fn images_that_took_long_to_read_are_kept_as_they_were_read() {
    let folder = TempDir::new().unwrap();
    let images = folder.path().join("images");
    // A bitmap of two by two pixels is 70 bytes that anybody can write.
    let bitmap = |shade: u8| {
        let mut bytes = vec![b'B', b'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0];
        bytes.extend([2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0]);
        bytes.resize(54, 0);
        bytes.resize(70, shade);
        bytes
    };
    for label in ["dark", "light"] {
        fs::create_dir_all(images.join(label)).unwrap();
        for at in 0..10 {
            fs::write(images.join(label).join(format!("{at}.bmp")), bitmap(at * 20)).unwrap();
        }
    }
    let set = format!("train_folder={}", images.display());
    let cache = folder.path().join("cache");
    let read = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_regard"));
        command.env("REGARD_CACHE", &cache).args([
            "data",
            "image",
            "--set",
            &set,
            "--set",
            "image_size=8",
        ]);
        command.output().unwrap()
    };
    let first = read();
    assert!(first.status.success(), "{first:?}");
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    // Of the same length and date, a file is taken for what it was.
    let file = images.join("dark/3.bmp");
    let date = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, [7; 70]).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(date).unwrap();
    assert_eq!(read().stdout, first.stdout);
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    let told = String::from_utf8(read().stderr).unwrap();
    assert!(told.contains("3.bmp: damaged image"), "{told}");
}

#[test]
fn a_setting_that_a_trained_model_cannot_follow_is_refused() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&[&["train", "translate", "--out", &run][..], &SMALL].concat());
    for verb in [&["predict", &run, "May"][..], &["eval", &run], &["show", &run, "May"]] {
        for set in ["tokenizer=words", "hidden=48", "seed=5", "label_smoothing=0.3"] {
            let told = refused(&[verb, &["--set", set]].concat());
            assert!(told.contains("belongs to training"), "{set}: {told}");
        }
        said(&[verb, &["--set", "beam=2", "--set", "text.tokenizer=characters"]].concat());
    }
}

#[test]
fn a_long_cell_is_not_echoed_whole() {
    let folder = TempDir::new().unwrap();
    let (run, table) = (path(&folder, "run"), path(&folder, "long.csv"));
    let long = "x".repeat(1 << 20);
    fs::write(&table, format!("1,2\n3,{long}\n")).unwrap();
    let train = format!("train={table}");
    let told = refused(&["train", "regress", "--out", &run, "--set", &train]);
    assert!(told.len() < 1000 && told.contains("long.csv, line 2: column 2"), "{}", told.len());
    assert!(told.ends_with("is not a finite number"), "{told}");
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    fs::write(&table, format!("{long}\n")).unwrap();
    assert!(refused(&["predict", &run, "--file", &table]).len() < 1000);
}

#[test]
fn one_is_one_and_two_losses_have_two_names() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let sets = ["--set", "epochs=1", "--set", "validate_every=1"];
    let told = aside(&[&["train", "graph", "--out", &run][..], &sets].concat());
    assert!(told.contains("; 1 epoch of 1 batch\n"), "{told}");
    assert!(told.contains(" MiB with gradients and optimizer"), "{told}");
    let line = told.lines().find(|line| line.starts_with("epoch   1")).unwrap();
    assert_eq!(line.matches("  loss ").count(), 1, "{line}");
    assert!(line.contains("  training loss "), "{line}");
}

#[test]
fn what_attends_to_nothing_is_not_offered_to_be_shown() {
    let folder = TempDir::new().unwrap();
    for (model, offered) in [("context=fixed", false), ("context=attention", true)] {
        let run = path(&folder, model);
        let train = ["train", "translate", "--out", &run, "--set", model];
        // A fixed vector has no scores.
        let small = SMALL.chunks(2).filter(|set| offered || set[1] != "score_hidden=16");
        let small: Vec<&str> = small.flatten().copied().collect();
        let told = said(&[&train[..], &small].concat());
        assert_eq!(told.contains("next: `regard show"), offered, "{told}");
        assert!(told.contains("`regard eval"), "{told}");
    }
}

#[test]
fn a_training_is_done_though_its_picture_is_too_large() {
    let folder = TempDir::new().unwrap();
    let (run, data) = (path(&folder, "run"), path(&folder, "long.tsv"));
    let text = "word ".repeat(12_000);
    let lines: String = (0..20).map(|i| format!("{}\t{text}\n", ["a", "b"][i % 2])).collect();
    fs::write(&data, lines).unwrap();
    let train = format!("train={data}");
    let output = regard(&[
        "train",
        "classify",
        "--out",
        &run,
        "--set",
        &train,
        "--set",
        "epochs=1",
        "--set",
        "max_length=20000",
        "--set",
        "encoder=none",
        "--set",
        "embedding=4",
    ]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("best epoch 1"));
}

#[test]
fn a_tie_is_broken_by_the_loss_and_an_untrained_model_says_something() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let sets = ["--set", "epochs=6", "--set", "learning_rate=0.0001"];
    let told = said(&[&["train", "translate", "--out", &run][..], &SMALL, &sets].concat());
    let records = fs::read_to_string(Path::new(&run).join("metrics.jsonl")).unwrap();
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let measure = |record: &serde_json::Value, at: usize| {
        record["validation"]["values"][at][1].as_f64().unwrap()
    };
    // The best has the highest BLEU, and among those the lowest perplexity.
    let order = |a: &&serde_json::Value, b: &&serde_json::Value| {
        let bleu = measure(a, 0).total_cmp(&measure(b, 0));
        bleu.then(measure(b, 2).total_cmp(&measure(a, 2)))
    };
    let best = records.iter().max_by(order).unwrap();
    assert!(
        records.iter().filter(|r| measure(r, 0) == measure(best, 0)).count() > 1,
        "{records:?}"
    );
    assert!(told.contains(&format!("best epoch {} of 6", best["epoch"])), "{told}");
    assert_ne!(best["epoch"], 1);
    for output in said(&["predict", &run, "May 3, 1999", "4 May 2001", "x"]).lines() {
        assert!(!output.is_empty());
    }
}

#[test]
fn a_long_line_does_not_stall_validation_or_search() {
    let folder = TempDir::new().unwrap();
    let (run, pairs) = (path(&folder, "run"), path(&folder, "long.tsv"));
    said(&[&["train", "translate", "--out", &run][..], &SMALL].concat());
    fs::write(&pairs, format!("{}\t2001-05-04\nMay 3, 1999\t1999-05-03\n", "4".repeat(10_000)))
        .unwrap();
    let told = said(&["eval", &run, "--set", &format!("test_pairs={pairs}")]);
    assert!(
        told.contains("1 of 2 sources have more than `data.max_length` = 100 tokens"),
        "{told}"
    );
    let told = said(&["predict", &run, "--set", "max_output_length=3", "May 3, 1999"]);
    assert!(told.trim_end().chars().count() <= 3, "{told}");
}

#[test]
fn a_model_that_cannot_fit_is_refused_before_it_eats_the_memory() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    for (task, set) in [
        ("label", "layers=1000000000"),
        ("label", "hidden=10000000"),
        ("translate", "hidden=10000000"),
        ("image", "hidden=40000000"),
    ] {
        let told = refused(&["train", task, "--out", &run, "--set", set]);
        assert!(told.contains("parameters, more than the"), "{set}: {told}");
        assert!(!Path::new(&run).exists());
    }
}

#[test]
fn many_rows_are_sampled_with_a_word_and_read_quickly() {
    let folder = TempDir::new().unwrap();
    let (run, table) = (path(&folder, "run"), path(&folder, "rows.csv"));
    let rows: String = (0..12_600).map(|i| format!("{},{}\n", i % 97, i % 89)).collect();
    fs::write(&table, format!("x,y\n{rows}")).unwrap();
    let train = format!("train={table}");
    let sets = ["--set", "epochs=1", "--set", "model.model=mean", "--set", &train];
    let told = aside(&[&["train", "regress", "--out", &run][..], &sets].concat());
    assert!(told.contains("note: 10000 of 10080 rows are learned"), "{told}");
    said(&["train", "--resume", &run, "--set", "epochs=2"]);
    // Two hundred thousand rows are no reason to wait: a minute of the processor's time is a hundred
    // times what they take.
    let rows: String = (0..200_000).map(|i| format!("{i}.5,{i}.25,{i}\n")).collect();
    fs::write(&table, rows).unwrap();
    in_a_minute_of_work(&["data", "regress", "--set", &train]);
    // Nor are cells in quotes, and columns among others, which once took as long as the square of their number.
    let row = |i: usize| format!("{i},{},\"a film, number {i}\"\n", ["good", "bad"][i % 2]);
    let rows: String = (0..100_000).map(row).collect();
    fs::write(&table, format!("id,label,text\n{rows}")).unwrap();
    in_a_minute_of_work(&["data", "classify", &train, "label_column=label", "text_column=text"]);
}

/// Runs the program, which the system ends when it has computed for a minute.
#[track_caller]
fn in_a_minute_of_work(arguments: &[&str]) {
    let limited = "ulimit -t 60; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_regard")]).args(arguments);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", output.status);
}

#[test]
fn words_that_a_model_does_not_know_are_named() {
    let folder = TempDir::new().unwrap();
    let small = ["size=60", "embedding=8", "epochs=1"];
    let small: Vec<&str> = small.iter().flat_map(|setting| ["--set", setting]).collect();
    for (task, unknown, more) in [
        ("translate", "the zyzzyva is drawing a qwerty", &["hidden=8", "score_hidden=8"][..]),
        ("label", "I saw a zyzzyva and a qwerty", &["hidden=8"]),
        ("classify", "the zyzzyva and a qwerty", &[]),
        ("answer", "zyzzyva went to the garden.\tWhere is qwerty?", &[]),
    ] {
        let run = path(&folder, task);
        let more: Vec<&str> = more.iter().flat_map(|setting| ["--set", setting]).collect();
        said(&[&["train", task, "--out", &run][..], &small, &more].concat());
        let asked = regard(&["predict", &run, "--json", unknown]);
        let told = String::from_utf8(asked.stderr).unwrap();
        assert!(told.contains("words that the model does not know: "), "{task}: {told}");
        let answer: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
        let words: Vec<&str> = answer["details"]["unknown"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        for word in ["zyzzyva", "qwerty"] {
            assert!(told.contains(word) && words.contains(&word), "{task}: {told} {words:?}");
        }
        // All words of what was learned are known.
        assert_eq!(aside(&["predict", &run, "train:0"]), "", "{task}");
        let file = path(&folder, "lines.txt");
        fs::write(&file, format!("{unknown}\n{unknown}\n\n")).unwrap();
        let told = aside(&["predict", &run, "--file", &file]);
        assert!(told.contains("2 of 3 inputs have words that the model does not know"), "{told}");
    }
    // What is copied need not be known; nothing is said of what is.
    let run = path(&folder, "summarize");
    let copying = ["--set", "score_hidden=8"];
    said(&[&["train", "summarize", "--out", &run][..], &small, &copying].concat());
    assert_eq!(aside(&["predict", &run, "zyzzyva sold a qwerty."]), "");
    let told = refused(&["predict", &path(&folder, "answer"), "Mary went home.\t "]);
    assert!(told.contains("the question is empty"), "{told}");
    assert!(
        refused(&["predict", &path(&folder, "answer"), "\tWho?"]).contains("the text is empty")
    );
}

#[test]
fn odd_tables_are_told_by_data_and_train_with_counts() {
    let folder = TempDir::new().unwrap();
    let file = path(&folder, "pairs.tsv");
    let rows = "source\ttarget\n".to_string() + &"ein Hund\ta dog\n".repeat(60) + "\tlost\n";
    fs::write(&file, rows).unwrap();
    let train = format!("train_pairs={file}");
    let told = said(&["data", "translate", &train]);
    assert!(told.contains("61 rows: 60 used, 1 with an empty source or target"), "{told}");
    assert!(told.contains("line 1 names the columns (source, target)"), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&said(&["data", "translate", &train, "--json"])).unwrap();
    assert_eq!(json["notes"].as_array().unwrap().len(), 2);
    let run = path(&folder, "run");
    let small = ["hidden=8", "embedding=8", "score_hidden=8", "epochs=1"];
    let told = aside(&[&["train", "translate", &train, "--out", &run], &small[..]].concat());
    assert!(told.contains("note: ") && told.contains("61 rows: 60 used, 1 with"), "{told}");
    let one = path(&folder, "one.tsv");
    fs::write(&one, "good\ta film\n".repeat(30)).unwrap();
    let told =
        refused(&["train", "classify", &format!("train={one}"), "--out", &path(&folder, "b")]);
    assert!(told.contains("there is nothing to learn"), "{told}");
    let told = said(&["data", "classify", &format!("train={one}")]);
    assert!(told.contains("there is nothing to learn"), "{told}");
}
