//! The prediction alone, for other programs.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;

use client::{TRANSLATE, get, post, trained};
use regard_explorer::{Server, Setup};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

fn served(folder: &TempDir) -> Server {
    let run = trained(folder.path(), "words", "translate", &TRANSLATE);
    Server::serve(&Setup { runs: vec![run], port: Some(0), ..Setup::default() }).unwrap()
}

#[test]
fn one_input_and_several_are_predicted_as_the_document_says() {
    let folder = TempDir::new().unwrap();
    let server = served(&folder);
    let health = get(&server, "/health").json();
    assert_eq!((&health["status"], &health["task"]), (&json!("ok"), &json!("translate")));
    let one = post(&server, "/predict", &json!({ "input": "I see a bird" })).json();
    let example = json!({ "kind": "example", "part": "test", "index": 3 });
    let several = post(&server, "/predict", &json!({ "inputs": ["I see a bird", example] })).json();
    assert_eq!(several["predictions"].as_array().unwrap().len(), 2);
    assert_eq!(one["predictions"][0]["output"], several["predictions"][0]["output"]);
    assert!(several["predictions"][1]["details"]["score"].is_number());

    let document: Value = get(&server, "/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let status = match &method[..] {
                "get" => get(&server, path).status,
                _ => post(&server, path, &json!({ "input": "a" })).status,
            };
            assert_eq!(status, 200, "{method} {path}");
        }
    }
    // Every example of the document is answered.
    let examples = &document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
        ["examples"];
    for example in examples.as_object().unwrap().values() {
        assert_eq!(post(&server, "/predict", &example["value"]).status, 200);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = TempDir::new().unwrap();
    let server = served(&folder);
    let beyond = json!({ "kind": "node", "node": 3 });
    let answer = post(&server, "/predict", &json!({ "inputs": ["a", beyond] }));
    assert_eq!(answer.status, 400);
    assert_eq!(answer.error(), "inputs[1]: this model does not read nodes");
    assert_eq!(post(&server, "/predict", &json!({})).status, 400);
    assert_eq!(post(&server, "/predict", &json!({ "input": "a", "inputs": [] })).status, 400);
    assert_eq!(post(&server, "/predict", &json!({ "inputs": vec!["a"; 257] })).status, 413);
    assert_eq!(
        post(&server, "/predict", &json!({ "inputs": [] })).json(),
        json!({ "predictions": [] })
    );
    assert_eq!(get(&server, "/predict").status, 405);
    assert_eq!(get(&server, "/api/state").status, 404);
    let none = Setup { runs: vec![folder.path().join("nothing")], ..Setup::default() };
    assert!(Server::serve(&none).err().unwrap().to_string().contains("nothing"));
}

/// How long many ask at once; `REGARD_LOAD_SECONDS=60` for a whole minute.
fn seconds() -> u64 {
    std::env::var("REGARD_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn of_sixty_four_who_ask_at_once_none_is_lost() {
    let folder = TempDir::new().unwrap();
    let server = &served(&folder);
    let expected = post(server, "/predict", &json!({ "input": "I see a bird" })).json();
    let (asked, answered) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds());
    std::thread::scope(|scope| {
        for _ in 0..64 {
            let expected = &expected;
            scope.spawn(move || {
                while std::time::Instant::now() < end {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let answer = post(server, "/predict", &json!({ "input": "I see a bird" }));
                    if answer.status == 200 && answer.json() == *expected {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (asked, answered) = (asked.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
    assert!(asked >= 64);
    assert_eq!(asked, answered);
    println!("{asked} asked, {answered} answered");
}
