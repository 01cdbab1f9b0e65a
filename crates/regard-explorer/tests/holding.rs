//! What holds whatever others do: slow and many clients, packed files, other names, a busy worker.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;

use client::{TRANSLATE, get, post, send, trained};
use regard_explorer::{Limits, Server, Setup};
use regard_picture::scene::base64;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Runs that all tests of this file ask, trained once.
fn runs() -> &'static (TempDir, Vec<PathBuf>) {
    static RUNS: OnceLock<(TempDir, Vec<PathBuf>)> = OnceLock::new();
    RUNS.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let small = ["size=60", "epochs=1", "embedding=8", "max_length=100"];
        let all = vec![
            trained(folder.path(), "words", "translate", &TRANSLATE),
            trained(folder.path(), "moods", "classify", &small),
            trained(folder.path(), "curve", "regress", &["epochs=1"]),
            trained(folder.path(), "vectors", "label", &["kind=vectors", "size=40", "epochs=1"]),
        ];
        (folder, all)
    })
}

fn setup() -> Setup {
    Setup { runs: runs().1.clone(), port: Some(0), ..Setup::default() }
}

fn impatient() -> Limits {
    let second = Duration::from_secs(1);
    Limits { arrival: second, departure: second, ..Limits::default() }
}

fn ask() -> serde_json::Value {
    json!({ "run": "words", "input": { "kind": "text", "text": "I see a bird" } })
}

#[test]
fn two_hundred_slow_clients_keep_nobody_from_being_answered_and_are_let_go() {
    let server = Server::explore(&Setup { limits: impatient(), ..setup() }).unwrap();
    let host = server.address();
    assert_eq!(post(&server, "/api/ask", &ask()).status, 200);
    let heads = [
        "GET / HT".to_string(),
        format!("GET /api/state HTTP/1.1\r\nHost: {host}\r\nX-Slow: "),
        format!(
            "POST /api/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{\"run\""
        ),
        String::new(),
    ];
    let mut slow: Vec<TcpStream> = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(heads[at % heads.len()].as_bytes()).unwrap();
        slow.push(stream);
    }
    let began = Instant::now();
    assert_eq!(get(&server, "/health").status, 200);
    assert_eq!(post(&server, "/api/ask", &ask()).status, 200);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // Each is answered or hung up on: its reading comes to an end.
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let told = String::from_utf8_lossy(&rest);
        let hung_up = |kind| kind == std::io::ErrorKind::ConnectionReset;
        assert!(
            ended.as_ref().is_ok_and(|_| rest.is_empty() || told.contains(" 408 "))
                || ended.is_err_and(|error| hung_up(error.kind())),
            "{told}"
        );
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn more_connections_than_places_wait_and_are_answered_when_others_are_let_go() {
    let limits = Limits { connections: 4, ..impatient() };
    let server = Server::explore(&Setup { limits, ..setup() }).unwrap();
    let idle: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    assert_eq!(get(&server, "/health").status, 200);
    drop(idle);
}

