//! Pictures of weights: a scene and what stands above it, drawn when it is asked for.

use crate::failure::failure;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use regard_picture::picture::{self, Caption};
use regard_picture::scene::{Map, Maps, Scene};

/// How much finer than its SVG a picture of dots is: as `regard show` draws it.
const FINENESS: f32 = 2.0;

/// A scene that can be drawn.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct Picture {
    pub(crate) scene: Scene,
    pub(crate) caption: Caption,
}

#[pymethods]
impl Picture {
    /// Maps of rows over columns: numbers as f32, map after map; of as many bytes as there are numbers,
    /// those that are not 0 say what a mask hides.
    #[new]
    fn new(
        title: &str,
        names: [Vec<String>; 3],
        numbers: PyBackedBytes,
        hidden: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let [maps, rows, columns] = names;
        let (numbers, cells) = (floats(&numbers), rows.len() * columns.len());
        let count = maps.len() * cells;
        if numbers.len() != count || hidden.as_ref().is_some_and(|hidden| hidden.len() != count) {
            return Err(PyValueError::new_err(format!(
                "{} numbers for {} maps of {} × {}",
                numbers.len(),
                maps.len(),
                rows.len(),
                columns.len()
            )));
        }
        let hidden = |at: usize| match &hidden {
            Some(all) => all[at * cells..(at + 1) * cells].iter().map(|&one| one != 0).collect(),
            None => Vec::new(),
        };
        let map = |(at, name): (usize, String)| {
            Map::new(name, numbers[at * cells..(at + 1) * cells].to_vec()).hiding(hidden(at))
        };
        let maps = maps.into_iter().enumerate().map(map).collect();
        let (row_axis, column_axis) = ("query".into(), "key".into());
        let scene = Scene::Maps(Maps { row_axis, column_axis, rows, columns, maps });
        Ok(Self { scene, caption: title.into() })
    }

    /// The same of other weights, f32 map after map.
    fn with_weights(&self, numbers: PyBackedBytes) -> PyResult<Self> {
        let numbers = floats(&numbers);
        let mut scene = self.scene.clone();
        let maps = match &mut scene {
            Scene::Maps(scene) => &mut scene.maps,
            Scene::Graph(scene) => &mut scene.maps,
            Scene::Image(scene) => &mut scene.maps,
            Scene::Curve(scene) => &mut scene.maps,
            Scene::Sound(scene) => &mut scene.weights.maps,
        };
        let wanted: usize = maps.iter().map(|map| map.weights.len()).sum();
        if numbers.len() != wanted {
            let what = format!("{} weights for a scene of {wanted}", numbers.len());
            return Err(PyValueError::new_err(what));
        }
        let mut rest = &numbers[..];
        for map in maps {
            let (own, others) = rest.split_at(map.weights.len());
            map.weights.copy_from_slice(own);
            rest = others;
        }
        Ok(Self { scene, caption: self.caption.clone() })
    }

    /// A page that stands alone.
    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| picture::page(&self.scene, &self.caption))
    }

    /// All maps side by side.
    fn svg(&self, py: Python<'_>) -> String {
        py.detach(|| picture::svg(&self.scene, &self.caption, None))
    }

    /// Row after row, or map after map.
    fn gif<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| picture::gif(&self.scene, &self.caption, None));
        Ok(PyBytes::new(py, &bytes.map_err(failure)?))
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect()
}

/// An SVG as a PNG, and what to install where the system's fonts lack signs.
#[pyfunction]
pub(crate) fn png<'py>(
    py: Python<'py>,
    svg: &str,
) -> PyResult<(Bound<'py, PyBytes>, Option<String>)> {
    let drawn = py.detach(|| Ok((picture::png(svg, FINENESS)?, picture::missing_fonts(svg)?)));
    let (bytes, advice) = drawn.map_err(failure)?;
    Ok((PyBytes::new(py, &bytes), advice))
}
