//! The prediction alone, for other programs: JSON or a form in, JSON out, described by `openapi.json`.

use crate::body::{Held, Room};
use crate::form::{self, Form};
use crate::input::Asked;
use crate::limits::Limits;
use crate::refusal::{Refusal, bytes_response, json_response};
use crate::runs::{Loaded, OneRun};
use crate::worker::Worker;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use regard::attention::Intervention;
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

/// What is asked of the model.
struct Question {
    /// One input, or several at once, each with its place in the request.
    inputs: Vec<(String, Asked)>,
    /// The width of the beam, where it is not the run's own.
    beam: Option<usize>,
    /// What the attention's scores are divided by.
    temperature: Option<f64>,
}

impl Question {
    fn new(body: Value) -> Result<Self, Refusal> {
        let what = "a request is an object with `input`, which is one input, or `inputs`, a list of \
                    them";
        let Value::Object(mut body) = body else {
            return Err(Refusal::bad(format!("the request is {}; {what}", kind(&body))));
        };
        let (single, several) = (body.remove("input"), body.remove("inputs"));
        let [beam, temperature] = ["beam", "temperature"].map(|name| body.remove(name));
        let (beam, temperature) = (beam.unwrap_or_default(), temperature.unwrap_or_default());
        if let Some(name) = body.keys().next() {
            return Err(Refusal::bad(format!(
                "there is no `{name}` to ask with; there are `input`, `inputs`, `beam` and \
                 `temperature`"
            )));
        }
        let inputs = match (single, several) {
            (Some(input), None) => vec![one("input".into(), input)?],
            (None, Some(Value::Array(all))) => {
                let each = all.into_iter().enumerate();
                let each = each.map(|(at, input)| one(format!("inputs[{at}]"), input));
                each.collect::<Result<_, _>>()?
            }
            (None, Some(other)) => {
                return Err(Refusal::bad(format!("`inputs` is {}, not a list", kind(&other))));
            }
            (None, None) => return Err(Refusal::bad(format!("nothing is asked; {what}"))),
            (Some(_), Some(_)) => {
                let what = "`input` and `inputs` are both given; give one of them";
                return Err(Refusal::bad(what));
            }
        };
        Self::checked(inputs, &beam, &temperature)
    }

    /// A question of a form. Refuses one without an input.
    fn of_form(Form { inputs, beam, temperature }: Form) -> Result<Self, Refusal> {
        let place = |at: usize| match inputs.len() {
            1 => "input".to_owned(),
            _ => format!("inputs[{at}]"),
        };
        let places: Vec<String> = (0..inputs.len()).map(place).collect();
        if inputs.is_empty() {
            return Err(Refusal::bad("nothing is asked; a form has a field `input`"));
        }
        let inputs = places.into_iter().zip(inputs).map(|(place, asked)| filled(place, asked));
        Self::checked(inputs.collect::<Result<_, _>>()?, &beam, &temperature)
    }

    fn checked(
        inputs: Vec<(String, Asked)>,
        beam: &Value,
        temperature: &Value,
    ) -> Result<Self, Refusal> {
        let whole = |beam: &Value| beam.as_u64().and_then(|beam| usize::try_from(beam).ok());
        if !beam.is_null() && whole(beam).is_none_or(|beam| !(1..=MAX_BEAM).contains(&beam)) {
            let what =
                format!("`beam` cannot be {beam}; it is a whole number from 1 to {MAX_BEAM}");
            return Err(Refusal::bad(what));
        }
        if !temperature.is_null() && temperature.as_f64().is_none_or(|t| t <= 0.0) {
            let what = format!("`temperature` cannot be {temperature}; it is a number above 0");
            return Err(Refusal::bad(what));
        }
        Ok(Self { inputs, beam: whole(beam), temperature: temperature.as_f64() })
    }

    /// What is changed of the attention while it is answered.
    fn change(&self) -> Result<Intervention, Refusal> {
        let change = Intervention { temperature: self.temperature, ..Intervention::default() };
        change.check().map_err(|error| Refusal::bad(format!("`temperature`: {error}")))?;
        Ok(change)
    }
}

/// The widest beam that strangers may ask for.
const MAX_BEAM: usize = 100;

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

/// An input: a text alone, or any kind by its name.
fn one(place: String, input: Value) -> Result<(String, Asked), Refusal> {
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
    filled(place, asked)
}

/// Refuses an empty text, of which nothing is predicted.
fn filled(place: String, asked: Asked) -> Result<(String, Asked), Refusal> {
    match &asked {
        Asked::Text { text } if text.trim().is_empty() => {
            Err(Refusal::bad(format!("{place} is empty")))
        }
        _ => Ok((place, asked)),
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
    async fn question(&self, request: Request) -> Result<(Question, Held), Refusal> {
        match form::boundary(request.headers()) {
            Some(boundary) => {
                let boundary = boundary?;
                let (body, held) = self.room.body(request, &self.limits).await?;
                Ok((Question::of_form(Form::read(body, boundary).await?)?, held))
            }
            None => {
                let (body, held) = self.room.json_body(request, &self.limits).await?;
                Ok((Question::new(body)?, held))
            }
        }
    }

    async fn predict(&self, request: Request) -> Result<Response, Refusal> {
        let (question, held) = self.question(request).await?;
        let change = question.change()?;
        let Question { inputs: asked, beam, .. } = question;
        if asked.len() > self.limits.inputs {
            let (count, most) = (asked.len(), self.limits.inputs);
            return Err(Refusal::too_large(format!("{count} inputs; {most} are read at once")));
        }
        let (run, limits) = (self.run.clone(), self.limits);
        let work = move || -> Result<Value, Refusal> {
            let _held = held;
            let model = run.loaded()?.model;
            let form = model.asks().form;
            let one = |(place, asked): (String, Asked)| {
                let input = asked.input(form).and_then(|input| {
                    limits.check(&input, form)?;
                    Ok(input)
                });
                input.map_err(|refusal| Refusal {
                    what: format!("{place}: {}", refusal.what),
                    ..refusal
                })
            };
            let inputs = asked.into_iter().map(one);
            let inputs = inputs.collect::<Result<Vec<Input>, Refusal>>()?;
            let predictions = change.during(|| match (inputs.is_empty(), beam) {
                (true, _) => Ok(Vec::new()),
                (false, None) => model.predict(&inputs),
                (false, Some(beam)) => model.abilities().predict_with_beam(&inputs, beam),
            })?;
            Ok(json!({ "predictions": predictions }))
        };
        Ok(json_response(&self.worker.run(None, work).await?))
    }
}
