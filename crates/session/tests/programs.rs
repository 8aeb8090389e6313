//! Programs as TensorFlow's client builds them give TensorFlow's results. `golden/make.py` makes them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tensorfleet_proto::{GraphDef, TensorProto};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{DType, Tensor};

fn decode<M: prost::Message + Default>(value: &Value) -> M {
    M::decode(STANDARD.decode(value.as_str().unwrap()).unwrap().as_slice()).unwrap()
}

fn tensor(value: &Value) -> Tensor {
    Tensor::from_proto(&decode::<TensorProto>(value)).unwrap()
}

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap())
        .collect()
}

/// Training amplifies roundings from step to step.
fn assert_close(name: &str, ours: &Tensor, theirs: &Tensor) {
    assert_eq!(
        (ours.dtype(), ours.shape()),
        (theirs.dtype(), theirs.shape()),
        "{name}"
    );
    if ours.dtype() != DType::F32 {
        assert_eq!(ours.bytes(), theirs.bytes(), "{name}");
        return;
    }
    for (a, b) in ours
        .slice::<f32>()
        .unwrap()
        .iter()
        .zip(theirs.slice::<f32>().unwrap())
    {
        assert!(
            (a - b).abs() <= 2e-5 * b.abs().max(1.0),
            "{name}: {ours:?} instead of {theirs:?}"
        );
    }
}

fn check(program: &Value, name: &str, optimize: bool) {
    let session = Session::new(SessionOptions {
        optimize,
        ..SessionOptions::default()
    })
    .unwrap();
    session
        .extend(&decode::<GraphDef>(&program["graph"]))
        .unwrap_or_else(|status| panic!("{name}: {status}"));
    for (index, step) in program["steps"].as_array().unwrap().iter().enumerate() {
        let feeds: Vec<(&str, Tensor)> = step["feeds"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.as_str(), tensor(value)))
            .collect();
        let place = format!("{name}, step {index}, optimize {optimize}");
        let values = session
            .run(
                &feeds,
                &strings(&step["fetches"]),
                &strings(&step["targets"]),
            )
            .unwrap_or_else(|status| panic!("{place}: {status}"));
        for (ours, theirs) in values.iter().zip(step["values"].as_array().unwrap()) {
            assert_close(&place, ours, &tensor(theirs));
        }
    }
}

#[test]
fn programs_give_tensorflows_results() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let program: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        check(&program, &name, true);
        check(&program, &name, false);
        count += 1;
    }
    assert!(count >= 20, "only {count} programs");
}
