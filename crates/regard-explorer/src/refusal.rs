//! Why there is no answer: a status and one sentence.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use regard_tasks::Error;
use serde_json::{Value, json};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) what: String,
    /// Whether a newer question of the same view came in between.
    pub(crate) overtaken: bool,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, what: what.into(), overtaken: false }
    }

    /// What was asked for makes no sense.
    pub(crate) fn bad(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    pub(crate) fn too_large(what: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    }

    pub(crate) fn overtaken() -> Self {
        let what = "a newer question of this view came in between";
        Self { overtaken: true, ..Self::new(StatusCode::CONFLICT, what) }
    }
}

impl From<Error> for Refusal {
    /// What a model refuses can be read and is wrong all the same.
    fn from(error: Error) -> Self {
        match error {
            Error::Stopped => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "it took too long, or nobody waited for it any more",
            ),
            error => Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.what });
        if self.overtaken {
            body["overtaken"] = true.into();
        }
        let mut response = json_response(&body);
        *response.status_mut() = self.status;
        response
    }
}

/// A value as a response.
pub(crate) fn json_response(value: &Value) -> Response {
    bytes_response("application/json", value.to_string().into_bytes())
}

pub(crate) fn bytes_response(kind: &'static str, bytes: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], bytes.into()).into_response()
}
