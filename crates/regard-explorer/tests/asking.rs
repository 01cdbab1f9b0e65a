//! What a person can do with the explorer, without a browser.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod client;

use client::{Served, TRANSLATE, explorer, get, post};
use regard_data::files::NumpyArray;
use regard_explorer::Server;
use regard_picture::scene::base64;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        explorer(&[
            ("words", "translate", &TRANSLATE),
            (
                "heads",
                "translate",
                &[
                    "size=80",
                    "epochs=1",
                    "encoder=transformer",
                    "decoder=transformer",
                    "embedding=8",
                    "hidden=16",
                    "heads=2",
                    "layers=2",
                    "search.beam=2",
                ],
            ),
            (
                "fixed",
                "translate",
                &["size=80", "epochs=1", "hidden=8", "embedding=8", "context=fixed"],
            ),
            ("curve", "regress", &["epochs=1"]),
            ("club", "graph", &["epochs=2"]),
            ("shapes", "image", &["size=60", "epochs=1"]),
            ("moods", "classify", &["size=60", "epochs=1", "embedding=8"]),
            ("tones", "classify", &["kind=audio", "size=40", "epochs=1"]),
            (
                "tags",
                "label",
                &["size=60", "epochs=1", "encoder=transformer", "hidden=16", "heads=2"],
            ),
            ("story", "answer", &["size=60", "epochs=1", "embedding=8", "hops=2"]),
            (
                "span",
                "answer",
                &["model=reader", "size=60", "epochs=1", "embedding=8", "hidden=8", "encoder=gru"],
            ),
        ])
    })
}

fn ask(run: &str, input: Value, changes: Value) -> Value {
    let question = json!({ "run": run, "input": input, "changes": changes });
    let answer = post(&served().server, "/api/ask", &question);
    assert_eq!(answer.status, 200, "{run}: {}", answer.error());
    answer.json()
}

fn example(index: usize) -> Value {
    json!({ "kind": "example", "part": "validation", "index": index })
}

