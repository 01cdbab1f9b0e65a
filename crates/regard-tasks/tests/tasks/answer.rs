//! The task `answer`, from end to end.

use crate::course;

use course::{Course, options, refusal, resumes_exactly};
use regard_picture::scene::Scene;
use regard_tasks::Result;
use regard_tasks::task::{Input, Part};
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};

const SMALL: [&str; 5] = ["size=300", "epochs=3", "embedding=16", "hidden=16", "score_hidden=16"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn file(folder: &Path, option: &str, name: &str, text: &str) -> String {
    format!("{option}=\"{}\"", written(folder, name, text).display())
}

/// What SQuAD's JSON looks like, with some questions about one text.
fn squad(questions: &str) -> String {
    let text = "Mary went home. John has a red boat. The boat is old.";
    format!(
        r#"{{"version": "v2.0", "data": [{{"title": "t", "paragraphs": [
            {{"context": "{text}", "qas": [{questions}]}}]}}]}}"#
    )
}

fn asked(question: &str, answer: &str, start: i64) -> String {
    format!(
        r#"{{"id": "1", "question": "{question}",
            "answers": [{{"text": "{answer}", "answer_start": {start}}}]}}"#
    )
}

#[test]
fn one_fact_is_found_and_the_sentence_that_tells_it_is_attended_to() -> Result<()> {
    for language in ["language=english", "language=chinese"] {
        let course = Course::done(
            "answer",
            &[
                "facts=1",
                "hops=1",
                "size=1500",
                "epochs=12",
                "embedding=32",
                "learning_rate=0.005",
                language,
            ],
        );
        let scores = course.model().evaluate(Part::Test)?.scores;
        assert!(scores.get("accuracy").unwrap() > 0.9, "{language}: {scores:?}");
        assert!(scores.get("supporting").unwrap() > 0.85, "{language}: {scores:?}");
        assert_eq!(scores.get("accuracy"), scores.get("exact match"), "{language}");
    }
    Ok(())
}

#[test]
fn hops_that_are_taught_look_at_the_sentences_that_tell_the_answer() -> Result<()> {
    let settings =
        ["facts=3", "hops=3", "size=800", "epochs=8", "embedding=32", "learning_rate=0.005"];
    let supporting = |taught: &str| -> Result<f64> {
        let course = Course::done("answer", &[&settings[..], &[taught]].concat());
        Ok(course.model().evaluate(Part::Test)?.scores.get("supporting").unwrap())
    };
    let (taught, alone) = (supporting("hop_supervision=1.0")?, supporting("hop_supervision=0.0")?);
    assert!(taught > 0.8 && taught > alone, "taught: {taught}, alone: {alone}");
    Ok(())
}

#[test]
fn hard_weights_learn_too_and_choose_one_sentence() -> Result<()> {
    for weighting in ["weighting=sample", "weighting=straight-through", "weighting=gumbel-hard"] {
        let settings = [
            "facts=1",
            "hops=1",
            "size=600",
            "epochs=8",
            "embedding=32",
            "learning_rate=0.005",
            "batch_size=16",
        ];
        let course = Course::done("answer", &[&settings[..], &[weighting]].concat());
        let scores = course.model().evaluate(Part::Test)?.scores;
        // One place of eight by chance.
        assert!(scores.get("accuracy").unwrap() > 0.3, "{weighting}: {scores:?}");
        let Scene::Maps(maps) = course.model().show(&"test:0".into())?.remove(0).1 else {
            panic!()
        };
        let mut weights = maps.maps[0].weights.clone();
        weights.sort_by(f32::total_cmp);
        assert_eq!(weights.last(), Some(&1.0), "{weighting}");
        assert!(weights[..weights.len() - 1].iter().all(|&w| w == 0.0), "{weighting}: {weights:?}");
    }
    Ok(())
}

