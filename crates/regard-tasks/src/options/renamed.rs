//! What options were called before; configurations and scripts that say so still work.

/// Every option with another name than it once had: its section, what it was called, what it is called.
const RENAMED: [(&str, &str, &str); 30] = [
    ("audio", "every", "stride"),
    ("audio", "frame", "frame_length"),
    ("audio", "step", "frame_shift"),
    ("data", "deviation", "std"),
    ("data", "longest", "max_length"),
    ("data", "sentences", "max_sentences"),
    ("data", "side", "image_size"),
    ("model", "both_directions", "bidirectional"),
    ("model", "head", "head_hidden"),
    ("model", "kernel", "kernel_size"),
    ("model", "learned", "learn_bandwidth"),
    ("model", "longest_answer", "max_answer_length"),
    ("model", "patch", "patch_size"),
    ("model", "shared", "shared_hops"),
    ("model", "taught", "hop_supervision"),
    ("model", "tied", "tied_embeddings"),
    ("model", "weights_dropout", "attention_dropout"),
    ("model", "width", "bandwidth"),
    ("search", "longest_output", "max_output_length"),
    ("text", "lower", "lowercase"),
    ("text", "minimum", "min_frequency"),
    ("text", "shared", "shared_vocabulary"),
    ("text", "vocabulary", "vocabulary_size"),
    ("training", "accumulate", "accumulation_steps"),
    ("training", "average", "ema_decay"),
    ("training", "batch", "batch_size"),
    ("training", "clip", "clip_norm"),
    ("training", "floor", "min_learning_rate"),
    ("training", "rate", "learning_rate"),
    ("training", "warmup", "warmup_steps"),
];

/// The options among these that were called so, with their section or without.
pub(super) fn renamed<'a>(names: &'a [String], name: &'a str) -> impl Iterator<Item = &'a String> {
    let (section, key) = match name.split_once('.') {
        Some((section, key)) => (Some(section), key),
        None => (None, name),
    };
    let before = RENAMED
        .iter()
        .filter(move |(of, old, _)| *old == key && section.is_none_or(|section| section == *of));
    before.flat_map(|(section, _, new)| {
        names.iter().filter(move |name| name.split_once('.') == Some((section, new)))
    })
}
