//! The program that runs graphs in TensorFlow for all comparisons: it must answer every case,
//! whatever became of the one before.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Placeholder `x`, `y = AddV2(x, x)`, `m = MatMul(x, x)`.
const GRAPH: &str = "Ch0KAXgSC1BsYWNlaG9sZGVyKgsKBWR0eXBlEgIwAQoZCgF5EgVBZGRWMhoBeBoBeCoHCgFUEgIwAQpcCgFtEgZNYXRNdWwaAXgaAXgqEQoLdHJhbnNwb3NlX2ESAigAKgwKBmdyYWRfYhICKAAqBwoBVBICMAEqEQoLdHJhbnNwb3NlX2ISAigAKgwKBmdyYWRfYRICKAAiAwiqEw==";
/// A node `z` of type `NoSuchOp`.
const UNKNOWN_OP: &str = "Cg0KAXoSCE5vU3VjaE9w";
/// The float tensor [1.5, 2].
const TENSOR: &str = "CAESBBICCAIiCAAAwD8AAABA";
/// The float tensor [3, 4].
const DOUBLED: &str = "CAESBBICCAIiCAAAQEAAAIBA";

/// The answers to the lines, or `None` where there is no TensorFlow.
fn answers(lines: &[String]) -> Option<Vec<Value>> {
    let Some(python) = std::env::var_os("TENSORFLEET_TF_PYTHON") else {
        eprintln!("SKIPPED: TENSORFLEET_TF_PYTHON is not set");
        return None;
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/run_graphs.py");
    let mut child = Command::new(python)
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Some(answers.collect())
}

fn case(name: &str, graph: &str, steps: Value) -> String {
    json!({"name": name, "graph": graph, "steps": steps}).to_string()
}

#[test]
fn tensorflow_answers_every_case_in_order() {
    let good = json!({"feeds": {"x:0": TENSOR}, "fetches": ["y:0"]});
    let wrong_shape = json!({"feeds": {"x:0": TENSOR}, "fetches": ["m:0"]});
    let not_fed = json!({"fetches": ["y:0"]});
    let lines = [
        case("first", GRAPH, json!([good, wrong_shape, not_fed, good])),
        "no JSON".to_owned(),
        case("no graph", "@", json!([good])),
        case("unknown op", UNKNOWN_OP, json!([{"targets": ["z"]}])),
        case("last", GRAPH, json!([good])),
    ];
    let Some(answers) = answers(&lines) else {
        return;
    };
    let names: Vec<_> = answers.iter().map(|a| a["name"].as_str()).collect();
    let expected = [
        Some("first"),
        None,
        Some("no graph"),
        Some("unknown op"),
        Some("last"),
    ];
    assert_eq!(names, expected);

    let fetched = json!({"fetches": [DOUBLED]});
    let steps = &answers[0]["steps"];
    assert_eq!((&steps[0], &steps[3]), (&fetched, &fetched));
    assert_eq!(steps[1]["error"]["code"], 3, "{steps:#}");
    assert_eq!(steps[2]["error"]["code"], 3, "{steps:#}");
    assert!(answers[1]["malformed"].is_string());
    assert!(answers[2]["malformed"].is_string());
    assert_eq!(answers[3]["rejected"], true);
    assert_eq!(answers[3]["steps"][0]["error"]["code"], 5);
    assert_eq!(answers[4]["steps"][0], fetched);
}
