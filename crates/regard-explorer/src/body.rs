//! The body of a request: as long as it arrives in time, and together with the others fits into memory.

use crate::limits::Limits;
use crate::refusal::Refusal;
use axum::extract::Request;
use axum::http::StatusCode;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of all requests that have arrived and are not answered yet.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// The room that a request takes until it is answered; whoever computes holds it.
pub(crate) struct Held(
    #[allow(dead_code, reason = "dropped, it makes room")] Option<OwnedSemaphorePermit>,
);

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let count = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.0.clone().try_acquire_many_owned(count).map_err(|_| {
            let what = "too many large requests wait already; ask again later";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, what)
        })
    }

    /// A request's body. Refuses one that is too large, that does not arrive in time, or that finds
    /// no room beside the others.
    pub(crate) async fn body(
        &self,
        request: Request,
        limits: &Limits,
    ) -> Result<(Vec<u8>, Held), Refusal> {
        let arrived = tokio::time::timeout(limits.arrival, self.bytes(request, limits.body));
        arrived.await.map_err(|_| {
            let seconds = limits.arrival.as_secs_f64();
            let what = format!("the request did not arrive within {seconds} seconds");
            Refusal::new(StatusCode::REQUEST_TIMEOUT, what)
        })?
    }

    /// What a request's body says as JSON. Refuses what [`Room::body`] refuses.
    pub(crate) async fn json_body<T: DeserializeOwned>(
        &self,
        request: Request,
        limits: &Limits,
    ) -> Result<(T, Held), Refusal> {
        let (bytes, held) = self.body(request, limits).await?;
        let read = serde_json::from_slice(&bytes);
        let read = read.map_err(|error: serde_json::Error| {
            Refusal::bad(match error.classify() {
                Category::Data => format!("the request: {error}"),
                _ if bytes.is_empty() => "the request is empty; a question is JSON".into(),
                Category::Eof => "the request is not JSON: it ends too early".into(),
                _ => {
                    let (line, column) = (error.line(), error.column());
                    format!("the request is not JSON: line {line}, column {column} cannot be read")
                }
            })
        })?;
        Ok((read, held))
    }

    async fn bytes(&self, request: Request, most: usize) -> Result<(Vec<u8>, Held), Refusal> {
        let mut parts = request.into_body().into_data_stream();
        let (mut bytes, mut held) = (Vec::new(), Held(None));
        while let Some(part) = parts.next().await {
            let part = part.map_err(|_| Refusal::bad("the request broke off"))?;
            if bytes.len() + part.len() > most {
                return Err(Refusal::too_large(format!("the request is larger than {most} bytes")));
            }
            let more = self.take(part.len())?;
            match &mut held.0 {
                Some(permit) => permit.merge(more),
                None => held.0 = Some(more),
            }
            bytes.extend_from_slice(&part);
        }
        Ok((bytes, held))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use axum::body::Body;

    #[test]
    fn requests_that_do_not_fit_together_are_refused_until_one_is_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (room, limits) = (Room::new(100), Limits::default());
        let ask = |text: &str| {
            let request = Request::new(Body::from(format!("{text:?}")));
            runtime.block_on(room.json_body::<String>(request, &limits))
        };
        let (text, first) = ask(&"a".repeat(60)).unwrap();
        assert_eq!(text.len(), 60);
        let refused = ask(&"b".repeat(60)).err().unwrap();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(ask(&"b".repeat(60)).is_ok());
    }
}
