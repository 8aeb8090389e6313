//! Malformed graphs and runs: the status TensorFlow gives, a text that names the culprit, and never a panic.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde_json::Value;
use tensorfleet_proto::{GraphDef, text};
use tensorfleet_session::{RunOptions, Session, SessionOptions};
use tensorfleet_status::{Code, Status};
use tensorfleet_tensor::Tensor;

const CONST: &str = r#"node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }"#;

fn session() -> Session {
    Session::new(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    })
    .unwrap()
}

fn extend(source: &str) -> Result<Session, Status> {
    let session = session();
    let def: GraphDef = text::parse(source).unwrap_or_else(|error| panic!("{error}: {source}"));
    session.extend(&def).map(|()| session)
}

/// The graph is refused with this code and a text that contains this.
fn refused(name: &str, nodes: &str, code: Code, part: &str) {
    let source = format!("{CONST} {nodes}");
    match extend(&source) {
        Ok(_) => panic!("{name}: the graph was accepted"),
        Err(status) => {
            assert_eq!(status.code(), code, "{name}: {status}");
            assert!(
                status.message().contains(part),
                "{name}: '{part}' is missing in: {status}"
            );
        }
    }
}

#[test]
fn malformed_graphs_are_refused() {
    let float = r#"attr { key: "T" value { type: DT_FLOAT } }"#;
    let cases = [
        ("two nodes of one name", CONST.to_owned(), Code::InvalidArgument, "'c'"),
        ("bad name", r#"node { name: "a b" op: "NoOp" }"#.to_owned(), Code::InvalidArgument, "a b"),
        ("no name", r#"node { op: "NoOp" }"#.to_owned(), Code::InvalidArgument, "name"),
        ("unknown op", r#"node { name: "x" op: "Nonsense" }"#.to_owned(), Code::NotFound, "Op type not registered 'Nonsense'"),
        ("missing input", format!(r#"node {{ name: "x" op: "Identity" input: "gone" {float} }}"#), Code::InvalidArgument, "gone"),
        ("too few inputs", format!(r#"node {{ name: "x" op: "Identity" {float} }}"#), Code::InvalidArgument, "x"),
        ("too many inputs", format!(r#"node {{ name: "x" op: "Identity" input: "c" input: "c" {float} }}"#), Code::InvalidArgument, "x"),
        ("no such output", format!(r#"node {{ name: "x" op: "Identity" input: "c:1" {float} }}"#), Code::InvalidArgument, "Node 'x': Connecting to invalid output 1 of source node c which has 1 outputs."),
        (
            "no such output of a loop",
            format!(r#"node {{ name: "w" op: "StatelessWhile" input: "c" attr {{ key: "T" value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: "cond" value {{ func {{ name: "f" }} }} }} attr {{ key: "body" value {{ func {{ name: "f" }} }} }} }} node {{ name: "x" op: "Identity" input: "w:1" {float} }}"#),
            Code::InvalidArgument,
            "which has 1 outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True).",
        ),
        ("malformed output", format!(r#"node {{ name: "x" op: "Identity" input: "c:x" {float} }}"#), Code::InvalidArgument, "c:x"),
        ("wrong dtype", r#"node { name: "x" op: "Identity" input: "c" attr { key: "T" value { type: DT_INT32 } } }"#.to_owned(), Code::InvalidArgument, "float"),
        ("no dtype", r#"node { name: "x" op: "Identity" input: "c" }"#.to_owned(), Code::NotFound, "No attr named 'T'"),
        ("attr of another type", r#"node { name: "x" op: "Identity" input: "c" attr { key: "T" value { i: 3 } } }"#.to_owned(), Code::InvalidArgument, "T"),
        ("dtype that is not allowed", r#"node { name: "x" op: "Exp" input: "c" attr { key: "T" value { type: DT_STRING } } }"#.to_owned(), Code::InvalidArgument, "allowed"),
        ("control before data", format!(r#"node {{ name: "x" op: "Identity" input: "^c" input: "c" {float} }}"#), Code::InvalidArgument, "x"),
        ("too small a number", format!(r#"node {{ name: "x" op: "AddN" attr {{ key: "N" value {{ i: 0 }} }} {float} }}"#), Code::InvalidArgument, "minimum"),
        ("absurd number", format!(r#"node {{ name: "x" op: "AddN" attr {{ key: "N" value {{ i: 9223372036854775807 }} }} {float} }}"#), Code::InvalidArgument, "N"),
        (
            "cycle",
            format!(r#"node {{ name: "x" op: "Identity" input: "y" {float} }} node {{ name: "y" op: "Identity" input: "x" {float} }}"#),
            Code::InvalidArgument,
            "cycle",
        ),
        (
            "constant of a negative shape",
            r#"node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } } } } }"#.to_owned(),
            Code::InvalidArgument,
            "-5",
        ),
        (
            "constant of an absurd shape",
            r#"node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } } } } } }"#.to_owned(),
            Code::InvalidArgument,
            "overflow",
        ),
        (
            "constant with too little content",
            r#"node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: "abc" } } } }"#.to_owned(),
            Code::InvalidArgument,
            "3 bytes",
        ),
        ("function without a name", r#"library { function { } }"#.to_owned(), Code::InvalidArgument, "signature"),
        ("function named like an op", r#"library { function { signature { name: "Identity" } } }"#.to_owned(), Code::InvalidArgument, "Identity"),
        ("needs a newer reader", r#"versions { producer: 9999 min_consumer: 9999 }"#.to_owned(), Code::InvalidArgument, "9999"),
    ];
    for (name, nodes, code, part) in &cases {
        refused(name, nodes, *code, part);
    }
}

#[test]
fn a_refused_extension_changes_nothing() {
    let session = extend(CONST).unwrap();
    let bad: GraphDef =
        text::parse(r#"node { name: "good" op: "NoOp" } node { name: "bad" op: "Nonsense" }"#)
            .unwrap();
    assert!(session.extend(&bad).is_err());
    assert_eq!(session.graph().len(), 1);
    assert_eq!(
        session.run(&[], &["c:0"], &[]).unwrap()[0]
            .to_scalar::<f32>()
            .unwrap(),
        1.0
    );
}

#[test]
fn graphs_may_hold_what_no_step_may_run() {
    let types =
        |name: &str| format!(r#"attr {{ key: "{name}" value {{ list {{ type: DT_FLOAT }} }} }}"#);
    let (takes, gives) = (types("Tin"), types("Tout"));
    let python = |op: &str| {
        format!(
            r#"node {{ name: "{op}" op: "{op}" input: "c" attr {{ key: "token" value {{ s: "f7" }} }} {takes} {gives} }}"#
        )
    };
    let kept = |op: &str| {
        format!(
            r#"node {{ name: "{op}" op: "{op}" input: "c" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}"#
        )
    };
    let functions = ["PyFunc", "PyFuncStateless", "EagerPyFunc"];
    let handles = ["GetSessionHandle", "GetSessionHandleV2"];
    let nodes: Vec<String> = functions
        .map(python)
        .into_iter()
        .chain(handles.map(kept))
        .collect();
    let session = extend(&format!("{CONST} {}", nodes.join(" "))).unwrap();
    assert!(session.run(&[], &["c:0"], &[]).is_ok());
    let fails = |op: &str, code: Code, parts: &[&str]| {
        let status = session.run(&[], &[&format!("{op}:0")], &[]).unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        let node = format!("[[{{{{node {op}}}}}]]");
        for part in parts.iter().chain(&[node.as_str()]) {
            assert!(
                status.message().contains(part),
                "'{part}' is missing in: {status}"
            );
        }
    };
    for op in functions {
        fails(
            op,
            Code::InvalidArgument,
            &["callback with key=f7", op, "feed"],
        );
    }
    for op in handles {
        fails(
            op,
            Code::FailedPrecondition,
            &["GetSessionHandle called on null session state", "variables"],
        );
    }
}

#[test]
fn wrong_runs_name_the_culprit() {
    let source = format!(
        r#"{CONST} node {{ name: "p" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }} node {{ name: "n" op: "NoOp" }}"#
    );
    let session = extend(&source).unwrap();
    let check =
        |feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str], code: Code, part: &str| {
            let status = session.run(feeds, fetches, targets).unwrap_err();
            assert_eq!(status.code(), code, "{status}");
            assert!(
                status.message().contains(part),
                "'{part}' is missing in: {status}"
            );
        };
    let one = || Tensor::scalar(1.0f32);
    check(
        &[("gone:0", one())],
        &["c:0"],
        &[],
        Code::NotFound,
        "FeedInputs: unable to find feed output gone:0",
    );
    check(
        &[("p:1", one())],
        &["c:0"],
        &[],
        Code::InvalidArgument,
        "p:1",
    );
    check(
        &[("p:0", Tensor::scalar(1i32))],
        &["p:0"],
        &[],
        Code::InvalidArgument,
        "p:0",
    );
    check(
        &[("p:0", one()), ("p", one())],
        &["p:0"],
        &[],
        Code::InvalidArgument,
        "more than once",
    );
    check(
        &[],
        &["gone:0"],
        &[],
        Code::NotFound,
        "FetchOutputs node gone:0: not found",
    );
    check(&[], &["c:7"], &[], Code::InvalidArgument, "c:7");
    check(&[], &["n:0"], &[], Code::InvalidArgument, "no output");
    check(
        &[],
        &[],
        &["gone"],
        Code::NotFound,
        "PruneForTargets: Some target nodes not found: gone",
    );
    check(
        &[],
        &["p:0"],
        &[],
        Code::InvalidArgument,
        "You must feed a value for placeholder tensor 'p' with dtype float",
    );
    session.close();
    check(
        &[],
        &["c:0"],
        &[],
        Code::FailedPrecondition,
        "Session is closed.",
    );
}

/// Flips bytes of real graphs: whatever comes of it, nothing panics and nothing hangs.
#[test]
fn damaged_graphs_never_panic() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let program: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let original = STANDARD.decode(program["graph"].as_str().unwrap()).unwrap();
        let step = &program["steps"][0];
        let names = |key: &str| -> Vec<String> {
            step[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap().to_owned())
                .collect()
        };
        let (fetches, targets) = (names("fetches"), names("targets"));
        for _ in 0..40 {
            let mut bytes = original.clone();
            for _ in 0..1 + next() % 4 {
                let at = (next() % bytes.len() as u64) as usize;
                bytes[at] = next() as u8;
            }
            let Ok(def) = GraphDef::decode(bytes.as_slice()) else {
                continue;
            };
            let session = session();
            if session.extend(&def).is_err() {
                continue;
            }
            let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            let options = RunOptions {
                timeout: Some(std::time::Duration::from_secs(2)),
                trace: false,
            };
            // Any answer will do.
            let _ = session.run_with(&options, &[], &fetches, &targets);
        }
    }
}
