//! `inspect`: what of a graph does not run here.

use crate::binary::{json, stdout};

#[test]
fn what_is_unknown_and_what_no_server_runs_is_unsupported() {
    let file = tempfile::Builder::new()
        .suffix(".pbtxt")
        .tempfile()
        .unwrap();
    let graph = r#"
        node { name: "a" op: "NoOp" }
        node { name: "b" op: "Nonsense" }
        node { name: "c" op: "PyFunc" attr { key: "token" value { s: "f" } } }"#;
    std::fs::write(file.path(), graph).unwrap();
    let path = file.path().to_str().unwrap();
    let report = json(&["inspect", path, "--json"]);
    assert_eq!(report["unsupported"]["Nonsense"], 1, "{report}");
    assert_eq!(report["unsupported"]["PyFunc"], 1, "{report}");
    assert_eq!(report["unsupported"]["NoOp"], serde_json::Value::Null);
    // Nor is it among what graphs may be made of.
    assert!(!stdout(&["ops"]).contains("PyFunc"));
}
