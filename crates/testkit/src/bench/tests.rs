//! Cases of a few nodes, written as TensorFlow's side writes them.

use serde_json::json;
use tempfile::TempDir;
use tensorfleet_graph::GraphBuilder;
use tensorfleet_proto::NodeDef;
use tensorfleet_tensor::{DType, Tensor};

use super::*;

/// The folder of a case that feeds `x`, negates it and runs the target `end`.
fn case(kind: &str) -> TempDir {
    let mut g = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    let x = g.op("Placeholder").name("x").attr("dtype", DType::F32);
    let x = x.output().unwrap();
    g.op("Neg").name("end").input(x).build().unwrap();
    g.op("NoOp").name("init").build().unwrap();
    let feed = Tensor::scalar(2.0_f32).to_proto().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spec = json!({
        "case": "tiny", "kind": kind, "optimize": kind == "import",
        "setup": [{"targets": ["init"]}],
        "step": {"feeds": {"x:0": "feed0.pb"}, "targets": ["end"]},
    });
    let graph = g.finish().export().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("graph.pb"), graph.encode_to_vec()).unwrap();
    fs::write(file("feed0.pb"), feed.encode_to_vec()).unwrap();
    fs::write(file("spec.json"), spec.to_string()).unwrap();
    folder
}

fn error(folder: &TempDir) -> String {
    let error = Timer::open(folder.path()).err();
    format!("{:#}", error.expect("an error"))
}

#[test]
fn times_steps_and_imports() {
    for kind in ["run", "import"] {
        let folder = case(kind);
        let timer = Timer::open(folder.path()).unwrap();
        let length = Duration::from_millis(20);
        let start = Instant::now();
        let round = timer.round(length).unwrap();
        let whole = start.elapsed();
        assert!(whole >= length, "{kind}: {whole:?}");
        assert!(round.iters >= FEWEST, "{kind}: {round:?}");
        let Round {
            median_ns, min_ns, ..
        } = round;
        assert!(
            min_ns > 0 && min_ns as f64 <= median_ns,
            "{kind}: {round:?}"
        );
        assert!(median_ns < whole.as_nanos() as f64, "{kind}: {round:?}");
    }
}

#[test]
fn a_round_has_three_steps_however_short() {
    let folder = case("run");
    let timer = Timer::open(folder.path()).unwrap();
    assert_eq!(timer.round(Duration::ZERO).unwrap().iters, FEWEST);
}

#[test]
fn says_what_is_missing() {
    let folder = case("run");
    let node = NodeDef {
        name: "end".to_owned(),
        op: "NoSuchOp".to_owned(),
        ..NodeDef::default()
    };
    let graph = GraphDef {
        node: vec![node],
        ..GraphDef::default()
    };
    let path = folder.path().join("graph.pb");
    fs::write(path, graph.encode_to_vec()).unwrap();
    let text = error(&folder);
    assert!(text.contains("NoSuchOp"), "{text}");

    let text = error(&case("walk"));
    assert!(text.contains("unknown kind \"walk\""), "{text}");
    let text = error(&tempfile::tempdir().unwrap());
    assert!(text.contains("spec.json"), "{text}");
}

#[test]
fn takes_medians() {
    assert_eq!(median(&[1, 2, 9]), 2.0);
    assert_eq!(median(&[1, 2, 3, 9]), 2.5);
    assert_eq!(median(&[]), 0.0);
}
