//! A view as a file: SVG, PNG, an animation, a page that stands alone, or its weights as numbers.

use crate::ask::Ready;
use crate::numbers::{csv, npz};
use crate::refusal::Refusal;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use regard_picture::picture::{self, Caption};
use regard_picture::scene::Scene;

/// What is made of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Svg,
    Png,
    Html,
    Gif,
    Csv,
    Npz,
}

impl Form {
    pub(crate) fn named(name: Option<&str>) -> Result<Self, Refusal> {
        match name {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("html") => Ok(Self::Html),
            Some("gif") => Ok(Self::Gif),
            Some("csv") => Ok(Self::Csv),
            Some("npz") => Ok(Self::Npz),
            _ => Err(Refusal::bad("`as` is svg, png, gif, html, csv or npz")),
        }
    }

    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Svg => ("svg", "image/svg+xml"),
            Self::Png => ("png", "image/png"),
            Self::Html => ("html", "text/html; charset=utf-8"),
            Self::Gif => ("gif", "image/gif"),
            Self::Csv => ("csv", "text/csv; charset=utf-8"),
            Self::Npz => ("npz", "application/zip"),
        }
    }
}

/// A file and what it is called.
pub(crate) struct Saved {
    bytes: Vec<u8>,
    name: String,
    kind: &'static str,
}

/// A scene that is to be a file, and one of its maps alone where that is named.
pub(crate) struct Drawable {
    scene: Scene,
    name: String,
    caption: Caption,
    map: Option<usize>,
    run: String,
}

impl Ready {
    /// A scene that can be made a file.
    pub(crate) fn drawable(&self, scene: usize, map: Option<usize>) -> Result<Drawable, Refusal> {
        let (model, input) = (&*self.loaded.model, &self.input);
        let show = || {
            let scenes = model.show(input)?;
            let count = scenes.len();
            let Some((name, scene)) = scenes.into_iter().nth(scene) else {
                return Err(Refusal::bad(format!("there is no scene {scene}; there are {count}")));
            };
            Ok((self.run.run.caption(model, &name, input)?, name, scene))
        };
        let (caption, name, scene) = self.changes.during(show)?;
        if map.is_some_and(|map| map >= scene.maps().len()) {
            let count = scene.maps().len();
            return Err(Refusal::bad(format!("there is no such map; there are {count}")));
        }
        Ok(Drawable { scene, name, caption, map, run: self.run.id.clone() })
    }
}

impl Drawable {
    /// The file. An animation takes seconds, in which the model can be asked.
    pub(crate) fn saved(&self, form: Form) -> Result<Saved, Refusal> {
        let Self { scene, caption, map, .. } = self;
        let bytes = match form {
            Form::Svg => picture::svg(scene, caption, *map).into_bytes(),
            Form::Png => picture::png(&picture::svg(scene, caption, *map), 2.0)?,
            Form::Html => picture::page(scene, caption).into_bytes(),
            Form::Gif => picture::gif(scene, caption, *map)?,
            Form::Csv => csv(scene, *map).into_bytes(),
            Form::Npz => npz(scene, *map),
        };
        let (ending, kind) = form.kind();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.name.chars().map(plain).collect();
        Ok(Saved { bytes, name: format!("{}-{name}.{ending}", self.run), kind })
    }
}

impl Saved {
    pub(crate) fn response(self) -> Response {
        let mut response = crate::refusal::bytes_response(self.kind, self.bytes);
        let disposition = format!("attachment; filename=\"{}\"", self.name);
        if let Ok(value) = HeaderValue::from_str(&disposition) {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
        response
    }
}
