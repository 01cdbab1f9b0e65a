//! The prediction alone, for other programs: JSON in, JSON out, described by `openapi.json`.

use crate::input::Asked;
use crate::limits::Limits;
use crate::refusal::{Refusal, bytes_response, json_response};
use crate::routes::json_body;
use crate::runs::OneRun;
use crate::worker::Worker;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use regard_tasks::Input;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A run whose model predicts.
pub(crate) struct Predictor {
    pub(crate) run: Arc<OneRun>,
    pub(crate) worker: Worker,
    pub(crate) limits: Limits,
}

const OPENAPI: &str = include_str!("openapi.json");

/// What is asked: one input, or several at once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    input: Option<One>,
    #[serde(default)]
    inputs: Option<Vec<One>>,
}

/// An input: a text alone, or any kind by its name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum One {
    Text(String),
    Asked(Asked),
}

impl Body {
    fn inputs(self) -> Result<Vec<Asked>, Refusal> {
        let all = match (self.input, self.inputs) {
            (Some(one), None) => vec![one],
            (None, Some(all)) => all,
            _ => {
                return Err(Refusal::bad(
                    "`input` is one input, `inputs` are several; one of them",
                ));
            }
        };
        let asked = |one| match one {
            One::Text(text) => Asked::Text { text },
            One::Asked(asked) => asked,
        };
        Ok(all.into_iter().map(asked).collect())
    }
}

/// Answers whatever is asked.
pub(crate) async fn serve(State(predictor): State<Arc<Predictor>>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let reads = matches!(method, Method::GET | Method::HEAD);
    let answer = match &path[..] {
        "/predict" if method == Method::POST => predictor.predict(request).await,
        "/health" if reads => predictor.health().await,
        "/openapi.json" | "/" if reads => Ok(bytes_response("application/json", OPENAPI)),
        "/predict" | "/health" | "/openapi.json" | "/" => {
            let what = "GET is for /health and /openapi.json, POST for /predict";
            Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what))
        }
        _ => Err(Refusal::not_found("there are /predict, /health and /openapi.json")),
    };
    answer.unwrap_or_else(Refusal::into_response)
}

impl Predictor {
    async fn health(&self) -> Result<Response, Refusal> {
        let run = self.run.clone();
        let work = move || {
            let asks = run.loaded()?.model.asks();
            Ok(json!({
                "status": "ok",
                "run": run.id,
                "task": run.run.task()?.name(),
                "parameters": run.run.parameters()?,
                "input": asks.form,
                "labels": asks.labels,
                "version": env!("CARGO_PKG_VERSION"),
            }))
        };
        Ok(json_response(&self.worker.run(None, work).await?))
    }

    async fn predict(&self, request: Request) -> Result<Response, Refusal> {
        let body: Body = json_body(request, &self.limits).await?;
        let asked = body.inputs()?;
        if asked.len() > self.limits.inputs {
            let (count, most) = (asked.len(), self.limits.inputs);
            return Err(Refusal::too_large(format!("{count} inputs; {most} are read at once")));
        }
        let (run, limits) = (self.run.clone(), self.limits);
        let work = move || -> Result<Value, Refusal> {
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
