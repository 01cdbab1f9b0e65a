//! Public weights answer here as in the library transformers: random models that
//! `bench/fixtures/public.py` wrote.

use regard::layers::EncoderConfig;
use regard::models::{
    InputConfig, LabelerConfig, SequenceLabeler, Sequences, VisionTransformer,
    VisionTransformerConfig,
};
use regard::prelude::*;
use regard::tensor::load;
use regard_data::text::{Tokenizer, TokenizerConfig, TokenizerKind};
use regard_tasks::import::import;
use regard_tasks::options::TrainingConfig;
use regard_tasks::run::Run;
use regard_tasks::tasks::task_named;
use regard_tasks::train::train;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// The largest difference.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_vit_gives_the_logits_that_transformers_gives() {
    let out = tempfile::tempdir().unwrap();
    let imported = import(&fixture("vit"), out.path()).unwrap();
    let config = VisionTransformerConfig {
        image: [8, 8],
        channels: 3,
        patch: 4,
        classes: 5,
        width: 16,
        depth: 2,
        heads: 2,
        feed_forward: 24,
        eps: 1e-12,
        ..VisionTransformerConfig::default()
    };
    let parameters = Parameters::new(DType::F32, 1);
    let model = VisionTransformer::new(&parameters, &config).unwrap();
    parameters.load(&imported.weights).unwrap();
    let (known, _) = load(fixture("vit/known.safetensors")).unwrap();
    let logits = model.forward(&known["images"], Mode::Infer).unwrap().to_vec::<f32>().unwrap();
    let apart = apart(&logits, &known["output"].to_vec::<f32>().unwrap());
    assert!(apart < 2e-5, "{apart}");
}

#[test]
fn bert_gives_the_vectors_that_transformers_gives() {
    let out = tempfile::tempdir().unwrap();
    let imported = import(&fixture("bert"), out.path()).unwrap();
    let encoder = TransformerConfig {
        feed_forward: 24,
        norm_first: false,
        norm_input: true,
        eps: 1e-12,
        position: Position::Learned,
        longest: 20,
        ..TransformerConfig::new(16, 2, 2)
    };
    let parameters = Parameters::new(DType::F32, 1);
    let encoder = EncoderConfig::Transformer(encoder);
    let config = LabelerConfig::new(InputConfig::tokens(21, 16), encoder, 16);
    let model = SequenceLabeler::new(&parameters, &config).unwrap();
    let (mut weights, _) = load(&imported.weights).unwrap();
    weights.remove("class_token");
    // Labels that are the vectors themselves.
    let one = |at: usize| f32::from(u8::from(at / 16 == at % 16));
    let identity = Tensor::from_vec((0..256).map(one).collect(), &[16, 16]).unwrap();
    weights.insert("out.weight".into(), identity);
    weights.insert("out.bias".into(), Tensor::zeros(&[16], DType::F32).unwrap());
    parameters.set(&weights).unwrap();
    let (known, _) = load(fixture("bert/known.safetensors")).unwrap();
    let lengths = known["lengths"].to_vec::<i64>().unwrap();
    let lengths: Vec<usize> = lengths.iter().map(|&n| n as usize).collect();
    let sequences = Sequences { lengths: Some(&lengths), ..Sequences::new(&known["ids"]) };
    let logits = model.forward(&sequences, Mode::Infer).unwrap();
    for (row, &length) in lengths.iter().enumerate() {
        let numbers = |x: &Tensor| -> Vec<f32> {
            let row = x.select(0, row).unwrap().narrow(0, 0, length).unwrap();
            row.contiguous().unwrap().to_vec::<f32>().unwrap()
        };
        let apart = apart(&numbers(&logits), &numbers(&known["output"]));
        assert!(apart < 2e-5, "sentence {row}: {apart}");
    }
}

#[test]
fn a_word_piece_tokenizer_gives_the_ids_that_tokenizers_gives_without_the_class_token() {
    let config = TokenizerConfig {
        kind: TokenizerKind::Pretrained,
        file: Some(fixture("bert/tokenizer.json")),
        ..TokenizerConfig::default()
    };
    let tokenizer = Tokenizer::learn(&[""], &config).unwrap();
    let text = std::fs::read(fixture("bert/sentences.json")).unwrap();
    let known: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let (ids, _) = load(fixture("bert/known.safetensors")).unwrap();
    let rows = ids["ids"].to_vec::<i64>().unwrap();
    let (longest, lengths) = (ids["ids"].shape()[1], ids["lengths"].to_vec::<i64>().unwrap());
    for (row, sentence) in known["sentences"].as_array().unwrap().iter().enumerate() {
        let sentence = sentence.as_str().unwrap();
        let wanted = &rows[row * longest + 1..][..lengths[row] as usize - 1];
        let found: Vec<i64> = tokenizer.encode(sentence).into_iter().map(|id| id as i64).collect();
        assert_eq!(found, wanted, "{sentence}");
        let tokens: Vec<String> = serde_json::from_value(known["tokens"][row].clone()).unwrap();
        assert_eq!(tokenizer.tokens(sentence), tokens[1..]);
    }
    // It is kept with the run, and read again.
    let again: Tokenizer =
        serde_json::from_str(&serde_json::to_string(&tokenizer).unwrap()).unwrap();
    assert_eq!(again.encode("the gardens"), tokenizer.encode("the gardens"));
    assert_eq!(tokenizer.decode(&tokenizer.encode("the gardens")), "the gardens");
}

