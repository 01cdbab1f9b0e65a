//! A question as a form, `multipart/form-data`: files as they are, without base64.

use crate::input::Asked;
use crate::refusal::Refusal;
use axum::http::{HeaderMap, header};
use futures_util::stream;
use serde_json::Value;
use std::convert::Infallible;

/// The fields of a form that are known.
#[derive(Default)]
pub(crate) struct Form {
    /// Every field `input`, in order: a file, or a text.
    pub(crate) inputs: Vec<Asked>,
    pub(crate) beam: Value,
    pub(crate) temperature: Value,
}

/// What stands between the parts, where a request is a form.
pub(crate) fn boundary(headers: &HeaderMap) -> Option<Result<String, Refusal>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let name = kind.split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case("multipart/form-data").then(|| {
        multer::parse_boundary(kind)
            .map_err(|_| Refusal::bad("the form's `Content-Type` names no boundary"))
    })
}

impl Form {
    /// The fields of a body. Refuses what is no form, a field that is not known, one of the options
    /// twice, and a text that is not UTF-8.
    pub(crate) async fn read(body: Vec<u8>, boundary: String) -> Result<Self, Refusal> {
        let broken = |error: multer::Error| {
            let what = match error {
                multer::Error::IncompleteStream
                | multer::Error::IncompleteFieldData { .. }
                | multer::Error::IncompleteHeaders => "it ends too early".into(),
                error => error.to_string(),
            };
            Refusal::bad(format!("the request is not a form: {what}"))
        };
        let body = stream::once(async { Ok::<_, Infallible>(body) });
        let mut parts = multer::Multipart::new(body, boundary);
        let mut form = Self::default();
        while let Some(part) = parts.next_field().await.map_err(broken)? {
            let name = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned);
            let bytes = part.bytes().await.map_err(broken)?;
            if let (Some(file), "input") = (&file, &name[..]) {
                let name = file.clone();
                form.inputs.push(Asked::File { name, bytes: bytes.into() });
                continue;
            }
            let text = String::from_utf8(bytes.into())
                .map_err(|_| Refusal::bad(format!("`{name}`: these bytes are not UTF-8")))?;
            let option = match &name[..] {
                "input" => {
                    form.inputs.push(Asked::Text { text });
                    continue;
                }
                "beam" => &mut form.beam,
                "temperature" => &mut form.temperature,
                _ => {
                    return Err(Refusal::bad(format!(
                        "there is no field `{name}` in a form; there are `input`, which may come \
                         several times, `beam` and `temperature`"
                    )));
                }
            };
            if !option.is_null() {
                return Err(Refusal::bad(format!("`{name}` is given twice")));
            }
            *option = serde_json::from_str(&text).unwrap_or(Value::String(text));
        }
        Ok(form)
    }
}
