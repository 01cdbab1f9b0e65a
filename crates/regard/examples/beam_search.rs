//! What a beam finds that greed does not: n-best outputs with the score of every token, for a
//! model that has learned that a question has several answers.
//!
//!     cargo run --release -p regard --example beam_search

use regard::Result;
use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
use regard::models::{
    ContextConfig, DecoderConfig, Hypothesis, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig,
};
use regard::prelude::*;

/// Answers to one question and how many of ten people give each. The likeliest first word (3) does
/// not begin the likeliest answer.
const ANSWERS: [(&[usize], usize); 4] = [(&[3, 5], 2), (&[3, 6], 2), (&[3, 7], 2), (&[4, 5], 4)];

fn show(name: &str, hypothesis: &Hypothesis) {
    let scores: Vec<String> =
        hypothesis.token_scores.iter().map(|score| format!("{:.2}", score.exp())).collect();
    println!(
        "{name}: {:?}, probability {:.2} (of each token {}), score {:.3}",
        hypothesis.tokens,
        hypothesis.log_prob.exp(),
        scores.join(", "),
        hypothesis.score
    );
}

fn main() -> Result<()> {
    let gru = RecurrentConfig::new(Cell::Gru, 32);
    let config = Seq2SeqConfig::new(
        8,
        8,
        EncoderConfig::Recurrent(gru),
        DecoderConfig::Recurrent(gru),
        ContextConfig::Attention(MechanismConfig::new(ScoreConfig::ScaledDot)),
    );
    let parameters = Parameters::new(DType::F32, 1);
    let model = Seq2Seq::new(&parameters, &config)?;
    let people = ANSWERS.iter().flat_map(|(answer, count)| std::iter::repeat_n(answer, *count));
    let target: Vec<Vec<usize>> = people.map(|answer| answer.to_vec()).collect();
    let (source, target) =
        (Sentences::new(&vec![[3usize, 4]; target.len()], 0)?, Sentences::new(&target, 0)?);
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let random = Random::new(1);
    for _ in 0..300 {
        let loss = model.teach(&source, &target, Mode::Train(&random))?.loss(0.0)?;
        optimizer.step(&loss.backward()?, 5e-3)?;
    }

    let question = Sentences::new(&[[3usize, 4]], 0)?;
    show("greedy", &model.greedy(&question, 5)?[0]);
    let search = SearchConfig { width: 4, best: 4, longest: 5, ..SearchConfig::default() };
    for (rank, hypothesis) in model.search(&question, &search)?[0].iter().enumerate() {
        show(&format!("beam {}", rank + 1), hypothesis);
    }
    Ok(())
}