#[test]
fn every_model_trains_measures_predicts_and_is_drawn() -> Result<()> {
    let models: [(&[&str], &[&str]); 8] = [
        (&["hops=3", "facts=3"], &["sentences", "hops"]),
        (&["hops=6", "shared_hops=true", "carry=true", "score=additive"], &["sentences", "hops"]),
        (&["encoder=gru", "score=bilinear", "positions=false", "times=0"], &["sentences", "hops"]),
        (
            &["encoder=transformer", "heads=2", "hops=1", "weighting=sparsemax"],
            &["sentences", "hops", "self-attention"],
        ),
        (&["model=reader", "encoder=gru", "language=chinese"], &["sentences", "question"]),
        (
            &["model=reader", "encoder=cnn", "attention=false", "features=false", "facts=1"],
            &["sentences"],
        ),
        (
            &["model=reader", "encoder=transformer", "heads=2"],
            &["sentences", "question", "self-attention"],
        ),
        (
            &["model=reader", "encoder=transformer", "heads=2", "attention=false"],
            &["sentences", "self-attention"],
        ),
    ];
    for (settings, scenes) in models {
        let course = Course::done("answer", &small(&[settings, &["epochs=1"]].concat()));
        let model = course.model();
        let report = model.evaluate(Part::Test)?;
        assert_eq!((report.examples, report.outputs.len()), (60, 60), "{settings:?}");
        assert!(report.scores.get("F1").unwrap() >= report.scores.get("exact match").unwrap());
        assert!(report.scores.get("supporting").is_some() && report.groups.is_some());
        let input = "Mary went to the kitchen. Mary took the key.\tWhere is the key?".to_string();
        let predicted = model.predict(&["test:1".into(), input.into()])?;
        assert_eq!(predicted.len(), 2);
        assert_eq!(predicted[1].details["sentences"].as_array().unwrap().len(), 2);
        assert_eq!(course.drawn("test:0"), scenes, "{settings:?}");
    }
    Ok(())
}