#[test]
fn who_does_not_take_an_answer_is_let_go() {
    let limits = Limits { connections: 1, ..impatient() };
    let server = Server::explore(&Setup { limits, ..setup() }).unwrap();
    let mut greedy = TcpStream::connect(server.address()).unwrap();
    let request = format!("GET /chinese.js HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
    // Far more answers are asked for than the buffers between hold, and none is read.
    let _ = greedy.set_write_timeout(Some(Duration::from_secs(2)));
    for _ in 0..4000 {
        if greedy.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    let began = Instant::now();
    assert_eq!(get(&server, "/health").status, 200);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// A zip whose directory tells of so many arrays of so many bytes each, all in the same few bytes.
fn bomb(arrays: u16, size: u32) -> Vec<u8> {
    let mut zip = b"PK\x03\x04".to_vec();
    zip.extend([0; 22]);
    zip.extend([1, 0, 0, 0, b'a']);
    let packed = [0xed, 0xc1, 0x01, 0x01];
    zip.extend(packed);
    let directory = zip.len() as u32;
    for _ in 0..arrays {
        zip.extend(b"PK\x01\x02");
        zip.extend([0; 6]);
        zip.extend([8, 0]);
        zip.extend([0; 8]);
        zip.extend(4u32.to_le_bytes());
        zip.extend(size.to_le_bytes());
        zip.extend([1, 0]);
        zip.extend([0; 16]);
        zip.push(b'a');
    }
    zip.extend(b"PK\x05\x06");
    zip.extend([0; 6]);
    zip.extend(arrays.to_le_bytes());
    zip.extend([0; 4]);
    zip.extend(directory.to_le_bytes());
    zip.extend([0; 2]);
    zip
}

#[test]
fn a_zip_bomb_is_refused_before_it_is_unpacked() {
    let server = Server::explore(&setup()).unwrap();
    let told = get(&server, "/api/runs/vectors").json();
    assert_eq!(told["input"]["form"], "features", "{told}");
    for (arrays, size) in [(1, u32::MAX), (65_535, u32::MAX), (65_535, 2000)] {
        let bytes = base64(&bomb(arrays, size));
        let input = json!({ "kind": "bytes", "name": "bomb.npz", "base64": bytes });
        let began = Instant::now();
        let answer = post(&server, "/api/ask", &json!({ "run": "vectors", "input": input }));
        assert_eq!(answer.status, 413, "{arrays} × {size}: {}", answer.error());
        assert!(answer.error().contains("once it is unpacked"), "{}", answer.error());
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_server_that_others_reach_wants_the_token_of_its_address() {
    let open = Setup { host: Some("0.0.0.0".into()), ..setup() };
    let server = Server::explore(&open).unwrap();
    let (port, token) = (server.address().port(), server.token().unwrap().to_string());
    assert!(server.url().ends_with(&format!("/?token={token}")) && token.len() == 32);
    let get = |path: &str, more: &str| {
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}Connection: close\r\n\r\n"
        );
        send(([127, 0, 0, 1], port).into(), text.as_bytes())
    };
    for path in ["/", "/app.js", "/api/state", "/?token=", "/?token=0", "/api/runs/words"] {
        assert_eq!(get(path, "").status, 401, "{path}");
    }
    assert_eq!(get("/health", "").status, 200);
    let first = get(&format!("/?token={token}"), "");
    assert_eq!(first.status, 200);
    let headers = first.headers;
    let cookie = headers.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(get("/api/state", &format!("Cookie: {cookie}\r\n")).status, 200);
    assert_eq!(get("/api/state", &format!("Authorization: Bearer {token}\r\n")).status, 200);
    assert_eq!(get("/api/state", "Authorization: Bearer 0\r\n").status, 401);
    // A name that somebody else gave this machine is no name of it, whoever knows the token.
    let text = format!(
        "GET /?token={token} HTTP/1.1\r\nHost: rebound.example:{port}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(send(([127, 0, 0, 1], port).into(), text.as_bytes()).status, 421);
    let other = Server::explore(&open).unwrap();
    assert_ne!(other.token(), server.token());
    let chosen = Setup { token: Some("of-my-own".into()), ..open };
    assert_eq!(Server::explore(&chosen).unwrap().token(), Some("of-my-own"));
    assert_eq!(Server::explore(&setup()).unwrap().token(), None);
}

#[test]
fn health_and_state_do_not_wait_for_what_is_computed() {
    let server = Server::explore(&setup()).unwrap();
    let server = &server;
    let text = "I see a bird ".repeat(240);
    let long = json!({ "run": "words", "input": { "kind": "text", "text": text } });
    std::thread::scope(|scope| {
        // Several long questions, none of which overtakes another, wait for the one worker.
        let busy: Vec<_> = (0..6)
            .map(|n| {
                let mut one = long.clone();
                one["changes"] = json!({ "temperature": 1.0 + 0.1 * f64::from(n) });
                scope.spawn(move || post(server, "/api/ask", &one).status)
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        let began = Instant::now();
        for path in ["/health", "/api/state", "/app.js"] {
            assert_eq!(get(server, path).status, 200);
        }
        let waited = began.elapsed();
        let unanswered = busy.iter().filter(|one| !one.is_finished()).count();
        let answers: Vec<u16> = busy.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(answers, [200; 6]);
        assert!(unanswered > 0, "the questions were too short to keep the worker busy");
        assert!(waited < Duration::from_millis(500), "{waited:?}");
    });
}

fn loaded(server: &Server) -> Vec<String> {
    let state = get(server, "/api/state").json();
    let runs = state["runs"].as_array().unwrap().clone();
    let here = runs.iter().filter(|run| run["loaded"] == true);
    here.map(|run| run["id"].as_str().unwrap().to_string()).collect()
}

#[test]
fn models_are_loaded_when_they_are_asked_and_the_longest_unused_is_let_go() {
    let limits = Limits { models: 2, ..Limits::default() };
    let server = Server::explore(&Setup { limits, ..setup() }).unwrap();
    assert!(loaded(&server).is_empty());
    let state = get(&server, "/api/state").json();
    assert!(state["runs"].as_array().unwrap().iter().all(|run| run["ready"] == true));
    let before = post(&server, "/api/ask", &ask()).json();
    assert_eq!(loaded(&server), ["words"]);
    assert_eq!(get(&server, "/api/runs/moods").json()["input"]["form"], "text");
    assert_eq!(post(&server, "/api/ask", &ask()).status, 200);
    assert_eq!(get(&server, "/api/runs/curve").status, 200);
    assert_eq!(loaded(&server), ["words", "curve"], "the one used last stays");
    assert_eq!(get(&server, "/api/runs/moods").status, 200);
    // What was let go is loaded again, and answers the same; what was answered is still known.
    let again = post(&server, "/api/ask", &ask()).json();
    assert_eq!(again, before);
    assert_eq!(loaded(&server), ["words", "moods"]);
}

#[test]
fn a_get_begins_no_computation() {
    let server = Server::explore(&setup()).unwrap();
    let path = "/api/runs/moods/parts/test?limit=1";
    assert_eq!(get(&server, path).status, 405);
    assert!(loaded(&server).is_empty());
    let end = Instant::now() + Duration::from_secs(60);
    while post(&server, path, &json!({})).status == 202 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(get(&server, path).json()["examples"].as_array().unwrap().len(), 1);
}

#[test]
fn an_empty_input_is_refused_and_one_that_is_cut_says_so() {
    let server = Server::explore(&setup()).unwrap();
    for text in ["", "   ", "\n\t"] {
        let question = json!({ "run": "moods", "input": { "kind": "text", "text": text } });
        let answer = post(&server, "/api/ask", &question);
        assert_eq!((answer.status, answer.error().contains("empty")), (400, true), "{text:?}");
    }
    for run in ["words", "moods"] {
        let of = |words: usize| {
            let text = "bird ".repeat(words);
            let input = json!({ "kind": "text", "text": text });
            let answer = post(&server, "/api/ask", &json!({ "run": run, "input": input })).json();
            answer["prediction"]["details"]["read"].clone()
        };
        assert_eq!(of(5), json!(null));
        let cut = of(600);
        assert_eq!((&cut["of"], &cut["unit"]), (&json!(600), &json!("tokens")), "{run}: {cut}");
        assert!(cut["count"].as_u64().unwrap() < 600);
    }
}

#[test]
fn every_written_token_has_a_score_and_the_end_has_its_own() {
    let server = Server::explore(&setup()).unwrap();
    let details = post(&server, "/api/ask", &ask()).json()["prediction"]["details"].clone();
    let (tokens, scores) = (&details["tokens"], &details["token_scores"]);
    assert_eq!(tokens.as_array().unwrap().len(), scores.as_array().unwrap().len());
    assert_eq!(details["ended"].as_bool().unwrap(), details["end_score"].is_number());
}

#[test]
fn a_prediction_of_nonsense_is_refused_in_words() {
    let setup = Setup { runs: runs().1[..1].to_vec(), ..setup() };
    let server = Server::serve(&setup).unwrap();
    let cases = [
        (json!({ "input": 5 }), "input is a number"),
        (json!({ "input": null }), "input is nothing"),
        (json!({ "input": true }), "input is a truth value"),
        (json!({ "input": ["a"] }), "input is a list"),
        (json!({ "inputs": 5 }), "`inputs` is a number"),
        (json!({ "inputs": "a" }), "`inputs` is a text"),
        (json!({ "inputs": ["a", 5] }), "inputs[1] is a number"),
        (json!({ "input": "" }), "input is empty"),
        (json!({ "inputs": ["a", " "] }), "inputs[1] is empty"),
        (json!({ "input": { "kind": "moon" } }), "input: unknown variant `moon`"),
        (json!({ "input": "a", "moon": 4 }), "there is no `moon`"),
        (json!(["a"]), "the request is a list"),
        (json!(3), "the request is a number"),
    ];
    for (body, told) in &cases {
        let answer = post(&server, "/predict", body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with(told), "{body}: {}", answer.error());
    }
}

#[test]
fn the_health_of_served_predictions_does_not_wait() {
    let setup = Setup { runs: runs().1[..1].to_vec(), ..setup() };
    let server = &Server::serve(&setup).unwrap();
    let inputs = vec!["I see a bird ".repeat(100); 64];
    std::thread::scope(|scope| {
        let busy =
            scope.spawn(move || post(server, "/predict", &json!({ "inputs": inputs })).status);
        std::thread::sleep(Duration::from_millis(30));
        let began = Instant::now();
        assert_eq!(get(server, "/health").json()["task"], "translate");
        assert!(began.elapsed() < Duration::from_millis(300));
        assert_eq!(busy.join().unwrap(), 200);
    });
}