#[test]
fn tasks_train_from_imported_options_and_say_what_was_taken() {
    let out = tempfile::tempdir().unwrap();
    let imported = import(&fixture("bert"), out.path()).unwrap();
    assert_eq!(imported.configs.len(), 2);
    for config in &imported.configs {
        let name = config.file_stem().unwrap().to_str().unwrap();
        let task = task_named(name).unwrap();
        let options = task.options().unwrap().file(config).unwrap();
        let options = options.set("size=60").unwrap().set("epochs=1").unwrap().set_by_nobody();
        // Toy texts have more pieces than the few places of the fixture.
        let learner = match name {
            "classify" => task.begin(&options),
            _ => {
                let file = out.path().join("some.txt");
                let sentence = "the DET\ngardens NOUN\nsaw VERB\n\n";
                std::fs::write(&file, sentence.repeat(40)).unwrap();
                let train = format!("train=\"{}\"", file.display());
                task.begin(&options.clone().set(&train).unwrap())
            }
        };
        let mut learner = learner.unwrap();
        let run = Run::create(&out.path().join(name), task, &options, learner.model()).unwrap();
        struct Notes(Vec<String>);
        impl regard_tasks::train::Callback for Notes {
            fn note(&mut self, text: &str) {
                self.0.push(text.into());
            }
        }
        let mut notes = Notes(Vec::new());
        train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut notes).unwrap();
        let said = notes.0.join("\n");
        assert!(said.contains("new are out.bias, out.weight"), "{said}");
        let model = run.model(&options).unwrap();
        let predicted = model.predict(&["the gardens saw".into()]).unwrap();
        if name == "label" {
            // A label for each word, however many pieces it has.
            assert_eq!(predicted[0].output.split(' ').count(), 3, "{}", predicted[0].output);
        }
        assert!(!model.show(&"the gardens saw".into()).unwrap().is_empty());
    }
}

#[test]
fn other_architectures_are_refused_by_what_differs() {
    let out = tempfile::tempdir().unwrap();
    let from = tempfile::tempdir().unwrap();
    let known = std::fs::read_to_string(fixture("bert/config.json")).unwrap();
    for (old, new, said) in [
        (
            "\"model_type\": \"bert\"",
            "\"model_type\": \"gpt2\"",
            "bert begins `label` and `classify`, vit begins `image`",
        ),
        ("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"swish\"", "only \"gelu\" is known here"),
    ] {
        assert!(known.contains(old));
        std::fs::write(from.path().join("config.json"), known.replace(old, new)).unwrap();
        std::fs::copy(fixture("bert/model.safetensors"), from.path().join("model.safetensors"))
            .unwrap();
        let refusal = import(from.path(), out.path()).unwrap_err().to_string();
        assert!(refusal.contains(said) && refusal.contains("config.json"), "{refusal}");
    }
}

/// A copy of a fixture's folder with another `config.json`.
fn changed(of: &str, change: impl Fn(&mut serde_json::Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        if fixture(of).join(name).exists() {
            std::fs::copy(fixture(of).join(name), folder.path().join(name)).unwrap();
        }
    }
    let file = folder.path().join("config.json");
    let mut config = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(&file, config.to_string()).unwrap();
    folder
}

#[test]
fn what_cannot_be_imported_is_refused_with_the_way_out_and_leaves_nothing() {
    let only_bin = changed("bert", |_| {});
    let [from, to] =
        ["model.safetensors", "pytorch_model.bin"].map(|name| only_bin.path().join(name));
    std::fs::rename(from, to).unwrap();
    let no_tokenizer = changed("bert", |_| {});
    std::fs::remove_file(no_tokenizer.path().join("tokenizer.json")).unwrap();
    let gpt2 = tempfile::tempdir().unwrap();
    let config = r#"{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12}"#;
    std::fs::write(gpt2.path().join("config.json"), config).unwrap();
    let cases = [
        (only_bin, "pytorch_model.bin, which is, can hold programs and is not read; in Python"),
        (no_tokenizer, "tokenizer.json"),
        (gpt2, "a model of type \"gpt2\"; bert begins `label` and `classify`, vit begins `image`"),
        (changed("bert", |c| c["num_attention_heads"] = 3.into()), "`num_attention_heads` 3"),
        (changed("vit", |c| c["num_attention_heads"] = 0.into()), "`num_attention_heads` 0"),
        (changed("bert", |c| c["num_hidden_layers"] = 9.into()), "there is no weight"),
        (changed("vit", |c| c["hidden_act"] = "relu".into()), "the activation \"relu\""),
    ];
    for (folder, told) in cases {
        let out = tempfile::tempdir().unwrap();
        let to = out.path().join("new");
        let error = import(folder.path(), &to).unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
        assert!(!to.exists(), "{told}: something is left behind");
    }
}

#[test]
fn a_folder_that_was_imported_can_be_moved() {
    let out = tempfile::tempdir().unwrap();
    import(&fixture("bert"), &out.path().join("a")).unwrap();
    std::fs::rename(out.path().join("a"), out.path().join("b")).unwrap();
    let options = task_named("classify").unwrap().options().unwrap();
    let options = options.file(&out.path().join("b/classify.toml")).unwrap();
    let named =
        ["text.tokenizer_file", "training.init_from"].map(|name| options.get(name).unwrap());
    assert!(named.iter().all(|path| Path::new(path.as_str().unwrap()).is_file()), "{named:?}");
}
