//! Tries to break in: foreign names, foreign pages, files by name, too much, and nonsense.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;

use client::{Answer, Served, TRANSLATE, explorer, get, post, post_with, send};
use regard_picture::scene::base64;
use serde_json::json;
use std::sync::OnceLock;

/// One explorer for all tests of this file: it must live through all of them.
fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        explorer(&[
            ("words", "translate", &TRANSLATE),
            ("shapes", "image", &["size=60", "epochs=1"]),
            ("tones", "classify", &["kind=audio", "size=40", "epochs=1"]),
        ])
    })
}

fn refused(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{} {}", answer.headers, answer.error());
    assert!(!answer.error().is_empty(), "{}", answer.headers);
}

fn ask() -> serde_json::Value {
    json!({ "run": "words", "input": { "kind": "text", "text": "I see a bird" } })
}

#[test]
fn no_other_name_is_answered() {
    let server = &served().server;
    let port = server.address().port();
    let foreign = [
        format!("evil.example:{port}"),
        "127.0.0.1".into(),
        "localhost:1".into(),
        format!("127.0.0.1.evil.example:{port}"),
        format!("192.168.1.7:{port}"),
    ];
    for path in ["/", "/app.js", "/api/state", "/api/runs/words/events"] {
        for host in &foreign {
            let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            refused(&send(server.address(), text.as_bytes()), 421);
        }
        let none = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert_eq!(send(server.address(), none.as_bytes()).status, 400);
        let two = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil\r\nConnection: close\r\n\r\n"
        );
        assert!((400..500).contains(&send(server.address(), two.as_bytes()).status));
    }
    let own = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    assert_eq!(send(server.address(), own.as_bytes()).status, 200);
}

#[test]
fn no_page_of_another_site_can_ask() {
    let server = &served().server;
    let body = ask().to_string();
    let json = "Content-Type: application/json\r\n";
    for headers in
        ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"]
    {
        refused(&post_with(server, "/api/ask", headers, &body), 415);
    }
    for site in ["cross-site", "same-site", "anything"] {
        let headers = format!("{json}Sec-Fetch-Site: {site}\r\n");
        refused(&post_with(server, "/api/ask", &headers, &body), 403);
    }
    for origin in ["http://evil.example", "null", "https://127.0.0.1", ""] {
        let headers = format!("{json}Origin: {origin}\r\n");
        refused(&post_with(server, "/api/ask", &headers, &body), 403);
    }
    let host = server.address();
    let own = format!("{json}Sec-Fetch-Site: same-origin\r\nOrigin: http://{host}\r\n");
    assert_eq!(post_with(server, "/api/ask", &own, &body).status, 200);
    let text = format!(
        "GET /api/state HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n"
    );
    refused(&send(server.address(), text.as_bytes()), 403);
    // Nothing says that others may read.
    let answer = get(server, "/api/state");
    assert!(!answer.headers.to_lowercase().contains("access-control"));
}

#[test]
fn every_response_keeps_the_page_to_itself() {
    let server = &served().server;
    for path in ["/", "/draw.js", "/api/state", "/nothing", "/api/nothing"] {
        let headers = get(server, path).headers.to_lowercase();
        assert!(headers.contains("content-security-policy: default-src 'self'"), "{headers}");
        assert!(headers.contains("frame-ancestors 'none'") && headers.contains("nosniff"));
    }
}

#[test]
fn no_file_is_read_by_name() {
    let served = served();
    let server = &served.server;
    let secret = served.folder.path().join("secret.png");
    std::fs::write(&secret, "secret").unwrap();
    let secret = secret.display().to_string();
    for run in ["shapes", "tones"] {
        let text = json!({ "run": run, "input": { "kind": "text", "text": secret } });
        refused(&post(server, "/api/ask", &text), 400);
        let named = json!({
            "run": run, "input": { "kind": "bytes", "name": secret, "base64": base64(b"nothing") },
        });
        let answer = post(server, "/api/ask", &named);
        refused(&answer, 422);
        assert!(!answer.error().contains("secret\""));
    }
    let inside = [
        "/../Cargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/app.js/../../Cargo.toml",
        "/views/../../Cargo.toml",
        "/etc/passwd",
        "/page.rs",
        "/api/runs/../state",
        "/api/runs/words/../../state",
        "/api/runs/..%2fwords",
        "/api/runs/words/snapshots/..%2f..%2frun",
        "/api/runs/words/snapshots/../run.json",
        "/api/runs/words/sound/test/../../run.json",
        "/api/runs/words/parts/..%2frun",
        "/api/runs//",
        "/api/runs/%00",
        "/\u{0}",
        "/api/runs/words/config.toml",
    ];
    for path in inside {
        let answer = get(server, path);
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
    }
    // A run that lies beside those that were given is not there.
    let beside = served.folder.path().join("other");
    std::fs::create_dir_all(&beside).unwrap();
    std::fs::copy(served.folder.path().join("words/run.json"), beside.join("run.json")).unwrap();
    refused(&get(server, "/api/runs/other"), 404);
    refused(&post(server, "/api/ask", &json!({ "run": "other", "input": ask()["input"] })), 404);
    refused(&post(server, "/api/ask", &json!({ "run": "../other", "input": ask()["input"] })), 404);
}

