//! What some models can do beyond predicting, each a trait of its own.

use super::input::Input;
use super::network::Exported;
use super::prediction::Prediction;
use super::saliency::{How, Saliency};
use super::search_tree::SearchTree;
use regard_data::files::Waveform;
use regard_data::{Error, Result};
use regard_picture::scene::ImageScene;

/// A model with a gradient at its input.
pub trait Explains {
    /// How much each part of an input matters for what is predicted. Refuses a method that wants an attention
    /// the model does not have.
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency>;
}

/// A model that searches for the text it writes.
pub trait Searches {
    /// What was considered while an output was searched for.
    fn search_tree(&self, input: &Input) -> Result<SearchTree>;

    /// A prediction for each input, found with a beam of this width in place of the run's own.
    fn predict_with_beam(&self, inputs: &[Input], beam: usize) -> Result<Vec<Prediction>>;
}

/// A model of recordings.
pub trait Hears {
    /// The sound of an example, where it has one.
    fn sound(&self, input: &Input) -> Result<Option<Waveform>>;
}

/// A model of pictures.
pub trait Sees {
    /// The pixels of an example as the model reads them, without weights.
    fn picture(&self, input: &Input) -> Result<ImageScene>;
}

/// A model whose network other programs can have.
pub trait Exports {
    /// Its network and what that answers for some inputs. Refuses where the network has no form
    /// elsewhere.
    fn exported(&self) -> Result<Exported>;
}

/// What a model can do beyond predicting; its methods refuse what it cannot.
#[derive(Clone, Copy, Default)]
pub struct Abilities<'a> {
    /// Whether it tells how much each part of an input counts.
    pub explains: Option<&'a dyn Explains>,
    /// Whether it tells what it considered.
    pub searches: Option<&'a dyn Searches>,
    /// Whether examples have a sound.
    pub hears: Option<&'a dyn Hears>,
    /// Whether examples are pictures.
    pub sees: Option<&'a dyn Sees>,
    /// Whether other programs can have it.
    pub exports: Option<&'a dyn Exports>,
}

impl Abilities<'_> {
    /// As [`Explains::saliency`].
    pub fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        match self.explains {
            Some(model) => model.saliency(input, how),
            None => Err(Error::invalid("this task has no gradient at its input")),
        }
    }

    /// As [`Searches::search_tree`].
    pub fn search_tree(&self, input: &Input) -> Result<SearchTree> {
        match self.searches {
            Some(model) => model.search_tree(input),
            None => Err(Error::invalid("this task writes no text, so that it searches for none")),
        }
    }

    /// As [`Searches::predict_with_beam`]; refuses a beam that cannot be searched.
    pub fn predict_with_beam(&self, inputs: &[Input], beam: usize) -> Result<Vec<Prediction>> {
        check_beam("beam", beam)?;
        match self.searches {
            Some(model) => model.predict_with_beam(inputs, beam),
            None => Err(Error::invalid(
                "this task writes no text, so that there is nothing to search for with a `beam`",
            )),
        }
    }

    /// As [`Hears::sound`]; none where nothing is heard.
    pub fn sound(&self, input: &Input) -> Result<Option<Waveform>> {
        self.hears.map_or(Ok(None), |model| model.sound(input))
    }

    /// As [`Sees::picture`]; none where nothing is seen.
    pub fn picture(&self, input: &Input) -> Result<Option<ImageScene>> {
        self.sees.map(|model| model.picture(input)).transpose()
    }

    /// As [`Exports::exported`].
    pub fn exported(&self) -> Result<Exported> {
        match self.exports {
            Some(model) => model.exported(),
            None => Err(Error::invalid("this task's network has no form for other programs")),
        }
    }
}

/// The widest beam.
const MAX_BEAM: usize = 1000;

/// Refuses a beam that cannot be searched, by its name.
pub(crate) fn check_beam(name: &str, beam: usize) -> Result<()> {
    if (1..=MAX_BEAM).contains(&beam) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{name}` cannot be {beam}; 1 to {MAX_BEAM} can be searched")))
}
