//! A view as a file: SVG, PNG, or a page that stands alone.

use crate::ask::Ready;
use crate::refusal::Refusal;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use regard_picture::picture;

/// What is made of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Svg,
    Png,
    Html,
}

impl Form {
    pub(crate) fn named(name: Option<&str>) -> Result<Self, Refusal> {
        match name {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("html") => Ok(Self::Html),
            _ => Err(Refusal::bad("`as` is svg, png or html")),
        }
    }

    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Svg => ("svg", "image/svg+xml"),
            Self::Png => ("png", "image/png"),
            Self::Html => ("html", "text/html; charset=utf-8"),
        }
    }
}

/// A file and what it is called.
pub(crate) struct Saved {
    bytes: Vec<u8>,
    name: String,
    kind: &'static str,
}

impl Ready {
    /// A scene as a file, one of its maps alone where that is named.
    pub(crate) fn save(
        &self,
        scene: usize,
        map: Option<usize>,
        form: Form,
    ) -> Result<Saved, Refusal> {
        let (model, input) = (&*self.loaded.model, &self.input);
        let draw = || {
            let scenes = model.show(input)?;
            let count = scenes.len();
            let Some((name, scene)) = scenes.into_iter().nth(scene) else {
                return Err(Refusal::bad(format!("there is no scene {scene}; there are {count}")));
            };
            Ok((self.run.run.caption(model, &name, input)?, name, scene))
        };
        let (caption, name, scene) = self.changes.during(draw)?;
        if map.is_some_and(|map| map >= scene.maps().len()) {
            let count = scene.maps().len();
            return Err(Refusal::bad(format!("there is no such map; there are {count}")));
        }
        let bytes = match form {
            Form::Svg => picture::svg(&scene, &caption, map).into_bytes(),
            Form::Png => picture::png(&picture::svg(&scene, &caption, map), 2.0)?,
            Form::Html => picture::page(&scene, &caption).into_bytes(),
        };
        let (ending, kind) = form.kind();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        Ok(Saved { bytes, name: format!("{}-{name}.{ending}", self.run.id), kind })
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