/// The beginning of a PNG that says it is so large.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 0, 0, 0, 0]);
    let crc = header.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    });
    let mut all = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    all.extend(&header);
    all.extend((!crc).to_be_bytes());
    all.extend([0, 0, 0, 0]);
    all.extend(b"IDAT");
    all
}

#[test]
fn too_much_is_refused_before_it_costs_anything() {
    let server = &served().server;
    let long = |text: String| {
        post(
            server,
            "/api/ask",
            &json!({ "run": "words", "input": { "kind": "text", "text": text } }),
        )
    };
    refused(&long("x".repeat(10_001)), 413);
    refused(&long("a ".repeat(1001)), 413);
    refused(&long("鸟".repeat(1001)), 413);
    let bytes = |run: &str, name: &str, bytes: &[u8]| {
        let input = json!({ "kind": "bytes", "name": name, "base64": base64(bytes) });
        post(server, "/api/ask", &json!({ "run": run, "input": input }))
    };
    refused(&bytes("shapes", "huge.png", &png_of(60_000, 60_000)), 413);
    let sound = regard_data::files::Waveform { samples: vec![0.1; 31 * 1000], rate: 1000 };
    let sound = regard_data::files::wav_bytes(&sound).unwrap();
    refused(&bytes("tones", "long.wav", &sound), 413);
    // A body larger than is read, whether it says so or not.
    let host = server.address();
    let large = "x".repeat(33 << 20);
    refused(&post_with(server, "/api/ask", "Content-Type: application/json\r\n", &large), 413);
    let head = format!(
        "POST /api/ask HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert!([413, 0].contains(&send(server.address(), head.as_bytes()).status));
    let many: Vec<_> =
        (0..10_001).map(|n| json!({ "site": "cross", "row": n, "column": n })).collect();
    let mut question = ask();
    question["changes"] = json!({ "cells": many });
    refused(&post(server, "/api/ask", &question), 413);
    assert_eq!(post(server, "/api/ask", &ask()).status, 200);
}

#[test]
fn what_makes_no_sense_is_told_in_a_sentence() {
    let server = &served().server;
    let with = |changes: serde_json::Value| {
        let mut question = ask();
        question["changes"] = changes;
        post(server, "/api/ask", &question)
    };
    refused(&with(json!({ "temperature": 0 })), 400);
    refused(&with(json!({ "temperature": -1.5 })), 400);
    refused(&with(json!({ "normalizer": "softest" })), 400);
    refused(&with(json!({ "wind": 3 })), 400);
    refused(&with(json!({ "heads": [{ "site": "moon" }] })), 400);
    let input = |input: serde_json::Value| {
        post(server, "/api/ask", &json!({ "run": "words", "input": input }))
    };
    refused(&input(json!({ "kind": "node", "node": 3 })), 400);
    refused(&input(json!({ "kind": "example", "part": "rest", "index": 0 })), 400);
    refused(&input(json!({ "kind": "example", "part": "test", "index": 1_000_000 })), 422);
    refused(&input(json!({ "kind": "bytes", "name": "a", "base64": "AAAA" })), 400);
    refused(&input(json!({ "kind": "text" })), 400);
    refused(&get(server, "/api/runs/words/parts/test?sort=beauty"), 400);
    refused(&get(server, "/api/ask"), 405);
    let delete =
        format!("DELETE / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address());
    refused(&send(server.address(), delete.as_bytes()), 405);
}

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A request with something wrong in it.
fn malformed(dice: &mut Dice, host: &str) -> Vec<u8> {
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        "3",
        "{\"run\":3}",
        "{\"run\":\"words\"}",
        "\"\\ud800\"",
        "{\"run\":\"words\",\"input\":{\"kind\":\"text\",\"text\":3}}",
        "{\"run\":\"words\",\"input\":{\"kind\":\"moon\"}}",
        "{\"run\":\"words\",\"input\":{\"kind\":\"text\",\"text\":\"\"},\"changes\":{\"cells\":[{}]}}",
        "{\"run\":\"none\",\"input\":{\"kind\":\"text\",\"text\":\"a\"}}",
        "{\"run\":\"shapes\",\"input\":{\"kind\":\"bytes\",\"name\":\"a.png\",\"base64\":\"%%%\"}}",
        "{\"run\":\"shapes\",\"input\":{\"kind\":\"bytes\",\"name\":\"a.png\",\"base64\":\"iVBORw0KGgo=\"}}",
        "{\"run\":\"tones\",\"input\":{\"kind\":\"bytes\",\"name\":\"a.wav\",\"base64\":\"UklGRgAAAABXQVZF\"}}",
        "{\"run\":\"words\",\"input\":{\"kind\":\"example\",\"part\":\"test\",\"index\":-1}}",
        "{\"run\":\"words\",\"input\":{\"kind\":\"example\",\"part\":\"test\",\"index\":1e300}}",
    ];
    let nested = "[".repeat(20_000);
    let long = format!(
        "{{\"run\":\"words\",\"input\":{{\"kind\":\"text\",\"text\":\"{}\"}}}}",
        "a".repeat(10_001)
    );
    let body = match dice.below(10) {
        0 => nested,
        2 => long,
        1 => (0..dice.below(300)).map(|_| char::from(dice.below(256) as u8)).collect(),
        _ => dice.of(&bodies).to_string(),
    };
    let path = dice.of(&[
        "/api/ask",
        "/api/beam",
        "/api/saliency",
        "/api/save",
        "/api/nothing",
        "/",
        "/api/state",
        "/api/runs/words/parts/moon",
        "/api/runs/words/snapshots/-1",
        "/api/runs/x/events",
        "/%ff",
        "/api/runs/words/events?after=x",
        "/api/runs/words/sound/test/x.wav",
        "/api/runs/words/parts/test?limit=x",
    ]);
    let method = dice.of(&["POST", "POST", "POST", "GET", "PUT", "DELETE", "PATCH", "BREW", ""]);
    let kind = dice.of(&["application/json", "application/json", "text/html", "\u{1}"]);
    let host = dice.of(&[host, host, host, "evil", ""]);
    let length = match dice.below(12) {
        0 => "-1".to_string(),
        1 => "99999999999999999999".into(),
        2 => "x".into(),
        _ => body.len().to_string(),
    };
    let version = dice.of(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9", "x"]);
    let text = format!(
        "{method} {path} {version}\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    let mut bytes = text.into_bytes();
    match dice.below(6) {
        0 => bytes.truncate(dice.below(bytes.len())),
        1 => {
            let at = dice.below(bytes.len());
            bytes[at] = dice.below(256) as u8;
        }
        _ => {}
    }
    bytes
}

#[test]
fn a_thousand_malformed_requests_get_a_clear_status_each_and_break_nothing() {
    let server = &served().server;
    let host = server.address().to_string();
    let mut dice = Dice(7);
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..1000 {
        let bytes = malformed(&mut dice, &host);
        // What is cut short waits for the rest: hanging up is the answer to hanging up.
        let answer = half_closed(server.address(), &bytes);
        let text = String::from_utf8_lossy(&bytes);
        assert!(answer.status != 500, "{number}: {text}\n{}", answer.error());
        // Some come out right by chance: GET / is a page.
        assert!(
            [0, 200, 202].contains(&answer.status) || (400..600).contains(&answer.status),
            "{text}"
        );
        *seen.entry(answer.status).or_insert(0) += 1;
    }
    assert!(seen.keys().filter(|status| **status >= 400).count() >= 5, "{seen:?}");
    assert_eq!(post(server, "/api/ask", &ask()).status, 200);
}

/// Sends, says that nothing more comes, and reads.
fn half_closed(address: std::net::SocketAddr, bytes: &[u8]) -> Answer {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut all = Vec::new();
    // An event stream has no end; its beginning will do.
    let mut some = [0; 65_536];
    while let Ok(count) = stream.read(&mut some) {
        all.extend_from_slice(&some[..count]);
        if count == 0 || all.windows(17).any(|part| part == b"text/event-stream") {
            break;
        }
    }
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len());
    let headers = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, headers, body: all.get(end + 4..).unwrap_or_default().to_vec() }
}