#[test]
fn the_words_of_a_memorys_sentences_attend_to_their_own_sentence() -> Result<()> {
    let settings = ["encoder=transformer", "heads=2", "layers=1", "epochs=1"];
    let course = Course::done("answer", &small(&settings));
    let input = "Mary went to the kitchen. Mary took the key.\tWhere is the key?";
    let scenes = course.model().show(&input.into())?;
    let Some(("self-attention", Scene::Maps(maps))) =
        scenes.last().map(|(name, scene)| (&name[..], scene))
    else {
        panic!("{scenes:?}")
    };
    let (lengths, n) = ([6, 5, 5], 16);
    assert_eq!((maps.rows.len(), maps.columns.len(), maps.maps.len()), (n, n, 2));
    assert_eq!((&maps.rows[6..11].join(" ")[..], &maps.rows[15][..]), ("Mary took the key .", "?"));
    let sentence = |at: usize| {
        let mut ends = lengths.iter().scan(0, |end, n| {
            *end += n;
            Some(*end)
        });
        ends.position(|end| at < end)
    };
    for map in &maps.maps {
        assert!(map.place.is_none() && map.fixed.is_some());
        for (at, row) in map.weights.chunks(n).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{at}");
            for (other, &weight) in row.iter().enumerate() {
                assert_eq!(weight > 0.0, sentence(at) == sentence(other), "{at} {other}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_model_without_attention_answers_and_shows_nothing() -> Result<()> {
    let course = Course::done("answer", &small(&["attention=false", "encoder=gru"]));
    let scores = course.model().evaluate(Part::Validation)?.scores;
    assert!(scores.get("accuracy").is_some() && scores.get("supporting").is_none());
    let told = course.model().show(&"test:0".into()).unwrap_err().to_string();
    assert_eq!(told, "this model attends to nothing: it was trained with `attention = false`");
    // But for what its encoder looks at itself.
    let transformer = ["attention=false", "encoder=transformer", "heads=2", "epochs=1"];
    assert_eq!(Course::done("answer", &small(&transformer)).drawn("test:0"), ["self-attention"]);
    Ok(())
}

#[test]
fn a_run_ends_with_the_same_bits_whether_interrupted_or_not() {
    resumes_exactly("answer", &small(&["weighting=sample", "dropout=0.2"]), 4);
    let reader =
        ["model=reader", "encoder=gru", "dropout=0.2", "ema_decay=0.9", "size=60", "batch_size=16"];
    resumes_exactly("answer", &small(&reader), 3);
}

#[test]
fn a_reader_learns_to_point_into_texts_of_ones_own() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let people = ["Mary", "John", "Anna", "Tom", "Sandra", "Daniel"];
    let places = ["kitchen", "garden", "office", "attic", "cellar"];
    let mut lines = String::new();
    for (at, who) in people.iter().cycle().take(150).enumerate() {
        let (here, there) = (places[at % 5], places[(at / 5 + at) % 5]);
        let other = people[(at + 1 + at / 6) % 6];
        if other == *who {
            continue;
        }
        let text = format!("{who} is in the {here}. {other} is in the {there}.");
        lines += &format!("{text}\tWhere is {other}?\t{there}\n{text}\tWhere is {who}?\t{here}\n");
    }
    let train = file(folder.path(), "train", "places.tsv", &lines);
    let course = Course::done(
        "answer",
        &[
            &train,
            "model=reader",
            "encoder=gru",
            "hidden=24",
            "embedding=24",
            "epochs=20",
            "learning_rate=0.01",
            "score=bilinear",
        ],
    );
    let scores = course.model().evaluate(Part::Test)?.scores;
    assert!(scores.get("F1").unwrap() > 0.8, "{scores:?}");
    assert!(scores.get("exact match").unwrap() > 0.8, "{scores:?}");
    Ok(())
}

#[test]
fn questions_without_an_answer_are_learned_and_counted_as_squad_two_does() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let none = r#"{"id": "2", "question": "Who flew?", "answers": [], "is_impossible": true}"#;
    let questions = [asked("What has John?", "a red boat", 25), none.into()];
    let many = vec![questions.join(","); 30].join(",");
    let train = file(folder.path(), "train", "train.json", &squad(&many));
    let course = Course::done(
        "answer",
        &[
            &train,
            "model=reader",
            "encoder=gru",
            "hidden=16",
            "epochs=30",
            "learning_rate=0.01",
            "batch_size=8",
        ],
    );
    let model = course.model();
    let text = "Mary went home. John has a red boat. The boat is old.";
    let inputs = ["What has John?", "Who flew?"].map(|q| Input::from(format!("{text}\t{q}")));
    let outputs = model.predict(&inputs)?;
    assert_eq!([&*outputs[0].output, &*outputs[1].output], ["a red boat", ""]);
    let scores = model.evaluate(Part::Test)?.scores;
    assert_eq!((scores.get("F1"), scores.get("exact match")), (Some(1.0), Some(1.0)));
    Ok(())
}

#[test]
fn every_bad_option_is_refused_by_its_name() {
    let cases: [(&[&str], &str); 9] = [
        (&["hop_supervision=-1.0"], "`model.hop_supervision` cannot be -1"),
        (&["facts=4"], "`data.facts` cannot be 4; it is 1 to 3"),
        (&["hops=7"], "a memory network of 7 hops; there are 1 to 6"),
        (&["hops=0"], "a memory network of 0 hops; there are 1 to 6"),
        (&["max_length=0"], "`data.max_length` cannot be 0"),
        (&["max_sentences=0"], "`data.max_sentences` cannot be 0"),
        (
            &["tokenizer=bpe"],
            "`text.tokenizer` is \"words\", \"whitespace\" or \"characters\" here",
        ),
        (
            &["model=reader", "encoder=gru", "weighting=argmax"],
            "`model.weighting` is soft where the model is a reader; hard weights are a memory \
             network's",
        ),
        (
            &["model=reader", "encoder=none"],
            "a reader needs an encoder: with `model.encoder=none` a word knows nothing of its \
             neighbors; `model.encoder=auto` is a GRU",
        ),
    ];
    for (settings, told) in cases {
        assert_eq!(refusal("answer", settings), told);
    }
}

#[test]
fn a_bad_file_is_refused_by_its_line_or_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, text: &str, more: &[&str]| {
        let train = file(folder.path(), "train", name, text);
        let settings = [&[train.as_str()], more].concat();
        let told = refusal("answer", &settings);
        told.replace(&folder.path().join(name).display().to_string(), "FILE")
    };
    let lines = [
        (
            "Mary left.\n",
            "FILE, line 1: `Mary` is no number; a line is a number, a space and a sentence",
        ),
        ("1 Mary left.\n3 Tom left.\n", "FILE, line 2: number 3; 2 or 1 was expected"),
        (
            "1 Where is Mary?\thome\t1\n",
            "FILE, line 1: a question before any sentence: the text is empty",
        ),
        ("1 Mary left.\n2 Where?\t\t1\n", "FILE, line 2: the answer is empty"),
        ("1 Mary left.\n2 \thome\t1\n", "FILE, line 2: the question is empty"),
        (
            "1 Mary left.\n2 Where?\thome\t4\n",
            "FILE, line 2: `4` is not the number of a sentence before the question",
        ),
        ("1 Mary left.\n2\n", "FILE, line 2: the sentence is empty"),
        ("1 Mary left.\n", "FILE: there are no questions"),
        ("", "FILE: there are no questions"),
    ];
    for (text, what) in lines {
        assert_eq!(told("a.txt", text, &[]), what);
    }
    let question = "data[0].paragraphs[0].qas[0]";
    let hint = "; `data.unfound=search` looks for such answers";
    let paths = [
        (
            asked("Who?", "Anna", 3),
            format!(
                "FILE: {question}.answers[0].answer_start: the answer `Anna` is not in the text{hint}"
            ),
        ),
        (
            asked("Who?", "John", 3),
            format!(
                "FILE: {question}.answers[0].answer_start: the answer `John` does not stand at 3{hint}"
            ),
        ),
        (
            asked("Who?", "The boat is old.", 50),
            format!(
                "FILE: {question}.answers[0].answer_start: an answer of 16 characters at 50 ends past the text, which has 53{hint}"
            ),
        ),
        (asked("", "John", 16), format!("FILE: {question}.question: the text is empty")),
        (r#"{"question": "Who?"}"#.into(), format!("FILE: {question}: `answers` is missing")),
        (
            r#"{"question": "Who?", "answers": []}"#.into(),
            format!(
                "FILE: {question}.answers: there is no answer, and `is_impossible` is not true"
            ),
        ),
        (
            r#"{"question": "Who?", "answers": 3}"#.into(),
            format!("FILE: {question}.answers: a list was expected"),
        ),
    ];
    for (text, what) in paths {
        assert_eq!(told("a.json", &squad(&text), &[]), what);
    }
    assert_eq!(told("a.json", "{\"data\": []}", &[]), "FILE: there are no questions");
    assert_eq!(told("a.json", "{}", &[]), "FILE: `data` is missing");
    assert!(told("a.json", "{\n\"data\": [", &[]).starts_with("FILE, line 2: no JSON: "));
    let empty = squad("").replace("Mary went home. John has a red boat. The boat is old.", " ");
    assert_eq!(
        told("a.json", &empty, &[]),
        "FILE: data[0].paragraphs[0].context: the text is empty"
    );
    let reader = ["model=reader", "encoder=gru"];
    let tsv = [
        ("Mary left.\tWho?\n\tWho?\tMary\n", "FILE, line 2: the text is empty"),
        ("Mary left.\t\tMary\n", "FILE, line 1: the question is empty"),
        (
            "Mary left.\n",
            "FILE, line 1: 1 column is there; a text, a question and an answer were expected",
        ),
    ];
    for (text, what) in tsv {
        assert_eq!(told("a.tsv", text, &reader), what);
    }
    let unfound = "Mary left.\tWho left?\tMary\nTom left.\tWho left?\tAnna\n".repeat(10);
    assert!(told("b.tsv", &unfound, &reader).ends_with("the answer `Anna` is not in the text"));
    assert!(told("a.questions", "", &[]).starts_with("FILE: the name does not tell what it holds"));
}

#[test]
fn an_answer_that_stands_elsewhere_is_searched_for_where_that_is_asked_for() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let questions = [asked("Who?", "John", -1), asked("Who?", "Anna", 0), asked("", "boat", 40)];
    let text = squad(&vec![questions.join(","); 5].join(","));
    let train = file(folder.path(), "train", "a.json", &text);
    let settings = [train.as_str(), "model=reader", "encoder=gru", "unfound=search"];
    let described = task_named("answer")?.describe(&options("answer", &settings))?;
    assert_eq!(described.facts[0], ("training questions".into(), "11".into()));
    task_named("answer")?.begin(&options("answer", &settings))?;
    Ok(())
}

