//! The prediction alone, for other programs.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;

use client::{Answer, TRANSLATE, get, post, post_with, send, trained};
use regard_explorer::{Server, Setup};
use regard_picture::scene::base64;
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

#[test]
fn beam_and_temperature_are_chosen_for_a_request_alone() {
    let folder = TempDir::new().unwrap();
    let server = served(&folder);
    let ask = |body: Value| {
        let answer = post(&server, "/predict", &body);
        assert_eq!(answer.status, 200, "{}", answer.error());
        answer.json()["predictions"][0]["details"]["log_probability"].as_f64().unwrap()
    };
    let input = "I see a bird";
    let own = ask(json!({ "input": input }));
    let wide = ask(json!({ "input": input, "beam": 20 }));
    let one = ask(json!({ "input": input, "beam": 1 }));
    assert_eq!(ask(json!({ "input": input, "beam": 3 })), own, "the run's own beam is 3");
    assert!(one != wide, "a model of one epoch finds others with another beam");
    assert_ne!(ask(json!({ "input": input, "temperature": 0.1 })), own);
    assert_eq!(ask(json!({ "input": input, "temperature": 1.0 })), own);
    assert_eq!(ask(json!({ "input": input })), own, "nothing stays changed");
    let mut refused = 0;
    for (name, values) in [
        ("beam", [json!(0), json!(101), json!(-1), json!(1.5), json!("4")]),
        ("temperature", [json!(0), json!(-1), json!("1"), json!([1]), json!(true)]),
    ] {
        for value in values {
            let answer = post(&server, "/predict", &json!({ "input": input, name: value }));
            assert_eq!(answer.status, 400, "{name} {value}");
            assert!(answer.error().contains(&format!("`{name}` cannot be {value}")));
            refused += 1;
        }
    }
    assert_eq!(refused, 10);
    let run = trained(folder.path(), "club", "graph", &["epochs=2"]);
    let setup = Setup { runs: vec![run], port: Some(0), ..Setup::default() };
    let graph = Server::serve(&setup).unwrap();
    let answer = post(&graph, "/predict", &json!({ "input": "3", "beam": 4 }));
    assert_eq!(answer.status, 422);
    assert!(answer.error().contains("writes no text"), "{}", answer.error());
}

#[test]
fn what_is_wrong_with_a_request_is_said_in_plain_words() {
    let folder = TempDir::new().unwrap();
    let server = served(&folder);
    let json = "Content-Type: application/json\r\n";
    for (body, said) in [
        ("", "the request is empty; a question is JSON"),
        ("{\"input\": \"a\"", "the request is not JSON: it ends too early"),
        ("input=a", "the request is not JSON: line 1, column 1 cannot be read"),
        ("[1]", "the request is a list; a request is an object with `input`"),
        ("{}", "nothing is asked; a request is an object with `input`"),
        ("{\"input\": \"a\", \"inputs\": []}", "`input` and `inputs` are both given"),
        ("{\"inputs\": \"a\"}", "`inputs` is a text, not a list"),
        ("{\"input\": 3}", "input is a number; it is a text, or an object such as"),
        ("{\"input\": \" \"}", "input is empty"),
        ("{\"input\": \"a\", \"beams\": 3}", "there is no `beams` to ask with; there are `input`"),
        ("{\"input\": {\"kind\": \"node\", \"node\": 1}}", "input: this model does not read nodes"),
    ] {
        let answer = post_with(&server, "/predict", json, body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with(said), "{body}: {}", answer.error());
    }
    let long = json!({ "input": "a ".repeat(1001) });
    assert_eq!(post(&server, "/predict", &long).status, 413);
    let run = trained(folder.path(), "shapes", "image", &["size=60", "epochs=1"]);
    let setup = Setup { runs: vec![run], port: Some(0), ..Setup::default() };
    let pictures = Server::serve(&setup).unwrap();
    let answer = post(&pictures, "/predict", &json!({ "input": "a.png" }));
    assert!(answer.error().contains("\"kind\": \"bytes\""), "{}", answer.error());
}

