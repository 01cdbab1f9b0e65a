//! The prediction alone, for other programs: JSON in, JSON out, described by `openapi.json`.

use crate::body::Room;
use crate::input::Asked;
use crate::limits::Limits;
use crate::refusal::{Refusal, bytes_response, json_response};
use crate::runs::{Loaded, OneRun};
use crate::worker::Worker;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use regard_tasks::Error;
use regard_tasks::task::Input;
use serde_json::{Value, json};
use std::sync::Arc;

/// A run whose model predicts.
pub(crate) struct Predictor {
    pub(crate) run: Arc<OneRun>,
    pub(crate) worker: Worker,
    pub(crate) limits: Limits,
    pub(crate) room: Room,
    /// What is said of the model to who asks whether the server lives.
    pub(crate) health: Value,
}

const OPENAPI: &str = include_str!("openapi.json");

/// What is asked: one input, or several at once.
fn inputs(body: Value) -> Result<Vec<Asked>, Refusal> {
    let what = "`input` is one input, `inputs` are several; one of them";
    let Value::Object(mut body) = body else { return Err(Refusal::bad(what)) };
    let (single, several) = (body.remove("input"), body.remove("inputs"));
    if let Some(name) = body.keys().next() {
        return Err(Refusal::bad(format!("there is no `{name}` to ask with: {what}")));
    }
    match (single, several) {
        (Some(input), None) => Ok(vec![one("input", input)?]),
        (None, Some(Value::Array(all))) => {
            let each = all.into_iter().enumerate();
            each.map(|(at, input)| one(&format!("inputs[{at}]"), input)).collect()
        }
        (None, Some(other)) => Err(Refusal::bad(format!("inputs is {}, not a list", kind(&other)))),
        _ => Err(Refusal::bad(what)),
    }
}

/// What a value is, in a word.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// An input: a text alone, or any kind by its name. Refuses an empty text, of which nothing is
/// predicted.
fn one(place: &str, input: Value) -> Result<Asked, Refusal> {
    let asked = match input {
        Value::String(text) => Asked::Text { text },
        Value::Object(_) => serde_json::from_value(input)
            .map_err(|error| Refusal::bad(format!("{place}: {error}")))?,
        other => {
            let what = kind(&other);
            return Err(Refusal::bad(format!(
                "{place} is {what}; it is a text, or an object such as {{\"kind\": \"example\", \
                 \"part\": \"test\", \"index\": 0}}"
            )));
        }
    };
    match &asked {
        Asked::Text { text } if text.trim().is_empty() => {
            Err(Refusal::bad(format!("{place} is empty")))
        }
        _ => Ok(asked),
    }
}

/// Answers whatever is asked.
pub(crate) async fn serve(State(predictor): State<Arc<Predictor>>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let reads = matches!(method, Method::GET | Method::HEAD);
    let answer = match &path[..] {
        "/predict" if method == Method::POST => predictor.predict(request).await,
        "/health" if reads => Ok(json_response(&predictor.health)),
        "/openapi.json" | "/" if reads => Ok(bytes_response("application/json", OPENAPI)),
        "/predict" | "/health" | "/openapi.json" | "/" => {
            let what = "GET is for /health and /openapi.json, POST for /predict";
            Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what))
        }
        _ => Err(Refusal::not_found("there are /predict, /health and /openapi.json")),
    };
    answer.unwrap_or_else(Refusal::into_response)
}

/// What is said of a model to who asks whether the server lives.
pub(crate) fn health(run: &OneRun, loaded: &Loaded) -> Result<Value, Error> {
    let asks = loaded.model.asks();
    Ok(json!({
        "status": "ok",
        "run": run.id,
        "task": run.run.task()?.name(),
        "parameters": run.run.parameters()?,
        "input": asks.form,
        "labels": asks.labels,
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

impl Predictor {
    async fn predict(&self, request: Request) -> Result<Response, Refusal> {
        let (body, held) = self.room.json_body::<Value>(request, &self.limits).await?;
        let asked = inputs(body)?;
        if asked.len() > self.limits.inputs {
            let (count, most) = (asked.len(), self.limits.inputs);
            return Err(Refusal::too_large(format!("{count} inputs; {most} are read at once")));
        }
        let (run, limits) = (self.run.clone(), self.limits);
        let work = move || -> Result<Value, Refusal> {
            let _held = held;
            let model = run.loaded()?.model;
            let form = model.asks().form;
            let one = |(at, asked): (usize, Asked)| {
                let input = asked.input(form).and_then(|input| {
                    limits.check(&input, form)?;
                    Ok(input)
                });
                input.map_err(|refusal| Refusal {
                    what: format!("inputs[{at}]: {}", refusal.what),
                    ..refusal
                })
            };
            let inputs = asked.into_iter().enumerate().map(one);
            let inputs = inputs.collect::<Result<Vec<Input>, Refusal>>()?;
            let predictions = match inputs.is_empty() {
                true => Vec::new(),
                false => model.predict(&inputs)?,
            };
            Ok(json!({ "predictions": predictions }))
        };
        Ok(json_response(&self.worker.run(None, work).await?))
    }
}
