//! Several processes that train one model, each on its share of every batch.

use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::{Gradients, Parameter};
use regard_data::{Error, Result};

/// The processes that train one model together. All of them call the same methods in the same
/// order; each waits for the others there.
///
/// ```
/// use regard_tasks::train::{Alone, Ranks};
/// let mut numbers = vec![1.0, 2.0];
/// Alone.all_reduce(&mut numbers)?;
/// assert_eq!((Alone.rank(), Alone.size(), numbers), (0, 1, vec![1.0, 2.0]));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub trait Ranks {
    /// Which of them this process is, from 0. Rank 0 writes all files.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Puts in the place of each number its sum over all ranks; all have the same bits afterwards.
    fn all_reduce(&mut self, numbers: &mut Vec<f32>) -> Result<()>;

    /// Puts the bytes of rank 0 in the place of those of the others.
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<()>;
}

/// One process, which trains alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_reduce(&mut self, _: &mut Vec<f32>) -> Result<()> {
        Ok(())
    }

    fn broadcast(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

/// Gives all ranks the bytes that rank 0 has, or the sentence why it has none; the others give
/// nothing.
///
/// ```
/// use regard_tasks::train::{Alone, share};
/// assert_eq!(share(&mut Alone, Some(Ok(vec![7])))?, [7]);
/// let error = share(&mut Alone, Some(Err("no such file".into()))).unwrap_err();
/// assert_eq!(error.to_string(), "no such file");
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn share(
    ranks: &mut dyn Ranks,
    own: Option<std::result::Result<Vec<u8>, String>>,
) -> Result<Vec<u8>> {
    const FINE: u8 = 0;
    const REFUSED: u8 = 1;
    let (kind, mut bytes) = match own {
        None => (FINE, Vec::new()),
        Some(Ok(bytes)) => (FINE, bytes),
        Some(Err(what)) => (REFUSED, what.into_bytes()),
    };
    bytes.push(kind);
    ranks.broadcast(&mut bytes)?;
    match bytes.pop() {
        Some(FINE) => Ok(bytes),
        _ => Err(Error::invalid(String::from_utf8_lossy(&bytes))),
    }
}

/// The share of a batch that is a rank's: as even as can be, in order; none where there are fewer
/// examples than ranks.
pub(super) fn part<'a>(batch: &'a [usize], ranks: &dyn Ranks) -> &'a [usize] {
    let at = |rank: usize| rank * batch.len() / ranks.size();
    &batch[at(ranks.rank())..at(ranks.rank() + 1)]
}

/// A rank's gradients of a step and what goes with them, to be added up over all ranks.
pub(super) struct Sum {
    /// None where no batch of this rank had any.
    pub(super) gradients: Option<Gradients>,
    /// The losses of the step's batches, each by the share that this rank had of it.
    pub(super) loss: f64,
    /// How much of the step's batches was this rank's.
    pub(super) share: f64,
    /// Whether this rank, or one of them, wants to stop.
    pub(super) stop: bool,
}

impl Sum {
    /// Adds up over all ranks: one flat buffer, one all-reduce. The baseline of REINFORCE, a mean
    /// over a batch, becomes the mean over the ranks by their shares.
    pub(super) fn all_reduce(
        &mut self,
        ranks: &mut dyn Ranks,
        parameters: &[Parameter],
        reinforce: Option<&mut Reinforce>,
    ) -> Result<()> {
        let baseline = reinforce.as_ref().map_or(Ok(0.0), |reinforce| reinforce.baseline())?;
        let truth = |truth: bool| f32::from(u8::from(truth));
        let own = self.gradients.take().unwrap_or_default();
        let mut flat = vec![
            self.loss as f32,
            self.share as f32,
            (baseline * self.share) as f32,
            truth(self.stop),
        ];
        let flags = flat.len();
        // A parameter that no rank has a gradient of stays as it is.
        flat.extend(parameters.iter().map(|parameter| truth(own.get(parameter).is_some())));
        for parameter in parameters {
            match own.get(parameter) {
                Some(gradient) => flat.extend(gradient.to_vec::<f32>()?),
                None => flat.resize(flat.len() + parameter.tensor().numel(), 0.0),
            }
        }
        ranks.all_reduce(&mut flat)?;
        let (mut sums, mut any) = (Gradients::default(), false);
        let (flags, mut rest) = flat[flags..].split_at(parameters.len());
        for (parameter, &flag) in parameters.iter().zip(flags) {
            let value = parameter.tensor();
            let (sum, others) = rest.split_at(value.numel());
            rest = others;
            if flag > 0.0 {
                any = true;
                let sum = Tensor::from_vec(sum.to_vec(), value.shape())?;
                sums.set(parameter, sum.to_device(value.device())?)?;
            }
        }
        (self.loss, self.share) = (f64::from(flat[0]), f64::from(flat[1]));
        self.stop = flat[3] > 0.0;
        self.gradients = any.then_some(sums);
        if let (Some(reinforce), true) = (reinforce, self.share > 0.0) {
            let mean = Tensor::from_vec(vec![f64::from(flat[2]) / self.share], &[1])?;
            reinforce.set_state(&[("baseline".to_string(), mean)].into())?;
        }
        Ok(())
    }
}
