//! What a text was written with, as scenes.

use regard::Tensor;
use regard::attention::Site;
use regard::layers::Encoded;
use regard::models::Hypothesis;
use regard_data::{Error, Result};
use regard_picture::scene::{Map, Maps, Place, Scene};

/// Maps of weights `[layers, heads, n, N]`.
pub(crate) fn weight_maps(heads: &Tensor) -> Result<Vec<Map>> {
    let &[layers, count, n, columns] = heads.shape() else {
        return Err(Error::invalid(format!("weights of shape {:?}", heads.shape())));
    };
    let numbers = heads.contiguous()?.to_vec::<f32>()?;
    let one = n * columns;
    let name = |i: usize| match (layers, count) {
        (1, 1) => "weights".to_string(),
        (_, 1) => format!("layer {}", i + 1),
        _ => format!("layer {}, head {}", i / count + 1, i % count + 1),
    };
    let maps = numbers.chunks(one.max(1)).enumerate();
    let place = |i: usize| Place::new(Site::Cross, i / count.max(1), i % count.max(1));
    Ok(maps.map(|(i, weights)| Map::new(name(i), weights.to_vec()).at(place(i))).collect())
}

/// What each word was written with; none where nothing was attended to.
pub(crate) fn alignment(
    hypothesis: &Hypothesis,
    rows: &[String],
    columns: &[String],
) -> Result<Option<(String, Scene)>> {
    let Some(heads) = &hypothesis.heads else { return Ok(None) };
    let maps = Maps {
        row_axis: "output".into(),
        column_axis: "source".into(),
        rows: rows.to_vec(),
        columns: columns.to_vec(),
        maps: weight_maps(heads)?,
    };
    Ok(Some(("alignment".into(), Scene::Maps(maps))))
}

/// What of each word was copied, (1 − g) times the weights that copying takes: a word of the vocabulary
/// looks at the source too, but takes nothing from it. None where the model does not copy.
pub(crate) fn copied(
    hypothesis: &Hypothesis,
    rows: &[String],
    columns: &[String],
) -> Result<Option<(String, Scene)>> {
    let (Some(weights), Some(shares)) = (&hypothesis.alignment, &hypothesis.copied) else {
        return Ok(None);
    };
    let numbers = weights.contiguous()?.to_vec::<f32>()?;
    let of_row = |(row, share): (&[f32], &f64)| -> Vec<f32> {
        row.iter().map(|weight| weight * *share as f32).collect()
    };
    let numbers = numbers.chunks(columns.len().max(1)).zip(shares).flat_map(of_row).collect();
    let map = Map::new("copied: (1 − g) · weight; a row adds up to 1 − g", numbers)
        .fixed("This is what was copied; the weights behind it are changed in the alignment.");
    let maps = Maps {
        row_axis: "output".into(),
        column_axis: "source".into(),
        rows: rows.to_vec(),
        columns: columns.to_vec(),
        maps: vec![map],
    };
    Ok(Some(("copied".into(), Scene::Maps(maps))))
}

/// What the encoder's own attention looked at; none where it has none.
pub(crate) fn encoder_scene(
    encoded: &Encoded,
    names: Vec<String>,
    window: Option<usize>,
) -> Result<Option<(String, Scene)>> {
    let maps = Maps::of_encoder(&encoded.weights, names)?.map(|maps| maps.truncated(window));
    Ok(maps.map(|maps| ("encoder".into(), Scene::Maps(maps))))
}

/// What a Transformer's decoder saw of what it had written: a row for each word of the output, over
/// the start and the words before it. None where the decoder has no attention of its own.
pub(crate) fn decoder_scene(layers: &[Tensor], rows: &[String]) -> Result<Option<(String, Scene)>> {
    if layers.is_empty() || rows.is_empty() {
        return Ok(None);
    }
    // An output that was cut has no end, which the weights have a row for.
    let n = rows.len();
    let cut = |weights: &Tensor| Ok(weights.narrow(2, 0, n)?.narrow(3, 0, n)?);
    let layers = layers.iter().map(cut).collect::<Result<Vec<_>>>()?;
    let start = std::iter::once("<start>".to_string());
    let maps = Maps {
        row_axis: "output".into(),
        column_axis: "written before".into(),
        rows: rows.to_vec(),
        columns: start.chain(rows.iter().take(n - 1).cloned()).collect(),
        maps: Map::of_layers(&layers, Site::Decoder)?.into_iter().map(Map::causal).collect(),
    };
    Ok(Some(("decoder".into(), Scene::Maps(maps))))
}

/// The scenes; where there is none, the model attended to nothing, which is said.
pub(crate) fn some_scene(scenes: Vec<(String, Scene)>) -> Result<Vec<(String, Scene)>> {
    match scenes.is_empty() {
        false => Ok(scenes),
        true => Err(Error::invalid(
            "this model attends to nothing: its context is a fixed vector and its encoder has no attention",
        )),
    }
}
