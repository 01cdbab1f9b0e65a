//! Weights from a file, as a scene: from `attend --weights`, from a picture's numbers, from anywhere.

use crate::scene::{Map, Maps, Scene};
use regard::tensor::load;
use regard::{DType, Tensor};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// More queries or keys than this cannot be told apart in a picture.
const MOST: usize = 2000;

/// What is drawn of a file of weights, and what its queries and keys are called.
///
/// ```
/// use regard_picture::scene::WeightsFile;
/// use regard::{DType, Tensor};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("weights.safetensors");
/// let weights = Tensor::full(&[2, 3, 4], 0.25, DType::F32)?;
/// let tensors = [("weights".to_string(), weights)].into_iter().collect();
/// regard::tensor::save(&path, &tensors, &Default::default())?;
/// let scene = WeightsFile { rows: vec!["a".into()], ..WeightsFile::default() }.scene(&path);
/// assert!(scene.unwrap_err().to_string().ends_with("1 labels for 3 rows"));
/// assert_eq!(WeightsFile::default().scene(&path)?.maps().len(), 2);
/// # Ok::<(), regard_picture::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightsFile {
    /// The tensor; `weights`, or the only one that can be meant, where none is given.
    pub tensor: Option<String>,
    /// What the queries are called; what the file says, or their numbers, where none are given.
    pub rows: Vec<String>,
    /// What the keys are called.
    pub columns: Vec<String>,
}

/// What a file's metadata say under `labels`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels {
    maps: Vec<String>,
    rows: Vec<String>,
    columns: Vec<String>,
}

/// Whether a tensor can be weights of queries over keys.
fn can_be_weights(x: &Tensor) -> bool {
    x.dtype().is_float() && (2..=4).contains(&x.rank()) && x.numel() > 0
}

impl WeightsFile {
    /// The weights `[Nq, Nk]`, `[H, Nq, Nk]` or `[B, H, Nq, Nk]` of a safetensors file, one map for
    /// each head of each batch item. Names are taken from the file's metadata where they fit. A tensor
    /// `mask` of as many flags as there are `weights` says which pairs may be seen.
    /// Refuses a file without such a tensor, or with several and none called `weights`, and labels
    /// of another number.
    pub fn scene(&self, path: &Path) -> Result<Scene> {
        let wrong = |what: String| Error::file(path, what);
        let (tensors, texts) = load(path)?;
        let (name, x) = self.find(&tensors).map_err(wrong)?;
        let s = x.shape();
        let (rows, columns) = (s[s.len() - 2], s[s.len() - 1]);
        if rows > MOST || columns > MOST {
            let what = format!(
                "`{name}` has {rows} × {columns} weights; a picture has {MOST} × {MOST} at most"
            );
            return Err(wrong(what));
        }
        let known: Labels = texts
            .get("labels")
            .and_then(|labels| serde_json::from_str(labels).ok())
            .unwrap_or_default();
        let numbers = x.to_dtype(DType::F32)?.contiguous()?.to_vec::<f32>()?;
        let cells = rows * columns;
        let count = numbers.len() / cells;
        let names = if known.maps.len() == count { known.maps } else { map_names(name, s) };
        let hidden = match tensors.get("mask").filter(|mask| name == "weights" && mask.shape() == s)
        {
            Some(mask) => mask.to_dtype(DType::F32)?.contiguous()?.to_vec::<f32>()?,
            None => Vec::new(),
        };
        let hidden = |at: usize| match hidden.chunks(cells).nth(at) {
            Some(seen) => seen.iter().map(|&seen| seen == 0.0).collect(),
            None => Vec::new(),
        };
        let maps = names.into_iter().zip(numbers.chunks(cells)).enumerate();
        Ok(Scene::Maps(Maps {
            row_axis: "query".into(),
            column_axis: "key".into(),
            rows: labels("rows", &self.rows, known.rows, rows).map_err(wrong)?,
            columns: labels("columns", &self.columns, known.columns, columns).map_err(wrong)?,
            maps: maps
                .map(|(at, (name, weights))| Map::new(name, weights.to_vec()).hiding(hidden(at)))
                .collect(),
        }))
    }

    fn find<'a>(
        &'a self,
        tensors: &'a BTreeMap<String, Tensor>,
    ) -> std::result::Result<(&'a str, &'a Tensor), String> {
        let all = || tensors.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let wanted = self.tensor.as_deref();
        let wanted = wanted.or_else(|| tensors.contains_key("weights").then_some("weights"));
        if let Some(name) = wanted {
            let x = tensors.get(name);
            let x = x.ok_or_else(|| format!("there is no tensor `{name}`; there are {}", all()))?;
            return match can_be_weights(x) {
                true => Ok((name, x)),
                false => Err(format!(
                    "`{name}` is {} {:?}; weights are [Nq, Nk], [H, Nq, Nk] or [B, H, Nq, Nk]",
                    x.dtype(),
                    x.shape()
                )),
            };
        }
        let fitting: Vec<(&String, &Tensor)> =
            tensors.iter().filter(|(_, x)| can_be_weights(x)).collect();
        match fitting[..] {
            [(name, x)] => Ok((name, x)),
            [] => {
                Err("there are no weights: no tensor [Nq, Nk], [H, Nq, Nk] or [B, H, Nq, Nk]"
                    .into())
            }
            _ => Err(format!("which tensor? There are {}; choose one with --tensor NAME", all())),
        }
    }
}

/// "head 2", "item 1, head 2".
fn map_names(name: &str, shape: &[usize]) -> Vec<String> {
    match *shape {
        [h, _, _] => (1..=h).map(|head| format!("head {head}")).collect(),
        [1, h, _, _] => (1..=h).map(|head| format!("head {head}")).collect(),
        [b, h, _, _] => (1..=b)
            .flat_map(|item| (1..=h).map(move |head| format!("item {item}, head {head}")))
            .collect(),
        _ => vec![name.to_string()],
    }
}

/// The labels that were given, else those of the file where they fit, else numbers.
fn labels(
    what: &str,
    given: &[String],
    known: Vec<String>,
    count: usize,
) -> std::result::Result<Vec<String>, String> {
    match (given.len(), known.len() == count) {
        (0, true) => Ok(known),
        (0, false) => Ok((1..=count).map(|n| n.to_string()).collect()),
        (n, _) if n == count => Ok(given.to_vec()),
        (n, _) => Err(format!("{n} labels for {count} {what}")),
    }
}
