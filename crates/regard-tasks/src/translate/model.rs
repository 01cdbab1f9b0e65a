//! A translator: tokenizers on both sides, and a sequence-to-sequence model between them.

use super::config::Config;
use super::data::{Dataset, Pair};
use crate::metric::{Bleu, Tokenization, chrf, perplexity};
use crate::text::Tokenizer;
use crate::{Error, Groups, Map, Maps, Model, Part, Prediction, Report, Result, Scene, Scores};
use regard::attention::Need;
use regard::models::{Hypothesis, Sentences, Seq2Seq};
use regard::tensor::{Better, Parameters, without_gradients};
use regard::{DType, Tensor};
use serde::{Deserialize, Serialize};

/// What a translator knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) source: Tokenizer,
    /// None where the source's serves both sides.
    target: Option<Tokenizer>,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, pairs: &[Pair]) -> Result<Self> {
        let tokenizer = config.text.tokens.config();
        let sources: Vec<&str> = pairs.iter().map(|(source, _)| &source[..]).collect();
        let targets: Vec<&str> = pairs.iter().map(|(_, target)| &target[..]).collect();
        if config.text.shared {
            let both: Vec<&str> = sources.into_iter().chain(targets).collect();
            return Ok(Self { source: Tokenizer::learn(&both, &tokenizer)?, target: None });
        }
        Ok(Self {
            source: Tokenizer::learn(&sources, &tokenizer)?,
            target: Some(Tokenizer::learn(&targets, &tokenizer)?),
        })
    }

    pub(super) fn target(&self) -> &Tokenizer {
        self.target.as_ref().unwrap_or(&self.source)
    }
}

pub(super) struct Translator {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    parameters: Parameters,
    pub(super) model: Seq2Seq,
}

