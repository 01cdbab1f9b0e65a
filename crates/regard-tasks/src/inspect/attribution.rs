//! Which explanation is right: how faithful each way of telling what matters is, over a part.

use super::{examples, places::places};
use crate::task::input::{Input, InputForm};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::saliency::{How, Method, Saliency};
use regard_data::{Error, Result, quietly};
use serde::Serialize;

/// How far what is predicted falls where parts of the input are taken away in the order of each
/// method, the mean over examples of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// The part.
    pub part: Part,
    /// The examples that were looked at.
    pub examples: usize,
    /// What each method gives.
    pub methods: Vec<Areas>,
    /// The mean fall in any order.
    pub random: f64,
}

/// The mean areas of a method: see [`Curve`](crate::task::Curve).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Areas {
    /// The method.
    pub method: Method,
    /// The mean fall where what matters most goes first: more is better.
    pub most: Option<f64>,
    /// The mean fall where what matters least goes first: less is better.
    pub least: Option<f64>,
    /// Why the model has none.
    pub refused: Option<String>,
}

impl Attribution {
    /// Of at most so many examples of a part, 1 to 128, in blocks that lie evenly. Refuses a part without
    /// examples and a model without a gradient at its input. A method that refuses one of the examples has
    /// no areas, so that all are means over the same.
    pub fn compute(model: &dyn Model, part: Part, most: usize) -> Result<Self> {
        if !(1..=128).contains(&most) {
            return Err(Error::invalid(format!("`examples` cannot be {most}; it wants 1 to 128")));
        }
        let count = quietly(|| model.judge(part))?.len();
        if count == 0 {
            let name = part.name();
            return Err(Error::invalid(format!("the {name} part holds no examples")));
        }
        if model.asks().form == InputForm::Node {
            return Err(Error::invalid(
                "the nodes of a graph have all other nodes as their input; ask about one of them",
            ));
        }
        let mut some = places(count);
        if some.len() > most {
            some = (0..most).map(|at| some[at * some.len() / most]).collect();
        }
        let blank = |method| Areas { method, most: Some(0.0), least: Some(0.0), refused: None };
        let mut methods = Method::ALL.map(blank).to_vec();
        let (n, mut random) = (some.len() as f64, 0.0);
        examples::each(model, part, &some, |_, input| {
            for areas in methods.iter_mut().filter(|areas| areas.refused.is_none()) {
                if let Some(by_chance) = areas.add(model, input, n)? {
                    random += by_chance / n;
                }
            }
            Ok(())
        })?;
        Ok(Self { part, examples: some.len(), methods, random })
    }
}

impl Areas {
    /// Adds an example of so many; gives the area of chance where the method is the first, which every
    /// model has.
    fn add(&mut self, model: &dyn Model, input: &Input, of: f64) -> Result<Option<f64>> {
        let is_first = self.method == Method::GradientInput;
        let how = How { method: self.method, faithfulness: true };
        match model.abilities().saliency(input, how) {
            Ok(Saliency { faithfulness: Some(found), .. }) => {
                let add = |sum: &mut Option<f64>, area| *sum = sum.map(|sum| sum + area / of);
                add(&mut self.most, found.most.area);
                add(&mut self.least, found.least.area);
                Ok(is_first.then_some(found.random.area))
            }
            Ok(_) => Ok(None),
            Err(Error::Stopped) => Err(Error::Stopped),
            Err(error) if is_first => Err(error),
            Err(error) => {
                (self.most, self.least) = (None, None);
                self.refused = Some(error.to_string());
                Ok(None)
            }
        }
    }
}