/// A form of these fields, name, name of the file and content, sent as it would be by `curl -F`.
fn post_form(server: &Server, fields: &[(&str, Option<&str>, &[u8])]) -> Answer {
    let mut body = Vec::new();
    for (name, file, content) in fields {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        let head =
            format!("--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--XyZ--\r\n");
    post_bytes(server, "multipart/form-data; boundary=XyZ", &body)
}

fn post_bytes(server: &Server, kind: &str, body: &[u8]) -> Answer {
    let (host, length) = (server.address(), body.len());
    let head = format!(
        "POST /predict HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    send(server.address(), &[head.as_bytes(), body].concat())
}

#[test]
fn files_are_asked_as_a_form_and_answered_as_by_base64() {
    let folder = TempDir::new().unwrap();
    let serve = |name: &str, task: &str, settings: &[&str]| {
        let run = trained(folder.path(), name, task, settings);
        Server::serve(&Setup { runs: vec![run], port: Some(0), ..Setup::default() }).unwrap()
    };
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bytes = |name: &str| std::fs::read(fixtures.join(name)).unwrap();
    let tones = serve("tones", "classify", &["kind=audio", "size=40", "epochs=1"]);
    let mut asked = 0;
    for name in ["tone.flac", "tone.mp3", "mono.mp3", "tone.ogg"] {
        let sound = bytes(&format!("fixtures/sound/{name}"));
        let form = post_form(&tones, &[("input", Some(name), &sound)]);
        assert_eq!(form.status, 200, "{}", form.error());
        let input = json!({ "kind": "bytes", "name": name, "base64": base64(&sound) });
        assert_eq!(form.json(), post(&tones, "/predict", &json!({ "input": input })).json());
        asked += 1;
    }
    assert_eq!(asked, 4);
    let sound = bytes("fixtures/sound/tone.ogg");
    let two = post_form(&tones, &[("input", Some("a"), &sound), ("input", Some("b"), &sound)]);
    let two = two.json();
    assert_eq!(two["predictions"].as_array().unwrap().len(), 2);
    assert_eq!(two["predictions"][0]["output"], two["predictions"][1]["output"]);

    // What is wrong is said in a sentence.
    let file = |bytes| ("input", Some("a.ogg"), bytes);
    for (fields, status, said) in [
        (vec![], 400, "nothing is asked; a form has a field `input`"),
        (vec![file(&sound[..900])], 422, "a.ogg: cut short"),
        (vec![("input", None, &b"a.ogg"[..])], 400, "input: this model reads files"),
        (vec![("input", None, b" ")], 400, "input is empty"),
        (vec![("input", None, b"\xff")], 400, "`input`: these bytes are not UTF-8"),
        (vec![file(&sound), ("beams", None, b"3")], 400, "there is no field `beams` in a form"),
        (vec![file(&sound), ("beam", None, b"0")], 400, "`beam` cannot be 0"),
        (vec![file(&sound), ("beam", None, b"x")], 400, "`beam` cannot be \"x\""),
        (vec![("beam", None, b"2"), ("beam", None, b"3")], 400, "`beam` is given twice"),
    ] {
        let answer = post_form(&tones, &fields);
        assert_eq!(answer.status, status, "{said}: {}", answer.error());
        assert!(answer.error().contains(said), "{said}: {}", answer.error());
    }
    let many = vec![("input", None, &b"a"[..]); 257];
    assert_eq!(post_form(&tones, &many).status, 413);
    let large = vec![0; 80 << 20];
    assert_eq!(post_form(&tones, &[file(&large)]).status, 413);
    let form = "multipart/form-data; boundary=XyZ";
    let cut = b"--XyZ\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nabc";
    let answer = post_bytes(&tones, form, cut);
    assert_eq!(answer.error(), "the request is not a form: it ends too early");
    assert_eq!(post_bytes(&tones, "multipart/form-data", cut).status, 400);
    assert_eq!(post_bytes(&tones, "text/plain", cut).status, 415);

    // A text as a form; a file where none is read.
    let words = served(&folder);
    let plain = post(&words, "/predict", &json!({ "input": "I see a bird", "beam": 5 })).json();
    let fields: [(_, _, &[u8]); 2] = [("input", None, b"I see a bird"), ("beam", None, b"5")];
    assert_eq!(post_form(&words, &fields).json(), plain);
    let answer = post_form(&words, &[("input", Some("a.txt"), b"I see a bird")]);
    assert_eq!(answer.error(), "input: this model does not read files");
}

#[test]
fn a_server_answers_under_further_names_that_were_allowed() {
    let folder = TempDir::new().unwrap();
    let run = trained(folder.path(), "words", "translate", &TRANSLATE);
    let allowed_hosts = vec!["box.lan".to_string()];
    let setup = Setup { runs: vec![run], port: Some(0), allowed_hosts, ..Setup::default() };
    let server = Server::serve(&setup).unwrap();
    let ask = |host: &str| {
        let text = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        send(server.address(), text.as_bytes())
    };
    assert_eq!((ask("box.lan").status, ask("box.lan:8443").status), (200, 200));
    let refused = ask("other.lan");
    assert_eq!(refused.status, 421);
    assert!(refused.error().contains("`--allow-host other.lan` adds it"), "{}", refused.error());
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
