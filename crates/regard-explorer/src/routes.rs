//! What is asked at which address of the explorer.

use crate::ask::{Question, Ready};
use crate::body::Room;
use crate::cache::Cache;
use crate::errors::Judgements;
use crate::events::{LISTENERS, Listener, events};
use crate::input::part;
use crate::limits::Limits;
use crate::page;
use crate::refusal::{Refusal, bytes_response, json_response};
use crate::runs::{OneRun, Runs};
use crate::save::Form;
use crate::studies::{Studies, Study};
use crate::versus::Contest;
use crate::worker::Worker;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use regard_data::files::wav_bytes;
use regard_picture::picture::image;
use regard_tasks::run::Snapshot;
use regard_tasks::task::Input;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// All that the explorer knows.
pub(crate) struct Explorer {
    pub(crate) runs: Runs,
    pub(crate) worker: Worker,
    pub(crate) cache: Cache,
    pub(crate) judgements: Judgements,
    pub(crate) studies: Studies,
    pub(crate) limits: Limits,
    pub(crate) room: Room,
    /// When the server began: a page that sees another moment has another server before it.
    pub(crate) started: Instant,
    pub(crate) listeners: Arc<AtomicUsize>,
    /// Files of the page are read from here, where somebody works on them.
    pub(crate) page: Option<PathBuf>,
}

/// What is said beside all weights.
const NOTE: &str = "Attention weights say what was read, not why it was answered so.";

/// Answers whatever is asked.
pub(crate) async fn explore(State(explorer): State<Arc<Explorer>>, request: Request) -> Response {
    let answer = if *request.method() == Method::POST {
        explorer.post(request).await
    } else if matches!(*request.method(), Method::GET | Method::HEAD) {
        let last = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
        let (uri, last) = (request.uri().clone(), last.map(str::to_string));
        explorer.get(&uri, last.as_deref()).await
    } else {
        Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "GET and POST are answered"))
    };
    answer.unwrap_or_else(Refusal::into_response)
}