#[test]
fn the_description_tells_what_the_data_hold() -> Result<()> {
    let described = task_named("answer")?.describe(&options("answer", &small(&["facts=3"])))?;
    assert_eq!(described.source, "embedded stories");
    assert_eq!(described.facts[2], ("test questions".into(), "60".into()));
    assert!(described.labels.iter().any(|(answer, _)| answer == "kitchen"));
    Ok(())
}

#[test]
fn an_answer_unseen_in_training_counts_as_wrong_and_is_told() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let line = |place: &str| format!("Mary went to the {place}.\tWhere is Mary?\t{place}\n");
    let train: String = (0..20).map(|at| line(["kitchen", "garden"][at % 2])).collect();
    let train = file(folder.path(), "train", "train.tsv", &train);
    let validation = line("garden") + &line("attic");
    let validation = file(folder.path(), "validation", "validation.tsv", &validation);
    let settings = small(&[&train, &validation, "hops=1"]);
    let learner = task_named("answer")?.begin(&options("answer", &settings))?;
    let told = "1 of the validation part's 2 answers is unseen in training (attic)";
    assert!(learner.notes()[0].starts_with(told), "{:?}", learner.notes());
    let facts = task_named("answer")?.describe(&options("answer", &settings))?.facts;
    assert!(facts.contains(&("unseen in validation".into(), "1 (attic)".into())), "{facts:?}");
    assert!(facts.contains(&("unseen in test".into(), "none".into())), "{facts:?}");
    let report = Course::done("answer", &settings).model().evaluate(Part::Validation)?;
    assert!(report.notes[0].starts_with(told), "{:?}", report.notes);
    assert_eq!(report.each.unwrap().values[1], 0.0);
    assert!(report.scores.get("loss").unwrap().is_finite());
    Ok(())
}