impl Translator {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let seq2seq = config.seq2seq(preprocessor.source.len(), preprocessor.target().len());
        let model = Seq2Seq::new(&parameters, &seq2seq)?;
        Ok(Self { config, preprocessor, parameters, model })
    }

    /// Tokens of a pair.
    pub(super) fn encode(&self, (source, target): &Pair) -> (Vec<usize>, Vec<usize>) {
        (self.preprocessor.source.encode(source), self.preprocessor.target().encode(target))
    }

    /// The best hypothesis for each source, in order. Searches batches of similar lengths; how
    /// long an output may be depends on its own source alone. The attention weights come with them
    /// only where they are asked for.
    fn translate(
        &self,
        sources: &[Vec<usize>],
        beam: usize,
        need: Need,
    ) -> Result<Vec<Hypothesis>> {
        const STEP: usize = 8;
        let length = |&i: &usize| sources[i].len().next_multiple_of(STEP);
        let mut indices: Vec<usize> = (0..sources.len()).collect();
        indices.sort_by_key(|i| (length(i), sources[*i].len()));
        let mut all: Vec<Option<Hypothesis>> = vec![None; sources.len()];
        let alike = indices.chunk_by(|a, b| length(a) == length(b));
        for indices in alike.flat_map(|indices| indices.chunks(64)) {
            let batch: Vec<&[usize]> = indices.iter().map(|&i| &sources[i][..]).collect();
            let batch = Sentences::new(&batch, 0)?;
            let search = self.config.search(length(&indices[0]), need.weights);
            let best: Vec<Hypothesis> = match beam {
                0 | 1 => self.model.greedy_with(&batch, search.longest, need)?,
                _ => {
                    let all = self.model.search(&batch, &search)?;
                    all.into_iter().filter_map(|best| best.into_iter().next()).collect()
                }
            };
            for (&index, hypothesis) in indices.iter().zip(best) {
                all[index] = Some(hypothesis);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// How good it is on pairs, and all outputs. A beam of 1 is quick.
    pub(super) fn measure(&self, pairs: &[Pair], beam: usize) -> Result<(Scores, Vec<String>)> {
        let tokens: Vec<_> = pairs.iter().map(|pair| self.encode(pair)).collect();
        let (sources, targets): (Vec<_>, Vec<_>) = tokens.into_iter().unzip();
        let outputs = self.translate(&sources, beam, Need::OUTPUT)?;
        let outputs: Vec<String> =
            outputs.iter().map(|h| self.preprocessor.target().decode(&h.tokens)).collect();
        let references: Vec<String> = pairs.iter().map(|(_, target)| target.clone()).collect();
        let bleu = bleu(&outputs, &references, self.tokenization(&references))?;
        let chrf = chrf(&outputs, &alone(&references))?;
        let same = outputs.iter().zip(&references).filter(|(a, b)| a == b).count();
        let scores = Scores::new("BLEU", bleu, Better::Higher)
            .with("chrF", chrf)
            .with("perplexity", self.perplexity(&sources, &targets)?)
            .with("exact", same as f64 / pairs.len().max(1) as f64);
        Ok((scores, outputs))
    }

    /// How BLEU splits outputs: as the options say, or as the references are written.
    fn tokenization<R: AsRef<str>>(&self, references: &[R]) -> Tokenization {
        self.config.search.bleu.unwrap_or_else(|| Tokenization::suiting(references))
    }

    fn perplexity(&self, sources: &[Vec<usize>], targets: &[Vec<usize>]) -> Result<f64> {
        let (mut sum, mut tokens) = (0.0, 0);
        let mut indices: Vec<usize> = (0..sources.len()).collect();
        indices.sort_by_key(|&i| targets[i].len());
        for indices in indices.chunks(64) {
            let pick = |all: &[Vec<usize>]| indices.iter().map(|&i| all[i].clone()).collect();
            let (source, target): (Vec<_>, Vec<_>) = (pick(sources), pick(targets));
            tokens += target.iter().map(|t| t.len() + 1).sum::<usize>();
            sum += without_gradients(|| {
                let (source, target) = (Sentences::new(&source, 0)?, Sentences::new(&target, 0)?);
                let forced = self.model.teach(&source, &target, regard::Mode::Infer)?;
                forced.losses()?.sum_all()?.item()
            })?;
        }
        Ok(perplexity(sum, tokens))
    }
}

fn bleu(outputs: &[String], references: &[String], by: Tokenization) -> Result<f64> {
    Ok(Bleu::corpus(outputs, &alone(references), by)?.score)
}

/// Each reference as the only one of its sentence.
fn alone(references: &[String]) -> Vec<Vec<&String>> {
    references.iter().map(|one| vec![one]).collect()
}

/// BLEU of sentences by the length of their source, in fives.
fn by_length(
    pairs: &[Pair],
    outputs: &[String],
    lengths: &[usize],
    tokenization: Tokenization,
) -> Result<Groups> {
    const WIDTH: usize = 5;
    let last = lengths.iter().max().map_or(0, |longest| longest.saturating_sub(1) / WIDTH);
    let mut values = Vec::new();
    for group in 0..=last {
        let of: Vec<usize> =
            (0..pairs.len()).filter(|&i| lengths[i].saturating_sub(1) / WIDTH == group).collect();
        // The BLEU of a few sentences says nothing.
        if of.len() < 5 {
            continue;
        }
        let outputs: Vec<String> = of.iter().map(|&i| outputs[i].clone()).collect();
        let references: Vec<String> = of.iter().map(|&i| pairs[i].1.clone()).collect();
        let name = format!("{}–{}", group * WIDTH + 1, (group + 1) * WIDTH);
        values.push((name, bleu(&outputs, &references, tokenization)?));
    }
    Ok(Groups { measure: "BLEU".into(), by: "tokens of the source".into(), values })
}

impl Model for Translator {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let pairs = Dataset::new(&self.config).part(part)?;
        let (scores, outputs) = self.measure(&pairs, self.config.search.beam)?;
        let lengths: Vec<usize> =
            pairs.iter().map(|(source, _)| self.preprocessor.source.encode(source).len()).collect();
        let references: Vec<&String> = pairs.iter().map(|(_, target)| target).collect();
        let tokenization = self.tokenization(&references);
        let groups = by_length(&pairs, &outputs, &lengths, tokenization)?;
        let samples = pairs.iter().zip(&outputs).take(3);
        let samples = samples.map(|((s, t), o)| (s.clone(), t.clone(), o.clone())).collect();
        Ok(Report {
            scores,
            examples: pairs.len(),
            groups: Some(groups),
            samples,
            outputs,
            signature: Some(tokenization.signature()),
            ..Report::default()
        })
    }

    fn predict(&self, inputs: &[String]) -> Result<Vec<Prediction>> {
        let sources: Vec<_> = inputs.iter().map(|s| self.preprocessor.source.encode(s)).collect();
        let outputs = self.translate(&sources, self.config.search.beam, Need::OUTPUT)?;
        let target = self.preprocessor.target();
        let prediction = |(input, h): (&String, Hypothesis)| Prediction {
            input: input.clone(),
            output: target.decode(&h.tokens),
            details: serde_json::json!({
                "score": h.score,
                "log_probability": h.log_prob,
                "tokens": h.tokens.iter().map(|&id| target.token(id)).collect::<Vec<_>>(),
                "token_scores": h.token_scores,
                "ended": h.ended,
            }),
        };
        Ok(inputs.iter().zip(outputs).map(prediction).collect())
    }

    fn show(&self, input: &str) -> Result<Vec<(String, Scene)>> {
        let source = self.preprocessor.source.encode(input);
        let mut scenes = Vec::new();
        let beam = self.config.search.beam;
        let Some(h) = self.translate(std::slice::from_ref(&source), beam, Need::WEIGHTS)?.pop()
        else {
            return Ok(scenes);
        };
        let mut columns = self.preprocessor.source.tokens(input);
        columns.truncate(source.len());
        let target = self.preprocessor.target();
        let mut rows: Vec<String> = h.tokens.iter().map(|&id| target.token(id).into()).collect();
        if h.ended {
            rows.push("<end>".into());
        }
        if let Some(heads) = &h.heads {
            let maps = heads_of(heads, "weights")?;
            let maps = Maps {
                row_axis: "output".into(),
                column_axis: "source".into(),
                rows: rows.clone(),
                columns: columns.clone(),
                maps,
            };
            scenes.push(("alignment".into(), Scene::Maps(maps)));
        }
        let batch = Sentences::new(&[source], 0)?;
        let encoded =
            without_gradients(|| self.model.encode(&batch, regard::Mode::Infer, Need::WEIGHTS))?;
        if !encoded.weights.is_empty() {
            let maps = Map::of_layers(&encoded.weights)?;
            let maps = Maps {
                row_axis: "attends".into(),
                column_axis: "is attended to".into(),
                rows: columns.clone(),
                columns,
                maps,
            };
            scenes.push(("encoder".into(), Scene::Maps(maps)));
        }
        if scenes.is_empty() {
            return Err(Error::invalid(
                "this model attends to nothing: its context is a fixed vector and its encoder has \
                 no attention",
            ));
        }
        Ok(scenes)
    }

    /// The translation of a sentence that the validation or the test part holds.
    fn truth(&self, input: &str) -> Option<String> {
        let dataset = Dataset::new(&self.config);
        [Part::Validation, Part::Test].into_iter().find_map(|part| {
            let pairs = dataset.part(part).ok()?;
            pairs.into_iter().find(|(source, _)| source == input).map(|(_, target)| target)
        })
    }
}

/// Maps of weights `[layers, heads, n, N]`.
fn heads_of(heads: &Tensor, what: &str) -> Result<Vec<Map>> {
    let &[layers, count, n, columns] = heads.shape() else {
        return Err(Error::invalid(format!("weights of shape {:?}", heads.shape())));
    };
    let numbers = heads.to_vec::<f32>()?;
    let one = n * columns;
    let name = |i: usize| match layers * count {
        1 => what.to_string(),
        _ => format!("layer {}, head {}", i / count + 1, i % count + 1),
    };
    let maps = numbers.chunks(one.max(1)).enumerate();
    Ok(maps.map(|(i, weights)| Map::new(name(i), weights.to_vec())).collect())
}
