//! How long each sequence of a padded batch is.

use regard_tensor::{Device, Result, Tensor, ensure};

/// Refuses lengths that are not one per sequence, or longer than the batch: `[B]` for `[B, N, …]`.
pub(crate) fn check(what: &str, lengths: Option<&[usize]>, b: usize, n: usize) -> Result<()> {
    let Some(lengths) = lengths else { return Ok(()) };
    ensure!(lengths.len() == b, "{what}: {} lengths for {b} sequences", lengths.len());
    if let Some(at) = lengths.iter().position(|&length| length > n) {
        ensure!(
            false,
            "{what}: sequence {at} has length {}, longer than the batch, which has {n}",
            lengths[at]
        );
    }
    Ok(())
}

/// True where a sequence is, false where it is padded, `[B, N, 1]` on a device; none where nothing is padded.
pub(crate) fn keep(lengths: Option<&[usize]>, n: usize, device: Device) -> Result<Option<Tensor>> {
    let Some(lengths) = lengths.filter(|lengths| lengths.iter().any(|&length| length < n)) else {
        return Ok(None);
    };
    let there = lengths.iter().flat_map(|&length| (0..n).map(move |t| t < length));
    let keep = Tensor::from_bools(&there.collect::<Vec<_>>(), &[lengths.len(), n, 1])?;
    keep.to_device(device).map(Some)
}

/// x `[B, N, D]` with zeros where it is padded.
pub(crate) fn without_padding(x: &Tensor, keep: Option<&Tensor>) -> Result<Tensor> {
    match keep {
        Some(keep) => keep.where_(x, &Tensor::zeros(&[], x.dtype())?),
        None => Ok(x.clone()),
    }
}

/// The mean of x `[B, N, D]` over each sequence, `[B, D]`, where padding holds zeros; zeros for an
/// empty sequence.
pub(crate) fn mean(x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
    let (b, n) = (x.shape()[0], x.shape()[1]);
    let sum = x.sum(1)?;
    match lengths {
        None => sum.scale(1.0 / n.max(1) as f64),
        Some(lengths) => {
            let shares = lengths.iter().map(|&length| 1.0 / length.max(1) as f64).collect();
            let shares = Tensor::from_vec::<f64>(shares, &[b, 1])?.to_dtype(x.dtype())?;
            sum.mul(&shares.to_device(x.device())?)
        }
    }
}