#[test]
fn a_text_that_a_reader_does_not_read_to_its_end_is_told() -> Result<()> {
    let settings = small(&["model=reader", "encoder=gru", "size=60", "epochs=1"]);
    let course = Course::done("answer", &settings);
    let own = course.options.clone().set("max_length=5")?;
    let notes = course.run.model(&own)?.evaluate(Part::Test)?.notes;
    let told = "texts have more than `data.max_length` = 5 words, and were read so far";
    assert!(notes[0].ends_with(told), "{notes:?}");
    Ok(())
}

#[test]
fn stories_of_which_only_the_end_is_read_are_counted() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let story = |at: usize| {
        let long = if at < 7 { "It rained. " } else { "" };
        format!("{long}The key{at} is red. It is day.\tWhat is key{at}?\tred\n")
    };
    let text: String = (0..20).map(story).collect();
    let train = file(folder.path(), "data.train", "train.tsv", &text);
    let validation = file(folder.path(), "data.validation", "validation.tsv", &text);
    let task = task_named("answer")?;
    let settings = [&train[..], &validation, "data.max_sentences=2", "held_out=0.0"];
    let options = settings.iter().try_fold(task.options()?, |options, s| options.set(s))?;
    let notes = task.begin(&options)?.notes();
    for part in ["training", "validation"] {
        let told = format!(
            "7 of the {part} part's 20 stories have more than `data.max_sentences` = 2 sentences, of which \
             the last are read"
        );
        assert!(notes.contains(&told), "{notes:?}");
    }
    Ok(())
}

#[test]
fn every_model_of_answer_brings_an_encoder_of_its_own() {
    let task = task_named("answer").unwrap();
    let begin = |settings: &[&str]| {
        let options = task.options().unwrap();
        let options = settings.iter().fold(options, |all, one| all.set(one).unwrap());
        task.begin(&options).map(|learner| {
            let parameters = learner.model().parameters().all();
            parameters.iter().any(|one| one.name().contains("weight_hh"))
        })
    };
    assert!(!begin(&["size=60"]).unwrap(), "a memory adds words up");
    assert!(begin(&["size=60", "model=reader"]).unwrap());
    assert!(begin(&["size=60", "attention=false"]).unwrap());
    assert!(begin(&["size=60", "encoder=gru"]).unwrap());
    let error = begin(&["size=60", "model=reader", "encoder=none"]).unwrap_err().to_string();
    assert!(error.contains("a reader needs an encoder"), "{error}");
}

#[test]
fn a_report_counts_the_sentences_that_were_read_for_each_hop() {
    let small = ["size=60", "epochs=1", "hidden=8", "embedding=8"];
    let read = |more: &[&str]| {
        let course = Course::done("answer", &[&small[..], more].concat());
        course.model().evaluate(Part::Test).unwrap().values_read
    };
    for hops in ["hops=1", "hops=3"] {
        for soft in ["softmax", "sparsemax", "sigmoid"] {
            let read = read(&[hops, &format!("weighting={soft}")]).unwrap();
            assert!(read.per_output == read.of && read.of > 1.0, "{hops} {soft}: {read:?}");
        }
        for hard in ["argmax", "sample", "straight-through", "gumbel-hard"] {
            let read = read(&[hops, &format!("weighting={hard}")]).unwrap();
            assert!(read.per_output == 1.0 && read.of > 1.0, "{hops} {hard}: {read:?}");
        }
    }
    assert!(read(&["attention=false"]).is_none());
    assert!(read(&["model.model=reader"]).is_none());
}
