//! What `regard bench` reports. Whether it is fast is not for a test to say.

use crate::file::regard;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

fn said(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const SMALL: &str = "dot-f32-b32h8n128d32";
const DECODE: &str = "dot-f32-b1hq32hk8n4096d128-decode";

#[test]
fn json_has_one_object_for_each_case_and_pass() {
    let text = said(&["bench", "--filter", &[SMALL, DECODE].join(","), "--rounds", "3", "--json"]);
    let found = objects(&text);
    let named: Vec<_> = found.iter().map(|x| (x["case"].as_str(), x["pass"].as_str())).collect();
    let (forward, both) = (Some("forward"), Some("forward+backward"));
    assert_eq!(named, [(Some(SMALL), forward), (Some(SMALL), both), (Some(DECODE), forward)]);
    for object in &found {
        assert_eq!(object["rounds"], 3);
        let number = |name: &str| object[name].as_f64().unwrap();
        assert!(number("median_ms") >= number("min_ms") && number("min_ms") > 0.0, "{object}");
        assert!(number("gflops") > 0.0);
    }
    let has = |at: usize, name: &str| found[at][name].as_f64().is_some_and(|x| x > 0.0);
    assert!(has(0, "matmul_gflops") && !has(0, "gb_per_s"));
    assert!(has(2, "gb_per_s") && has(2, "read_gb_per_s") && !has(2, "matmul_gflops"));
}

#[test]
fn peak_memory_is_that_of_inputs_results_and_little_else() {
    let text = said(&["bench", "--filter", SMALL, "--rounds", "1", "--json"]);
    let arrays = [4, 4 + 4]; // q, k, v, out; and grad_out, and the gradients of q, k and v
    for (object, arrays) in objects(&text).iter().zip(arrays) {
        let needed = arrays * 32 * 8 * 128 * 32 * size_of::<f32>();
        let peak = object["peak_bytes"].as_u64().unwrap() as usize;
        assert!(peak >= needed && peak < needed * 3 / 2, "{peak} bytes, needed {needed}");
    }
}

#[test]
fn a_table_has_a_line_for_each_case_and_pass() {
    let options = ["--filter", SMALL, "--rounds", "2", "--pass", "forward", "--threads", "1"];
    let table = said(&[&["bench"], &options[..]].concat());
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("case") && lines[1].starts_with(SMALL), "{table}");
    assert_eq!(lines[0].chars().count(), lines[1].chars().count(), "{table}");
    assert!(lines[1].contains("GFLOP/s") && lines[1].contains('%') && lines[1].contains("MiB"));
}

#[test]
fn the_cases_are_named_as_the_comparison_expects() {
    let list = said(&["bench", "--list"]);
    let names: Vec<&str> = list.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "dot-f32-b2h8n1024d64",
            "dot-f32-b2h8n1024d64-causal",
            "dot-f32-b1h8n4096d64",
            "dot-f32-b1h1n4096d64",
            "dot-f32-b32h8n128d32",
            "dot-f32-b1h8n4096d64-window128",
            "additive-f32-b4h1n256d256",
            "dot-f32-b4h1n256d256",
            "additive-f32-n20000e400000h8d16-gatv2",
            "dot-f32-b1hq32hk8n4096d128-decode",
            "dot-bf16-b2h8n1024d64",
            "dot-f64-b2h8n1024d64",
            "step-f32-transformer-b32t128d256h8",
            "step-f32-gru-b64t20h256v8000",
            "step-f32-gat-n2708e10556",
            "additive-f32-b1h1n32768d128-memory",
        ]
    );
}

#[test]
fn a_filter_that_matches_nothing_is_refused() {
    let output = regard(&["bench", "--filter", "cosine"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("regard: no case has cosine in its name"), "{said}");
}

#[test]
fn another_program_can_take_turns() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(["bench", "--serve", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines =
        format!("{SMALL} forward 2\n{SMALL} forward 1\nsomething else\n{DECODE} forward 1\n");
    program.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers = objects(&String::from_utf8(output.stdout).unwrap());
    let rounds = |answer: &Value| answer["times_ms"].as_array().map(Vec::len);
    assert_eq!(answers.iter().map(rounds).collect::<Vec<_>>(), [Some(2), Some(1), None, Some(1)]);
    assert!(answers[2]["error"].is_string());
}
