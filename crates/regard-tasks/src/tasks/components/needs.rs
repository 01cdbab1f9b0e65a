//! What options that several tasks have need of others to have an effect. A task has some of the options
//! that are named here; ways that it has not are not its ways.

use crate::options::requirement::Condition::{Absent, Given, Is, IsNot};
use crate::options::requirement::{Condition, Requirement};

/// Encoders and decoders that go step by step.
pub(crate) const RECURRENT: &[&str] = &["rnn", "rnn-relu", "gru", "lstm"];

/// Options that name what is learned.
const TRAINING: [&str; 7] = [
    "data.train",
    "data.train_source",
    "data.train_pairs",
    "data.train_files",
    "data.train_images",
    "data.train_folder",
    "data.folder",
];
const VALIDATION: [&str; 6] = [
    "data.validation",
    "data.validation_source",
    "data.validation_pairs",
    "data.validation_files",
    "data.validation_images",
    "data.validation_folder",
];
const TEST: [&str; 6] = [
    "data.test",
    "data.test_source",
    "data.test_pairs",
    "data.test_files",
    "data.test_images",
    "data.test_folder",
];

/// Where nothing but the embedded data is learned.
pub(crate) fn embedded() -> Vec<Condition> {
    TRAINING.map(Absent).into()
}

/// Where files are read for some part.
pub(crate) fn any_file() -> Vec<Vec<Condition>> {
    let all = TRAINING.iter().chain(&VALIDATION).chain(&TEST);
    all.map(|name| vec![Given(name)]).collect()
}

/// Where some part has a file with columns.
pub(crate) fn given(names: &[&'static str]) -> Vec<Vec<Condition>> {
    names.iter().map(|name| vec![Given(name)]).collect()
}

/// Where training files are given and some other part has none of its own.
fn held_out() -> Vec<Vec<Condition>> {
    let without = |name, others: &[&'static str]| {
        let others = others.iter().map(|other| Absent(other));
        [Given(name)].into_iter().chain(others).collect::<Vec<_>>()
    };
    let both = |name: &&'static str| [without(name, &VALIDATION), without(name, &TEST)];
    TRAINING.iter().flat_map(both).collect()
}

/// Of options that every task has: how it is trained, which examples, what files are read.
pub(crate) fn common() -> Vec<Requirement> {
    let schedule = "training.schedule";
    let optimizer = "training.optimizer";
    let plateau = [vec![Is(schedule, &["plateau"])]];
    let mut needs = vec![
        Requirement::new("training.batch_size", &[Is("training.batch_tokens", &["0"])]),
        Requirement::new("training.betas", &[Is(optimizer, &["adam", "adamw"])]),
        Requirement::new("training.momentum", &[Is(optimizer, &["sgd"])]),
        Requirement::new("training.min_learning_rate", &[Is(schedule, &["cosine", "plateau"])]),
        Requirement::new("data.size", &embedded()),
        Requirement::new("search.length_penalty", &[IsNot("search.beam", "1")]),
    ];
    needs.extend(Requirement::each(
        &["training.plateau_factor", "training.plateau_patience"],
        &plateau,
    ));
    needs.extend(Requirement::each(&["data.held_out", "data.held_out_seed"], &held_out()));
    needs.extend(Requirement::each(&["data.encoding", "data.skip_bad_rows"], &any_file()));
    needs
}

/// How text becomes tokens.
pub(crate) fn text() -> Vec<Requirement> {
    let kind = "text.tokenizer";
    let own = ["text.vocabulary_size", "text.min_frequency", "text.lowercase"];
    let mut needs = vec![Requirement::new("text.tokenizer_file", &[Is(kind, &["pretrained"])])];
    needs.extend(Requirement::each(&own, &[vec![IsNot(kind, "pretrained")]]));
    needs
}

/// Where something of the model is one of these kinds: the encoder, the decoder, what reads letters.
fn reads(kinds: &'static [&'static str]) -> Vec<Vec<Condition>> {
    let letters = [Is("model.characters", &["true"]), Is("model.character_encoder", kinds)];
    let mut ways = encodes(kinds);
    ways.extend([vec![Is("model.decoder", kinds)], letters.into()]);
    ways
}

/// The same of the encoder alone.
fn encodes(kinds: &'static [&'static str]) -> Vec<Vec<Condition>> {
    let mut ways = vec![vec![Is("model.encoder", kinds)]];
    if kinds.contains(&"gru") {
        // What "auto" stands for where it is not "none".
        let auto = Is("model.encoder", &["auto"]);
        ways.push(vec![auto, Is("model.model", &["reader"])]);
        ways.push(vec![auto, Is("model.model", &["memory"]), Is("model.attention", &["false"])]);
    }
    ways
}