/// The weights of a map.
fn weights(map: &Value) -> Vec<f32> {
    let text = map["weights"].as_str().unwrap();
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |c: u8| letters.iter().position(|&l| l == c).unwrap() as u32;
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = (0..4).fold(0, |bits, i| bits << 6 | four.get(i).map_or(0, |&c| value(c)));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn maps(answer: &Value, scene: usize) -> Vec<Value> {
    let scene = &answer["scenes"][scene]["scene"];
    let all = if scene["kind"] == "sound" { &scene["weights"]["maps"] } else { &scene["maps"] };
    all.as_array().cloned().unwrap_or_default()
}

#[test]
fn every_task_is_asked_by_its_own_kind_of_input_and_is_never_blank_without_a_word() {
    let state = get(&served().server, "/api/state").json();
    assert_eq!(state["runs"].as_array().unwrap().len(), 11);
    for run in state["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        assert_eq!((&run["error"], &run["ready"]), (&Value::Null, &json!(true)), "{id}");
        assert!(run["parameters"].as_u64().is_some() && !run["records"][0]["loss"].is_null());
        let whole = get(&served().server, &format!("/api/runs/{id}")).json();
        let own = match whole["input"]["kinds"][0].as_str().unwrap() {
            "text" if ["story", "span"].contains(&id) => {
                json!({ "kind": "text", "text": "Mary went home.\tWhere is Mary?" })
            }
            "text" => json!({ "kind": "text", "text": "I see a bird" }),
            "node" => json!({ "kind": "node", "node": 3 }),
            "point" => json!({ "kind": "point", "at": [0.5] }),
            "bytes" => example(1),
            other => panic!("{other}"),
        };
        for input in [own, example(0), example(2)] {
            let answer = ask(id, input, Value::Null);
            assert!(answer["prediction"]["output"].is_string(), "{id}");
            let scenes = answer["scenes"].as_array().unwrap();
            assert_eq!(scenes.is_empty(), answer["blank"].is_string(), "{id}");
            for scene in scenes {
                let maps = maps(&json!({ "scenes": [scene] }), 0).len();
                assert!(maps > 0 && scene["measures"].as_array().unwrap().len() == maps, "{id}");
            }
        }
        // What is true of an example is known.
        assert!(ask(id, example(0), Value::Null)["truth"].is_string(), "{id}");
    }
    let blank = ask("fixed", example(0), Value::Null)["blank"].as_str().unwrap().to_string();
    assert!(blank.starts_with("this model attends to nothing"), "{blank}");
}

#[test]
fn a_picture_and_a_recording_are_asked_by_their_bytes() {
    let sound = get(&served().server, "/api/runs/tones/sound/validation/1.wav");
    assert_eq!((sound.status, &sound.body[..4]), (200, &b"RIFF"[..]));
    let input = json!({ "kind": "bytes", "name": "mine.wav", "base64": base64(&sound.body) });
    let (mine, own) = (ask("tones", input, Value::Null), ask("tones", example(1), Value::Null));
    assert_eq!(mine["prediction"]["output"], own["prediction"]["output"]);
    assert_eq!(own["sound"], "/api/runs/tones/sound/validation/1.wav");
    for name in ["mono.mp3", "tone.ogg", "tone.flac"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sound");
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let input = json!({ "kind": "bytes", "name": name, "base64": base64(&bytes) });
        assert!(ask("tones", input, Value::Null)["prediction"]["output"].is_string(), "{name}");
    }
    let saved = json!({ "run": "shapes", "input": example(0), "as": "png" });
    let picture = post(&served().server, "/api/save", &saved);
    assert_eq!((picture.status, &picture.body[1..4]), (200, &b"PNG"[..]));
    let input = json!({ "kind": "bytes", "name": "my.png", "base64": base64(&picture.body) });
    assert!(ask("shapes", input, Value::Null)["prediction"]["output"].is_string());
}

#[test]
fn what_is_changed_is_seen_in_the_weights_and_told_beside_what_was_before() {
    let text = || json!({ "kind": "text", "text": "I see a bird in the garden" });
    let plain = ask("words", text(), Value::Null);
    assert_eq!((&plain["before"], &plain["difference"]), (&Value::Null, &Value::Null));
    let cold = ask("words", text(), json!({ "normalizer": "argmax" }));
    for map in maps(&cold, 0) {
        assert!(weights(&map).iter().all(|&w| w == 0.0 || w == 1.0));
        assert_eq!(map["place"]["site"], "cross");
    }
    assert_eq!(cold["before"]["output"], plain["prediction"]["output"]);
    assert!(cold["difference"]["text"].is_array());
    let forbidden = json!({ "cells": [{ "site": "cross", "column": 2 }] });
    let forbidden = ask("words", text(), forbidden);
    let columns = forbidden["scenes"][0]["scene"]["columns"].as_array().unwrap().len();
    for row in weights(&maps(&forbidden, 0)[0]).chunks(columns) {
        assert!(row[2] == 0.0 && (row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
    let numbers = forbidden["difference"]["numbers"].as_array().unwrap();
    assert!(numbers.iter().any(|one| one["name"] == "score" && one["before"] != one["after"]));
}

#[test]
fn a_head_is_switched_off_by_the_place_its_map_names() {
    let encoder = |answer: &Value| {
        let scenes = answer["scenes"].as_array().unwrap();
        scenes.iter().position(|scene| scene["name"] == "encoder").unwrap()
    };
    let text = || json!({ "kind": "text", "text": "I see a bird" });
    let plain = ask("heads", text(), Value::Null);
    assert!(!plain["scenes"][encoder(&plain)]["rollout"].is_null());
    let place = maps(&plain, encoder(&plain))[3]["place"].clone();
    assert_eq!((&place["layer"], &place["head"]), (&json!(1), &json!(1)));
    let head = json!({ "site": place["site"], "layer": place["layer"], "head": place["head"] });
    let off = ask("heads", text(), json!({ "heads": [head] }));
    let silent = |map: &Value| weights(map).iter().all(|&w| w == 0.0);
    let silent: Vec<bool> = maps(&off, encoder(&off)).iter().map(silent).collect();
    assert_eq!(silent, [false, false, false, true]);
}

#[test]
fn all_heads_of_encoder_decoder_and_between_them_are_maps_that_can_be_changed() {
    let text = || json!({ "kind": "text", "text": "I see a bird" });
    let plain = ask("heads", text(), Value::Null);
    let names: Vec<&str> =
        plain["scenes"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["alignment", "encoder", "decoder"]);
    for (at, site) in ["cross", "encoder", "decoder"].into_iter().enumerate() {
        let maps = maps(&plain, at);
        assert!(maps.iter().all(|map| map["place"]["site"] == site), "{site}");
        // Two layers; the mechanism over the source has one head, the others two.
        assert_eq!(maps.len(), if site == "cross" { 2 } else { 4 }, "{site}");
    }
    let cell = json!({ "site": "decoder", "layer": 0, "head": 1, "row": 1, "column": 0 });
    let changed = ask("heads", text(), json!({ "cells": [cell] }));
    let n = changed["scenes"][2]["scene"]["columns"].as_array().unwrap().len();
    let head = weights(&maps(&changed, 2)[1]);
    assert!(n > 1 && head[n] == 0.0 && head[n + 1] == 1.0, "{head:?}");
    assert_ne!(weights(&maps(&changed, 2)[0])[n], 0.0);
}

#[test]
fn a_sentence_is_forbidden_in_a_hop_and_a_readers_output_says_why_it_cannot_be() {
    let text = "John went home. Mary took the key.\tWhere is the key?";
    let input = || json!({ "kind": "text", "text": text });
    let plain = ask("story", input(), Value::Null);
    let map = &maps(&plain, 0)[0];
    let place = &map["place"];
    assert_eq!((&place["site"], &place["columns_are_layers"]), (&json!("hops"), &json!(true)));
    assert_eq!(place["head"], Value::Null, "a hop is switched off in its own map");
    // Rows are sentences, columns hops: the first sentence in the second hop.
    let cell = json!({ "site": "hops", "layer": 1, "head": 0, "row": 0, "column": 0 });
    let changed = ask("story", input(), json!({ "cells": [cell] }));
    let (before, after) = (weights(map), weights(&maps(&changed, 0)[0]));
    assert_eq!((after[1], after[3], after[0]), (0.0, 1.0, before[0]));
    assert_ne!(
        changed["prediction"]["details"]["probability"],
        changed["before"]["details"]["probability"]
    );
    let span = ask("span", input(), Value::Null);
    let map = &maps(&span, 0)[0];
    assert!(map["place"].is_null());
    assert!(map["fixed"].as_str().unwrap().starts_with("These are the reader's output"));
    assert_eq!(maps(&span, 1)[0]["place"]["site"], "question");
}

#[test]
fn an_edge_a_patch_and_a_datum_are_forbidden_too() {
    let club = ask("club", json!({ "kind": "node", "node": 3 }), Value::Null);
    let nodes = club["scenes"][0]["scene"]["nodes"].as_array().unwrap().clone();
    let edges = club["scenes"][0]["scene"]["edges"].as_array().unwrap().clone();
    let at = edges.iter().position(|edge| edge[0] == 0 && edge[1] != 0).unwrap();
    let number = |place: &Value| -> usize {
        nodes[place.as_u64().unwrap() as usize].as_str().unwrap().parse().unwrap()
    };
    let cell =
        json!({ "site": "graph", "row": number(&edges[at][0]), "column": number(&edges[at][1]) });
    let changed = ask("club", json!({ "kind": "node", "node": 3 }), json!({ "cells": [cell] }));
    // The strongest neighbors are shown: one without weight may have gone.
    let gone = nodes[edges[at][1].as_u64().unwrap() as usize].clone();
    let now = changed["scenes"][0]["scene"]["nodes"].as_array().unwrap().clone();
    if let Some(there) = now.iter().position(|node| *node == gone) {
        let edges = changed["scenes"][0]["scene"]["edges"].as_array().unwrap().clone();
        let edge = edges.iter().position(|e| e[0] == 0 && e[1] == json!(there)).unwrap();
        assert!(maps(&changed, 0).iter().all(|map| weights(map)[edge] == 0.0));
    }
    let patch = ask("shapes", example(0), Value::Null);
    let place = maps(&patch, 0)[0]["place"].clone();
    let column = place["column"].as_u64().unwrap() + 2;
    let changed =
        ask("shapes", example(0), json!({ "cells": [{ "site": "encoder", "column": column }] }));
    assert!(maps(&changed, 0).iter().all(|map| weights(map)[2] == 0.0));
    let point = || json!({ "kind": "point", "at": [0.5] });
    let datum = ask("curve", point(), json!({ "cells": [{ "site": "kernel", "column": 0 }] }));
    let x = datum["scenes"][0]["scene"]["x"].as_array().unwrap().len();
    assert!(weights(&maps(&datum, 0)[0]).chunks(x).all(|row| row[0] == 0.0));
}

#[test]
fn the_same_question_is_answered_from_the_cache_to_the_letter() {
    let question =
        json!({ "run": "words", "input": { "kind": "text", "text": "the cat sees me" } });
    let server = &served().server;
    let [first, second] = [(); 2].map(|()| post(server, "/api/ask", &question).body);
    // The time it took is part of it, so that only the cache gives the same letters.
    assert_eq!(first, second);
}

#[test]
fn saliency_is_told_for_every_task_that_has_a_gradient() {
    let server = &served().server;
    for run in
        ["words", "heads", "fixed", "curve", "club", "shapes", "moods", "tones", "tags", "story"]
    {
        let answer = post(server, "/api/saliency", &json!({ "run": run, "input": example(0) }));
        assert_eq!(answer.status, 200, "{run}: {}", answer.error());
        let saliency = answer.json();
        let values = saliency["values"].as_array().unwrap();
        assert_eq!(values.len(), saliency["names"].as_array().unwrap().len(), "{run}");
        assert!(values.iter().any(|value| value.as_f64() != Some(0.0)), "{run}");
    }
}

#[test]
fn a_method_of_saliency_is_tried_by_taking_parts_away() {
    let server = &served().server;
    let of = |run: &str, method: &str| {
        let question = json!({ "run": run, "input": example(0), "method": method });
        post(server, "/api/saliency", &question)
    };
    let all = ["gradient-input", "integrated-gradients", "attention", "attention-gradient"];
    let answers = all.map(|method| of("words", method).json());
    for (method, answer) in all.into_iter().zip(&answers) {
        assert_eq!(answer["method"], method);
        let faithful = &answer["faithfulness"];
        let removed = faithful["removed"].as_array().unwrap();
        assert_eq!((&removed[0], &removed[removed.len() - 1]), (&json!(0.0), &json!(1.0)));
        for curve in ["most", "least", "random"] {
            let scores = faithful[curve]["scores"].as_array().unwrap();
            assert_eq!(scores.len(), removed.len(), "{method}");
        }
    }
    // What is kept of one method is not given for another.
    assert!(answers.windows(2).all(|pair| pair[0]["values"] != pair[1]["values"]));
    let rollout = of("heads", "rollout").json();
    let sum: f64 = rollout["values"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    // Recurrent layers have no self-attention, and there is no such method.
    let refused = of("words", "rollout");
    assert_eq!(refused.status, 422);
    assert!(refused.error().contains("self-attention"), "{}", refused.error());
    assert!((400..500).contains(&of("words", "gradients").status));
}

#[test]
fn a_beam_is_a_tree_whose_best_leaf_is_the_output() {
    let server = &served().server;
    let question = json!({ "run": "words", "input": example(0) });
    let tree = post(server, "/api/beam", &question).json();
    assert_eq!(tree["width"], 3);
    let nodes = tree["nodes"].as_array().unwrap();
    for node in nodes {
        if let Some(parent) = node["parent"].as_u64() {
            let parent = &nodes[parent as usize];
            let sum = parent["total"].as_f64().unwrap() + node["log_prob"].as_f64().unwrap();
            assert!((sum - node["total"].as_f64().unwrap()).abs() < 1e-9);
            assert!(parent["kept"] == true && parent["ended"] == false);
        }
    }
    let best = &tree["hypotheses"][0];
    let answer = ask("words", example(0), Value::Null);
    assert_eq!(best["output"], answer["prediction"]["output"]);
    let path = best["nodes"].as_array().unwrap();
    assert_eq!(nodes[path[path.len() - 1].as_u64().unwrap() as usize]["total"], best["log_prob"]);
    let refused = post(server, "/api/beam", &json!({ "run": "club", "input": example(0) }));
    assert_eq!(refused.status, 422);
}

/// A part, once it is computed.
fn part(server: &Server, address: &str) -> Value {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let answer = post(server, address, &json!({}));
        match answer.status {
            200 => return answer.json(),
            202 => assert!(Instant::now() < until, "{}", answer.json()),
            other => panic!("{other}: {}", answer.error()),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_part_is_sorted_by_loss_and_a_cell_of_the_confusion_matrix_opens_its_examples() {
    let server = &served().server;
    for run in ["moods", "words", "tags", "curve", "story", "tones"] {
        let all = part(server, &format!("/api/runs/{run}/parts/validation?limit=500"));
        let losses: Vec<f64> =
            all["examples"].as_array().unwrap().iter().filter_map(|e| e["loss"].as_f64()).collect();
        assert!(!losses.is_empty() && losses.is_sorted_by(|a, b| a >= b), "{run}");
        // Each opens as it is listed.
        let first = &all["examples"][0];
        let opened = ask(run, example(first["index"].as_u64().unwrap() as usize), Value::Null);
        assert_eq!(opened["truth"], first["truth"], "{run}");
    }
    let notes = |run: &str| {
        part(server, &format!("/api/runs/{run}/parts/validation"))["notes"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert!(notes("moods").is_empty());
    assert_eq!(notes("words")[0]["n"], 3, "outputs are written greedily, not with the beam");
    let all = part(server, "/api/runs/moods/parts/validation");
    let labels = all["labels"].as_array().unwrap();
    let mut counted = 0;
    for (i, truth) in labels.iter().enumerate() {
        for (j, predicted) in labels.iter().enumerate() {
            let (a, b) = (truth.as_str().unwrap(), predicted.as_str().unwrap());
            let cell =
                part(server, &format!("/api/runs/moods/parts/validation?label={a}&predicted={b}"));
            assert_eq!(cell["matching"], all["confusion"]["counts"][i][j]);
            counted += cell["matching"].as_u64().unwrap();
        }
    }
    assert_eq!(counted, all["count"].as_u64().unwrap());
}

#[test]
fn a_training_is_watched_line_by_line_and_only_what_is_new_travels() {
    let served = explorer(&[("watched", "regress", &["epochs=1"])]);
    let file = served.folder.path().join("watched/metrics.jsonl");
    let address = served.server.address();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "GET /api/runs/watched/events HTTP/1.1\r\nHost: {address}\r\nLast-Event-ID: 1\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut told = String::new();
    let mut until = |wanted: &str| {
        let end = Instant::now() + Duration::from_secs(20);
        let mut some = [0; 4096];
        while !told.contains(wanted) {
            assert!(Instant::now() < end, "{told}");
            if let Ok(count) = stream.read(&mut some) {
                told += &String::from_utf8_lossy(&some[..count]);
            }
        }
        told.clone()
    };
    let before = until("event: snapshot");
    assert!(before.contains("event: state") && before.contains("\"training\":false"), "{before}");
    assert!(!before.contains("event: record"), "the first line was known: {before}");
    let lines = std::fs::read_to_string(&file).unwrap();
    let second = lines.replace("\"epoch\":1", "\"epoch\":2");
    std::fs::write(&file, format!("{lines}{second}")).unwrap();
    let after = until("event: record");
    assert!(after.contains("id: 2") && after.matches("event: record").count() == 1, "{after}");
    // A training that began anew says so.
    std::fs::write(&file, "").unwrap();
    until("event: reset");
}

#[test]
fn training_keeps_what_it_made_of_three_samples_after_each_epoch() {
    let server = &served().server;
    let epochs = get(server, "/api/runs/words/snapshots").json();
    assert_eq!(epochs["epochs"], json!([1, 2]));
    let snapshot = get(server, "/api/runs/words/snapshots/2").json();
    let samples = snapshot["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 3);
    for sample in samples {
        assert_eq!(sample["scenes"][0]["scene"]["kind"], "maps");
        assert!(!weights(&sample["scenes"][0]["scene"]["maps"][0]).is_empty());
    }
    assert_eq!(get(server, "/api/runs/words/snapshots/7").status, 404);
}

#[test]
fn a_view_is_saved_as_a_picture_and_as_a_page_that_stands_alone() {
    let server = &served().server;
    let save = |form: &str| {
        let question = json!({
            "run": "words", "input": example(0), "as": form, "scene": 0, "map": 0,
            "changes": { "temperature": 0.5 },
        });
        post(server, "/api/save", &question)
    };
    let (svg, html) = (save("svg"), save("html"));
    assert!(svg.body.starts_with(b"<svg") && html.body.starts_with(b"<!DOCTYPE html>"));
    assert!(svg.headers.contains("filename=\"words-alignment.svg\""), "{}", svg.headers);
    let question = json!({ "run": "tags", "input": { "kind": "text", "text": "I see" }, "as": "gif", "map": 0 });
    let gif = post(server, "/api/save", &question);
    assert!(gif.body.starts_with(b"GIF89a") && gif.headers.contains(".gif\""), "{}", gif.headers);
    let (csv, npz) = (save("csv"), save("npz"));
    let drawn = ask("words", example(0), json!({ "temperature": 0.5 }));
    let scene = &drawn["scenes"][0]["scene"];
    let told: Vec<f32> = String::from_utf8(csv.body)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(told, weights(&scene["maps"][0]));
    let arrays = NumpyArray::decode_all("a.npz".as_ref(), &npz.body).unwrap();
    let sides = ["rows", "columns"].map(|side| scene[side].as_array().unwrap().len());
    assert_eq!(arrays[0].1.shape, [1, sides[0], sides[1]]);
    assert_eq!(save("bmp").status, 400);
    let beyond = json!({ "run": "words", "input": example(0), "as": "svg", "scene": 9 });
    assert_eq!(post(server, "/api/save", &beyond).status, 400);
}

fn text(text: &str) -> Value {
    json!({ "kind": "text", "text": text })
}

/// The second head of the first layer of the encoder, as it is for another input.
fn patch(what: &str, from: &Value) -> Value {
    let one = json!({ "site": "encoder", "layer": 0, "head": 1, "what": what, "from": from });
    json!({ "patches": [one] })
}

#[test]
fn a_head_is_put_as_it_is_for_another_input_and_its_own_changes_nothing() {
    let (own, other) = (text("I see a small bird"), text("you see the old man"));
    let plain = ask("heads", own.clone(), Value::Null);
    let scene = |answer: &Value| {
        let all = answer["scenes"].as_array().unwrap();
        let encoder = |one: &&Value| one["scene"]["maps"][0]["place"]["site"] == "encoder";
        all.iter().find(encoder).unwrap()["scene"]["maps"].as_array().unwrap().clone()
    };
    let near =
        |a: &Value, b: &Value| weights(a).iter().zip(weights(b)).all(|(a, b)| (a - b).abs() < 1e-5);
    for what in ["attention", "output"] {
        let same = ask("heads", own.clone(), patch(what, &own));
        assert_eq!(same["prediction"]["output"], plain["prediction"]["output"], "{what}");
        let [a, b] = [&same, &plain]
            .map(|answer| answer["prediction"]["details"]["log_probability"].as_f64().unwrap());
        assert!((a - b).abs() < 1e-4, "{what}: {a} and {b}");
    }
    let (patched, there) =
        (ask("heads", own.clone(), patch("attention", &other)), ask("heads", other, Value::Null));
    let (patched, there, plain) = (scene(&patched), scene(&there), scene(&plain));
    assert!(near(&patched[1], &there[1]) && !near(&patched[1], &plain[1]));
    assert!(near(&patched[0], &plain[0]), "the other head of the layer is its own");
    let missing = json!({ "patches": [{ "site": "encoder", "layer": 7, "head": 0, "what": "output", "from": own }] });
    let question = json!({ "run": "heads", "input": own, "changes": missing });
    assert_eq!(post(&served().server, "/api/ask", &question).status, 422);
}

fn matters(run: &str, input: Value) -> Value {
    let answer = post(&served().server, "/api/matters", &json!({ "run": run, "input": input }));
    assert_eq!(answer.status, 200, "{run}: {}", answer.error());
    answer.json()
}

#[test]
fn what_matters_is_every_head_layer_and_word_and_what_was_not_tried_is_counted() {
    let found = matters("heads", text("I see a small bird"));
    let of = |kind: &str| found[kind].as_array().unwrap().clone();
    // Two layers of two heads in the encoder and the decoder, and of one head between them.
    assert_eq!((of("heads").len(), of("layers").len()), (10, 4));
    assert!(of("heads").iter().all(|one| one["effect"].is_f64()));
    assert!(of("heads").iter().all(|one| one["mean"].is_f64()), "{found}");
    let sites: Vec<Value> = of("words").iter().map(|one| one["site"].clone()).collect();
    assert!(sites.contains(&json!("cross")) && sites.contains(&json!("encoder")), "{sites:?}");
    assert!(!sites.contains(&json!("decoder")), "what was written is not read");
    assert_eq!(found["all"]["words"], sites.len());
    // The hops of a memory are heads of their own; a node's neighbors and a curve's data are read.
    let hops = matters("story", example(0));
    let hop = |one: &Value| one["site"] == "hops";
    assert_eq!(hops["heads"].as_array().unwrap().iter().filter(|one| hop(one)).count(), 2);
    for run in ["club", "curve"] {
        let found = matters(run, example(0));
        let (words, all) = (found["words"].as_array().unwrap(), found["all"]["words"].as_u64());
        assert!(!words.is_empty() && words.len() as u64 == all.unwrap().min(96), "{run}: {found}");
    }
    let long = matters("tags", text(&"the old man ".repeat(40)));
    assert_eq!((long["words"].as_array().unwrap().len(), &long["all"]["words"]), (96, &json!(120)));
}
