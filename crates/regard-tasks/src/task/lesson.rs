//! A learner over encoded examples: what all tasks have in common while they train.

use super::learner::Learner;
use super::model::Model;
use crate::metric::scores::Scores;
use crate::options::training::TrainingConfig;
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::files::batches;
use regard_data::{Error, Result};

/// A model and the encoded examples that it learns from; [`learner`] trains it.
pub(crate) trait Lesson {
    /// The model.
    fn model(&self) -> &dyn Model;

    /// How it is trained.
    fn training(&self) -> &TrainingConfig;

    /// How long the training examples are.
    fn lengths(&self) -> Lengths;

    /// The loss of a batch; with the loss of choices made by chance, where REINFORCE trains them.
    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor>;

    /// What the mean that is the loss of a batch divides by.
    fn weight(&self, batch: &[usize]) -> f64;

    /// The metrics on the validation part.
    fn measure(&self) -> Result<Scores>;

    /// The validation part's inputs, as they would be typed.
    fn samples(&self) -> Samples;

    /// Prepares the model for its first step; gives what is worth saying of it.
    fn start(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// How long training examples are: what batches are put together by.
pub(crate) enum Lengths {
    /// So many examples that are all alike.
    Alike(usize),
    /// Examples of these lengths, in tokens or vectors; those of a batch are of about the same.
    Each(Vec<usize>),
    /// So many examples, all of which a step needs.
    Together(usize),
}

/// Inputs that samples are taken from.
pub(crate) enum Samples {
    /// So many, which are nothing that is typed: `validation:0`, …
    Numbered(usize),
    /// These texts.
    Typed(Vec<String>),
}

/// Trains a lesson's model. Refuses batches of so many tokens where there are no tokens to be counted.
pub(crate) fn learner<L: Lesson + 'static>(
    lesson: L,
    notes: Vec<String>,
    reinforce: Option<Reinforce>,
) -> Result<Box<dyn Learner>> {
    let counts_tokens = matches!(lesson.lengths(), Lengths::Each(_));
    if lesson.training().batch_tokens > 0 && !counts_tokens {
        return Err(Error::invalid(
            "`training.batch_tokens` counts tokens, which the examples of this task do not have; \
             `training.batch_size` counts examples",
        ));
    }
    Ok(Box::new(LessonLearner { lesson, notes, reinforce }))
}

struct LessonLearner<L> {
    lesson: L,
    notes: Vec<String>,
    /// Trains hard attention that samples.
    reinforce: Option<Reinforce>,
}

impl<L: Lesson> Learner for LessonLearner<L> {
    fn model(&self) -> &dyn Model {
        self.lesson.model()
    }

    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>> {
        match self.lesson.lengths() {
            Lengths::Each(lengths) => {
                batches(&lengths, self.lesson.training().batch_size(batch), Some(random))
            }
            Lengths::Alike(count) => {
                Ok(random.order(count).chunks(batch).map(<[usize]>::to_vec).collect())
            }
            Lengths::Together(count) => Ok(vec![(0..count).collect()]),
        }
    }

    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor> {
        self.lesson.loss(batch, &mut self.reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        self.lesson.weight(batch)
    }

    fn validate(&self) -> Result<Scores> {
        self.lesson.measure()
    }

    fn start(&mut self) -> Result<Vec<String>> {
        self.lesson.start()
    }

    fn samples(&self, n: usize) -> Vec<String> {
        match self.lesson.samples() {
            Samples::Typed(texts) => texts.into_iter().take(n).collect(),
            Samples::Numbered(count) => {
                (0..count.min(n)).map(|at| format!("validation:{at}")).collect()
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn reinforce(&self) -> Option<&Reinforce> {
        self.reinforce.as_ref()
    }

    fn reinforce_mut(&mut self) -> Option<&mut Reinforce> {
        self.reinforce.as_mut()
    }
}