/// The options of an encoder, some of which are a decoder's too.
pub(crate) fn encoder() -> Vec<Requirement> {
    const HEADS: &[&str] = &["transformer", "self-attention"];
    const ALL: &[&str] = &[
        "rnn",
        "rnn-relu",
        "gru",
        "lstm",
        "cnn",
        "fully-connected",
        "self-attention",
        "transformer",
    ];
    const LAYERED: &[&str] = &["rnn", "rnn-relu", "gru", "lstm", "cnn", "transformer"];
    let transformer = reads(&["transformer"]);
    let of_its_own = |kinds| {
        let mut ways = encodes(kinds);
        ways.push(vec![Is("model.decoder", kinds)]);
        ways
    };
    let mut needs = vec![
        Requirement::any("model.bidirectional", &encodes(RECURRENT)),
        Requirement::any("model.window", &encodes(HEADS)),
        Requirement::any("model.hidden", &of_its_own(ALL)),
        Requirement::any("model.layers", &of_its_own(LAYERED)),
        Requirement::any("model.position", &of_its_own(&["cnn", "transformer"])),
        Requirement::any("model.max_distance", &of_its_own(&["transformer"])),
        Requirement::new("model.max_distance", &[Is("model.position", &["relative"])]),
        Requirement::any("model.feed_forward", &reads(&["transformer", "fully-connected"])),
        Requirement::any("model.kernel_size", &reads(&["cnn"])),
    ];
    let widths = ["model.key_width", "model.value_width", "model.bias"];
    needs.extend(Requirement::each(&widths, &of_its_own(HEADS)));
    needs.push(Requirement::any("model.norm_input", &encodes(&["transformer"])));
    let norm = ["model.norm_first", "model.norm_eps"];
    needs.extend(Requirement::each(&norm, &transformer));
    let heads = ["model.heads", "model.head_score", "model.head_weighting"];
    needs.extend(Requirement::each(&heads, &reads(HEADS)));
    needs.extend(head_score());
    let parts =
        ["model.head_score_hidden", "model.head_expression", "model.head_expression_numbers"];
    needs.extend(Requirement::each(&parts, &reads(HEADS)));
    needs
}

/// What some scores of heads have.
pub(crate) fn head_score() -> Vec<Requirement> {
    let score = "model.head_score";
    let written = ["model.head_expression", "model.head_expression_numbers"];
    let mut needs = Requirement::each(&written, &[vec![Is(score, &["expression"])]]);
    needs.push(Requirement::new("model.head_score_hidden", &[Is(score, INNER)]));
    needs
}

/// Scores that have a width of their own.
const INNER: &[&str] = &["additive", "concat", "low-rank"];

/// What some scores have.
pub(crate) fn score() -> Vec<Requirement> {
    let score = "model.score";
    let written = ["model.expression", "model.expression_numbers"];
    let mut needs = Requirement::each(&written, &[vec![Is(score, &["expression"])]]);
    needs.push(Requirement::new("model.score_hidden", &[Is(score, INNER)]));
    needs.push(Requirement::new("model.bilinear_scale", &[Is(score, &["bilinear"])]));
    needs
}

/// The options of a mechanism, which is there where one of these ways holds.
pub(crate) fn mechanism(ways: &[Vec<Condition>]) -> Vec<Requirement> {
    let all = [
        "model.score",
        "model.expression",
        "model.expression_numbers",
        "model.score_hidden",
        "model.weighting",
        "model.temperature",
        "model.bilinear_scale",
        "model.attention_dropout",
    ];
    let mut needs = Requirement::each(&all, ways);
    needs.extend(score());
    needs.push(Requirement::new(
        "model.temperature",
        &[Is("model.weighting", &["gumbel", "gumbel-hard"])],
    ));
    // A weight that is one choice, or drawn, has none to leave out.
    const SOFT: &[&str] = &["softmax", "sparsemax", "entmax15", "sigmoid", "none"];
    needs.push(Requirement::new("model.attention_dropout", &[Is("model.weighting", SOFT)]));
    needs
}

/// How a text is written by a decoder.
pub(crate) fn decoder() -> Vec<Requirement> {
    let context = "model.context";
    let fixed = Is(context, &["fixed"]);
    let attention = Is(context, &["attention"]);
    let mut needs = mechanism(&[vec![attention], vec![fixed, Is("model.fixed", &["learned"])]]);
    needs.push(Requirement::new("model.fixed", &[fixed]));
    let gain = [attention, Is("model.decoder", RECURRENT), Is("model.score", &["scaled-dot"])];
    needs.push(Requirement::new("model.query_gain", &gain));
    needs.extend(encoder());
    needs
}
