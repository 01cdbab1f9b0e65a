//! What a model answered, and how good it is.

use super::data::Questions;
use crate::metric::AnswerRule;
use crate::metric::scores::Scores;
use crate::task::report::{Groups, PerExample, Report};
use regard::tensor::Better;
use regard_data::files::Asked;

/// What a model answered to one question.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// The answer; empty where it says that there is none.
    pub(super) answer: String,
    /// Its probability.
    pub(super) probability: f64,
    /// −ln p of the right answer, where the model could have given it.
    pub(super) loss: Option<f64>,
    /// The weight of every sentence of the text, by hop; of a reader as start and as end.
    pub(super) weights: Vec<Vec<f32>>,
    /// How many sentences a memory network could see.
    pub(super) seen: usize,
}

impl Outcome {
    /// The sentence with the most weight, all hops together.
    fn most_attended(&self) -> Option<usize> {
        let sentences = self.weights.first()?.len();
        let weight = |at: usize| self.weights.iter().map(|hop| hop[at]).sum::<f32>();
        (0..sentences).max_by(|&a, &b| weight(a).total_cmp(&weight(b)))
    }

    /// How far the weights are spread: −Σ w ln w, the mean over the hops.
    fn entropy(&self) -> Option<f64> {
        let one = |&w: &f32| if w > 0.0 { -f64::from(w) * f64::from(w).ln() } else { 0.0 };
        let hops = self.weights.iter().map(|hop| hop.iter().map(one).sum::<f64>());
        (!self.weights.is_empty()).then(|| mean(hops))
    }
}

/// Which measure decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deciding {
    /// How many answers are right to the letter: one of those seen in training is chosen.
    Accuracy,
    /// What answers have in common with the right ones: spans.
    F1,
}

/// Outcomes with their questions.
pub(super) struct Outcomes<'a> {
    pub(super) questions: &'a Questions,
    pub(super) outcomes: &'a [Outcome],
    pub(super) rule: AnswerRule,
    pub(super) deciding: Deciding,
}

fn mean(all: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0);
    for x in all {
        sum += x;
        n += 1;
    }
    if n == 0 { f64::NAN } else { sum / f64::from(n) }
}

fn answers(asked: &Asked) -> Vec<&str> {
    match asked.answers.is_empty() {
        true => vec![""],
        false => asked.answers.iter().map(|answer| answer.text.as_str()).collect(),
    }
}

fn same(fact: bool) -> f64 {
    f64::from(u8::from(fact))
}

impl Outcomes<'_> {
    fn each(&self) -> impl Iterator<Item = (&Asked, &Outcome)> {
        self.questions.all.iter().zip(self.outcomes)
    }

    fn deciding(&self, asked: &Asked, outcome: &Outcome) -> f64 {
        match self.deciding {
            Deciding::Accuracy => same(answers(asked).contains(&outcome.answer.as_str())),
            Deciding::F1 => self.rule.f1(&outcome.answer, &answers(asked)),
        }
    }

    pub(super) fn scores(&self) -> Scores {
        let exact = |(a, o): (&Asked, &Outcome)| self.rule.exact_match(&o.answer, &answers(a));
        let f1 = |(a, o): (&Asked, &Outcome)| self.rule.f1(&o.answer, &answers(a));
        let (exact, f1) = (mean(self.each().map(exact)), mean(self.each().map(f1)));
        let scores = match self.deciding {
            Deciding::Accuracy => {
                let accuracy = mean(self.each().map(|(a, o)| self.deciding(a, o)));
                Scores::new("accuracy", accuracy, Better::Higher)
                    .with("exact match", exact)
                    .with("F1", f1)
            }
            Deciding::F1 => Scores::new("F1", f1, Better::Higher).with("exact match", exact),
        };
        let scores = scores.with("loss", mean(self.outcomes.iter().filter_map(|o| o.loss)));
        let told = |(asked, outcome): (&Asked, &Outcome)| {
            let most = outcome.most_attended()?;
            (!asked.supporting.is_empty()).then(|| same(asked.supporting.contains(&most)))
        };
        let known = [
            ("supporting", mean(self.each().filter_map(told))),
            ("entropy", mean(self.outcomes.iter().filter_map(Outcome::entropy))),
        ];
        let known = known.into_iter().filter(|(_, value)| !value.is_nan());
        known.fold(scores, |scores, (name, value)| scores.with(name, value))
    }

    /// The deciding measure by the number of sentences.
    fn groups(&self) -> Groups {
        const WIDE: usize = 3;
        const MOST: usize = 8;
        let group =
            |asked: &Asked| (asked.passage.ranges.len().saturating_sub(1) / WIDE).min(MOST - 1);
        let name = |at: usize| match at + 1 {
            MOST => format!("{} and more", at * WIDE + 1),
            _ => format!("{} to {}", at * WIDE + 1, (at + 1) * WIDE),
        };
        let of = |at: usize| {
            let members = self.each().filter(|(asked, _)| group(asked) == at);
            (name(at), mean(members.map(|(asked, outcome)| self.deciding(asked, outcome))))
        };
        Groups {
            measure: self.scores().first().0.into(),
            by: "sentences in the text".into(),
            values: (0..MOST).map(of).filter(|(_, value)| !value.is_nan()).collect(),
        }
    }

    pub(super) fn report(&self) -> Report {
        let name =
            |answer: &str| if answer.is_empty() { "(none)".into() } else { answer.to_string() };
        let sample = |(asked, outcome): (&Asked, &Outcome)| {
            (asked.question.clone(), name(answers(asked)[0]), name(&outcome.answer))
        };
        Report {
            scores: self.scores(),
            examples: self.outcomes.len(),
            groups: Some(self.groups()),
            samples: self.each().take(3).map(sample).collect(),
            each: Some(PerExample {
                measure: self.scores().first().0.into(),
                values: self.each().map(|(asked, outcome)| self.deciding(asked, outcome)).collect(),
            }),
            outputs: self.outcomes.iter().map(|outcome| outcome.answer.clone()).collect(),
            ..Report::default()
        }
    }
}
