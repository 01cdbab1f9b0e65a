//! Made-up inputs of networks, and what these answer: for whoever loads the weights elsewhere.

use crate::task::network::{Exported, Network};
use regard::attention::Need;
use regard::layers::EncoderConfig;
use regard::models::{
    Copies, DecoderConfig, MemoryNetwork, Passages, Sentences, Seq2Seq, SequenceClassifier,
    Sequences, Source, SourceConfig, SpanReader, Stories,
};
use regard::tensor::{Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::{Error, Result};

/// Lengths of made-up sequences, so that shorter ones are filled up.
const LENGTHS: [usize; 3] = [7, 4, 1];

/// The most vectors that an encoder reads.
fn longest(encoder: &EncoderConfig) -> usize {
    match encoder {
        EncoderConfig::Cnn(c) => c.longest,
        EncoderConfig::FullyConnected(c) => c.longest,
        EncoderConfig::Transformer(c) => c.longest,
        _ => usize::MAX,
    }
}

/// Lengths of made-up sequences that an encoder reads, `spare` of its places being taken.
pub(crate) fn made_up_lengths(encoder: &EncoderConfig, spare: usize) -> [usize; 3] {
    let most = longest(encoder).saturating_sub(spare).max(1);
    LENGTHS.map(|length| length.min(most))
}

fn random() -> Random {
    Random::named(1, "export")
}

/// Ids of tokens other than padding, which is 0.
fn ids(random: &Random, n: usize, vocabulary: usize) -> Vec<usize> {
    (0..n).map(|_| 1 + random.below((vocabulary - 1).max(1))).collect()
}

fn numbers(lengths: &[usize]) -> Result<Tensor> {
    let all: Vec<i64> = lengths.iter().map(|&n| n as i64).collect();
    Ok(Tensor::from_vec(all, &[lengths.len()])?)
}

/// A source, a target of its decoder and the scores of every token.
pub(crate) fn seq2seq(model: &Seq2Seq) -> Result<Exported> {
    let (config, random) = (model.config(), random());
    let lengths = made_up_lengths(&config.encoder, 0);
    let tokens = |vocabulary| lengths.map(|n| ids(&random, n, vocabulary));
    let source = match config.source {
        SourceConfig::Tokens { vocabulary } => {
            let sentences = Sentences::new(&tokens(vocabulary), config.padding)?;
            match config.copying {
                // Some of the words are not in the target's vocabulary.
                true => {
                    let ids = tokens(config.target_vocabulary + 3).to_vec();
                    Source::copied(&sentences, Copies { ids })
                }
                false => Source::from(&sentences),
            }
        }
        SourceConfig::Vectors { width } => {
            let x = random.normal(&[lengths.len(), lengths[0], width], 0.0, 1.0, DType::F32)?;
            Source::vectors(x, lengths.to_vec())
        }
        SourceConfig::Patches { image: [height, width], channels, patch } => {
            let shape = [lengths.len(), channels, height, width];
            Source::images(random.normal(&shape, 0.0, 1.0, DType::F32)?, patch)?
        }
        ref other => return Err(Error::invalid(format!("no input is made up for {other:?}"))),
    };
    let places = match &config.decoder {
        DecoderConfig::Cnn(c) => c.longest,
        DecoderConfig::Transformer(c) => c.longest,
        _ => usize::MAX,
    };
    let written = 5.min(places - 1);
    let target = lengths.map(|_| ids(&random, written, config.target_vocabulary));
    let target = Sentences::new(&target, config.padding)?;
    let taught = without_gradients(|| model.teach(&source, &target, Mode::Infer))?;
    let mut inputs = vec![
        ("source".to_string(), source.x.clone()),
        ("lengths".into(), numbers(&source.lengths)?),
        ("target".into(), target.ids.clone()),
    ];
    if let Some(copies) = &source.copies {
        inputs.push(("copies".into(), Sentences::new(&copies.ids, 0)?.ids));
    }
    let (network, inputs) = (Network::Seq2Seq(config.clone()), inputs.into_iter().collect());
    Ok(Exported { network, inputs, output: taught.logits })
}

/// Stories, questions and the scores of every answer.
pub(crate) fn memory_network(model: &MemoryNetwork) -> Result<Exported> {
    let (config, random) = (model.config(), random());
    let words = made_up_lengths(&config.encoder, 0);
    let counts = [4, 2, 1];
    let mut sentences: Vec<Vec<usize>> = Vec::new();
    for count in counts {
        let sentence = |at: usize| match at < count {
            true => ids(&random, words[at % 3].min(5), config.vocabulary),
            false => Vec::new(),
        };
        sentences.extend((0..counts[0]).map(sentence));
    }
    let sentences = Sentences::new(&sentences, config.padding)?.ids;
    let wide = sentences.shape()[1];
    let sentences = sentences.reshape(&[counts.len(), counts[0], wide])?;
    let questions = words.map(|n| ids(&random, n.min(4), config.vocabulary));
    let questions = Sentences::new(&questions, config.padding)?.ids;
    let stories = Stories { sentences: &sentences, lengths: &counts, questions: &questions };
    let answered = without_gradients(|| model.answer(&stories, Mode::Infer, Need::OUTPUT))?;
    let inputs = [
        ("sentences".to_string(), sentences),
        ("lengths".into(), numbers(&counts)?),
        ("questions".into(), questions),
    ];
    let network = Network::Memory(config.clone());
    Ok(Exported { network, inputs: inputs.into(), output: answered.logits })
}

/// Texts, questions and the scores of every word, of the first and of the last: `[B, 2, N]`.
pub(crate) fn span_reader(model: &SpanReader) -> Result<Exported> {
    let (config, random) = (model.config(), random());
    let lengths = made_up_lengths(&config.encoder, 0);
    let [mut asked, mut read] = [lengths, lengths];
    asked.reverse();
    read.iter_mut().for_each(|n| *n = (*n).max(1));
    let texts = read.map(|n| ids(&random, n, config.vocabulary));
    let questions = asked.map(|n| ids(&random, n, config.vocabulary));
    let text = Sentences::new(&texts, config.padding)?.ids;
    let questions = Sentences::new(&questions, config.padding)?.ids;
    let shape = [read.len(), text.shape()[1], config.features];
    let features = match config.features {
        0 => None,
        _ => Some(random.normal(&shape, 0.0, 1.0, DType::F32)?),
    };
    let passages = Passages {
        text: &text,
        lengths: &read,
        features: features.as_ref(),
        questions: &questions,
        question_lengths: &asked,
    };
    let pointed = without_gradients(|| model.point(&passages, Mode::Infer, Need::OUTPUT))?;
    let output = Tensor::cat(&[pointed.start.unsqueeze(1)?, pointed.end.unsqueeze(1)?], 1)?;
    let mut inputs = vec![
        ("text".to_string(), text.clone()),
        ("lengths".into(), numbers(&read)?),
        ("questions".into(), questions.clone()),
        ("question_lengths".into(), numbers(&asked)?),
    ];
    inputs.extend(features.map(|features| ("features".into(), features)));
    let network = Network::SpanReader(config.clone());
    Ok(Exported { network, inputs: inputs.into_iter().collect(), output })
}

/// Token ids and the scores of every class.
pub(crate) fn token_classifier(model: &SequenceClassifier, vocabulary: usize) -> Result<Exported> {
    let (config, random) = (model.config(), random());
    let lengths = made_up_lengths(&config.encoder, 1);
    let sentences = Sentences::new(&lengths.map(|n| ids(&random, n, vocabulary)), 0)?;
    let sequences =
        Sequences { lengths: Some(&sentences.lengths), ..Sequences::new(&sentences.ids) };
    let output = without_gradients(|| model.forward(&sequences, Mode::Infer))?;
    let inputs = [
        ("x".to_string(), sentences.ids.clone()),
        ("lengths".into(), numbers(&sentences.lengths)?),
    ];
    Ok(Exported { network: Network::Classifier(config.clone()), inputs: inputs.into(), output })
}