impl Explorer {
    async fn get(self: &Arc<Self>, uri: &Uri, last: Option<&str>) -> Result<Response, Refusal> {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        if path == "/health" {
            return Ok(json_response(&self.health()));
        }
        let Some(rest) = path.strip_prefix("/api/") else {
            let (kind, bytes) = page::file(path, self.page.as_deref())?;
            return Ok(bytes_response(kind, bytes.into_owned()));
        };
        match &rest.split('/').collect::<Vec<_>>()[..] {
            ["state"] => self.state().await,
            ["runs", id] => {
                let run = self.runs.get(id)?.clone();
                Ok(json_response(&self.worker.run(None, move || Ok(run.describe())).await?))
            }
            ["runs", id, "events"] => self.events(id, query, last),
            ["runs", id, "snapshots"] => {
                let run = self.runs.get(id)?;
                Ok(json_response(&json!({ "epochs": Snapshot::epochs(&run.run) })))
            }
            ["runs", id, "snapshots", epoch] => {
                let run = self.runs.get(id)?.clone();
                snapshot(&run, epoch).map(|value| json_response(&value))
            }
            ["runs", id, "parts", part] => {
                let known = self.judgements.known(self.runs.get(id)?, part, query)?;
                known.map(judged).ok_or_else(|| {
                    let what =
                        "this part is not computed yet; a POST to the same address begins it";
                    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what)
                })
            }
            ["runs", id, study @ ("ablation" | "heads"), part] => {
                self.studies.known(self.runs.get(id)?, study_named(study), part).map(judged)
            }
            ["runs", id, "sound", part, file] => self.sound(id, part, file).await,
            ["runs", id, "picture", part, file] => self.picture(id, part, file).await,
            ["ask" | "saliency" | "beam" | "save" | "matters" | "versus"] => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is asked by POST, with the question as JSON",
            )),
            _ => Err(Refusal::not_found("nothing is answered here")),
        }
    }

    async fn post(self: &Arc<Self>, request: Request) -> Result<Response, Refusal> {
        let path = request.uri().path().to_string();
        if let ["", "api", "runs", id, "parts", part] = path.split('/').collect::<Vec<_>>()[..] {
            let query = request.uri().query().unwrap_or_default();
            return self.part(id, part, query).await;
        }
        if let ["", "api", "runs", id, study @ ("ablation" | "heads"), part] =
            path.split('/').collect::<Vec<_>>()[..]
        {
            let (own, run) = (self.clone(), self.runs.get(id)?.clone());
            let (study, part) = (study_named(study), part.to_string());
            let answer = move || own.studies.answer(&run, study, &part);
            return Ok(judged(self.worker.run(None, answer).await?));
        }
        type Answer = fn(&Ready) -> Result<Value, Refusal>;
        let (kind, answer): (&'static str, Answer) = match &path[..] {
            "/api/ask" => ("ask", Ready::answer),
            "/api/saliency" => ("saliency", Ready::saliency),
            "/api/beam" => ("beam", Ready::search_tree),
            "/api/save" => return self.save(request).await,
            "/api/versus" => return self.versus(request).await,
            "/api/matters" => {
                let (question, held) =
                    self.room.json_body::<Question>(request, &self.limits).await?;
                let found = question.find(&self.runs, self.limits)?;
                let bytes = self.matters(found, held).await?;
                return Ok(bytes_response("application/json", bytes.to_vec()));
            }
            _ => return Err(Refusal::not_found("nothing is answered here")),
        };
        let (question, held) = self.room.json_body::<Question>(request, &self.limits).await?;
        let mut found = question.find(&self.runs, self.limits)?;
        // Each method has an answer of its own; a newer question overtakes that of another.
        let kept = match (kind, found.method) {
            ("saliency", Some(method)) => method.name(),
            _ => kind,
        };
        let (own, mut view) = (self.clone(), found.view.take());
        // A view asks several kinds of questions; none overtakes another kind.
        if let Some(view) = &mut view {
            view.name = format!("{kind} {}", view.name);
        }
        let work = move || {
            let _held = held;
            found.ready()?.cached(kept, &own.cache, answer)
        };
        let bytes = self.worker.run(view, work).await?;
        Ok(bytes_response("application/json", bytes.to_vec()))
    }

    async fn save(self: &Arc<Self>, request: Request) -> Result<Response, Refusal> {
        let (question, held) = self.room.json_body::<Question>(request, &self.limits).await?;
        let form = Form::named(question.form.as_deref())?;
        let (scene, map) = (question.scene, question.map);
        let found = question.find(&self.runs, self.limits)?;
        let work = move || {
            let _held = held;
            found.ready()?.drawable(scene, map)
        };
        let drawable = self.worker.run(None, work).await?;
        // Not where the model is asked: others would wait for the drawing.
        let drawn = tokio::task::spawn_blocking(move || drawable.saved(form)).await;
        let broken = "this question broke something in the program; others are still answered";
        let broken = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, broken);
        Ok(drawn.map_err(broken)??.response())
    }

    /// The examples of a part by what went wrong, or how far they are; begins their computation.
    async fn part(
        self: &Arc<Self>,
        id: &str,
        part: &str,
        query: &str,
    ) -> Result<Response, Refusal> {
        let (own, run) = (self.clone(), self.runs.get(id)?.clone());
        let (part, query) = (part.to_string(), query.to_string());
        let answer = move || own.judgements.answer(&run, &part, &query);
        Ok(judged(self.worker.run(None, answer).await?))
    }

    /// Which of two models is right for which example of a part, or how far that is; begins it.
    async fn versus(self: &Arc<Self>, request: Request) -> Result<Response, Refusal> {
        let (contest, held) = self.room.json_body::<Contest>(request, &self.limits).await?;
        let own = self.clone();
        let work = move || {
            let _held = held;
            contest.answer(&own.runs, &own.judgements)
        };
        Ok(judged(self.worker.run(None, work).await?))
    }

    /// That the server lives; nothing is waited for.
    fn health(&self) -> Value {
        json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "seconds": self.started.elapsed().as_secs_f64(),
        })
    }

    /// The runs as their folders tell of them: no model is loaded, and no computation waited for.
    async fn state(self: &Arc<Self>) -> Result<Response, Refusal> {
        let own = self.clone();
        let read = move || {
            let runs: Vec<Value> = own.runs.all().iter().map(|run| run.outline()).collect();
            json!({
                "version": env!("CARGO_PKG_VERSION"),
                "limits": own.limits,
                "note": NOTE,
                "runs": runs,
            })
        };
        let read = tokio::task::spawn_blocking(read).await;
        let broken = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the runs cannot be read");
        Ok(json_response(&read.map_err(broken)?))
    }

    fn events(&self, id: &str, query: &str, last: Option<&str>) -> Result<Response, Refusal> {
        let run = self.runs.get(id)?.clone();
        let after = form_urlencoded::parse(query.as_bytes());
        let after = after.into_iter().find(|(name, _)| name == "after").map(|(_, value)| value);
        let after = match (last, after) {
            (Some(last), _) => last.trim().parse::<usize>().ok(),
            (None, Some(after)) => after.parse::<usize>().ok(),
            (None, None) => Some(0),
        };
        let after = after.ok_or_else(|| Refusal::bad("`after` is how many records are known"))?;
        let listener = Listener::new(&self.listeners).ok_or_else(|| {
            let what = format!("{LISTENERS} pages listen already");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, what)
        })?;
        Ok(events(run, after, listener))
    }

    /// The sound of an example as a WAV file.
    async fn sound(&self, id: &str, name: &str, file: &str) -> Result<Response, Refusal> {
        let run = self.runs.get(id)?.clone();
        let part = part(name)?;
        let index = index_in(file, ".wav");
        let index = index.ok_or_else(|| Refusal::not_found("a sound is called 17.wav"))?;
        let work = move || {
            let sound = run.loaded()?.model.abilities().sound(&Input::example(part, index))?;
            let sound = sound.ok_or_else(|| Refusal::not_found("this example has no sound"))?;
            Ok(wav_bytes(&sound)?)
        };
        Ok(bytes_response("audio/wav", self.worker.run(None, work).await?))
    }

    /// The picture of an example as a PNG file.
    async fn picture(&self, id: &str, name: &str, file: &str) -> Result<Response, Refusal> {
        let run = self.runs.get(id)?.clone();
        let part = part(name)?;
        let index = index_in(file, ".png");
        let index = index.ok_or_else(|| Refusal::not_found("a picture is called 17.png"))?;
        let work = move || {
            let seen = run.loaded()?.model.abilities().picture(&Input::example(part, index))?;
            let seen = seen.ok_or_else(|| Refusal::not_found("this example is no picture"))?;
            Ok(image(&seen)?)
        };
        Ok(bytes_response("image/png", self.worker.run(None, work).await?))
    }
}

/// The number of an example in a file's name, such as `17.wav`.
fn index_in(file: &str, ending: &str) -> Option<usize> {
    file.strip_suffix(ending)?.parse().ok()
}

fn study_named(name: &str) -> Study {
    if name == "ablation" { Study::Ablation } else { Study::Profile }
}

/// What is known of a part, or how far it is.
fn judged(known: Result<Value, Value>) -> Response {
    match known {
        Ok(value) => json_response(&value),
        Err(progress) => (StatusCode::ACCEPTED, json_response(&progress)).into_response(),
    }
}

fn snapshot(run: &OneRun, epoch: &str) -> Result<Value, Refusal> {
    let missing = || Refusal::not_found("no scenes were kept of that epoch");
    let epoch: usize = epoch.parse().map_err(|_| missing())?;
    if !Snapshot::epochs(&run.run).contains(&epoch) {
        return Err(missing());
    }
    Ok(json!(Snapshot::read(&run.run, epoch)?))
}
