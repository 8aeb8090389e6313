//! Graphs go to TensorFlow and come from it: the same results here, on our server, in TensorFlow's Python and on
//! TensorFlow's server. Skipped, loudly, where there is no TensorFlow.

use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message;
use serde_json::{Value, json};
use tensorfleet_client::{DType, Graph, Operation, Output, Session, Tensor, gradients};
use tensorfleet_proto::MetaGraphDef;
use tensorfleet_rpc::{Server, free_ports};
use tensorfleet_testkit::reference;

use crate::flow_models::{self, Model};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a part of `tensorflow_graphs.py` on a directory.
fn script(python: &Path, what: &str, dir: &Path) {
    let status = Command::new(python)
        .arg(file("tests/it/tensorflow_graphs.py"))
        .arg(what)
        .arg(dir)
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .status()
        .unwrap();
    assert!(status.success(), "tensorflow_graphs.py {what} failed");
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::I32 => tensor
            .slice::<i32>()
            .unwrap()
            .iter()
            .map(|v| f64::from(*v))
            .collect(),
        _ => tensor
            .slice::<f32>()
            .unwrap()
            .iter()
            .map(|v| f64::from(*v))
            .collect(),
    }
}

fn run(model: &Model, session: &Session) -> Vec<Vec<f64>> {
    for op in &model.before {
        session.run(op).unwrap();
    }
    let feeds: Vec<_> = model
        .feeds
        .iter()
        .map(|(x, value)| (x, value.clone()))
        .collect();
    let values = session.run_fed(&feeds, &model.fetches).unwrap();
    values.iter().map(numbers).collect()
}

fn assert_near(what: &str, found: &[Vec<f64>], wanted: &[Vec<f64>]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(found.len(), wanted.len(), "{what}");
        for (a, b) in found.iter().zip(wanted) {
            assert!(
                (a - b).abs() <= 1e-5 * (1.0 + b.abs()),
                "{what}: {found:?}, not {wanted:?}"
            );
        }
    }
}

#[test]
fn models_give_the_same_here_and_on_our_server() {
    let server = Server::create_local(Default::default()).unwrap();
    for model in flow_models::all() {
        let here = run(&model, &Session::new(&model.graph).unwrap());
        let session = Session::connect(&model.graph, server.target()).unwrap();
        assert_near(model.name, &run(&model, &session), &here);
    }
}

#[test]
fn tensorflow_runs_the_graphs_we_write() {
    let Some(python) = reference::python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for model in flow_models::all() {
        let results = run(&model, &Session::new(&model.graph).unwrap());
        let meta = model.graph.meta_graph_def(None).unwrap();
        let path = dir.path().join(model.name);
        std::fs::write(path.with_extension("meta"), meta.encode_to_vec()).unwrap();
        let feeds: Vec<Value> = model
            .feeds
            .iter()
            .map(|(x, value)| json!({"name": x.name(), "dims": value.shape().dims(), "values": numbers(value)}))
            .collect();
        let names = model.fetches.iter().map(Output::name);
        let fetches: Vec<Value> = names
            .zip(&results)
            .map(|(name, values)| json!({"name": name, "values": values}))
            .collect();
        let before: Vec<String> = model.before.iter().map(Operation::name).collect();
        let told = json!({"before": before, "feeds": feeds, "fetches": fetches});
        std::fs::write(path.with_extension("json"), told.to_string()).unwrap();
    }
    script(&python, "run", dir.path());
}

#[test]
fn we_go_on_with_graphs_that_tensorflow_wrote() {
    let Some(python) = reference::python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    script(&python, "write", dir.path());
    for prefix in ["", "import"] {
        let bytes = std::fs::read(dir.path().join("written.meta")).unwrap();
        let g = Graph::new();
        let meta = MetaGraphDef::decode(bytes.as_slice()).unwrap();
        g.import_meta_graph(&meta, prefix).unwrap();
        let told = std::fs::read(dir.path().join("written.json")).unwrap();
        let told: Value = serde_json::from_slice(&told).unwrap();
        let named = |name: &str| match prefix {
            "" => told[name].as_str().unwrap().to_owned(),
            prefix => format!("{prefix}/{}", told[name].as_str().unwrap()),
        };
        let w = &g.trainable_variables()[0];
        assert_eq!(g.global_variables().len(), 2);
        let y = g.tensor(&named("y")).unwrap();
        // TensorFlow's loop and conditional, our gradient.
        let grad = gradients(&[&y], &[w])
            .unwrap()
            .remove(0)
            .unwrap()
            .to_dense();
        let session = Session::new(&g).unwrap();
        session.run(&g.global_variables_initializer()).unwrap();
        let (y, grad) = session.run((&y, &grad)).unwrap();
        let wanted = |name: &str| -> Vec<f64> {
            let values = told[name].as_array().unwrap();
            values.iter().map(|value| value.as_f64().unwrap()).collect()
        };
        assert_near("y", &[numbers(&y)], &[wanted("value")]);
        assert_near("gradient", &[numbers(&grad)], &[wanted("gradient")]);
    }
}

#[test]
fn models_give_the_same_on_tensorflow_s_server() {
    let Some(python) = reference::python() else {
        return;
    };
    let port = free_ports("localhost", 1).unwrap()[0];
    let job = reference::Job {
        name: "local",
        addresses: &[format!("localhost:{port}")],
        config: "",
    };
    let servers = reference::TfServers::start(&python, &[job]).unwrap();
    let target = &servers.targets()[0];
    for model in flow_models::all() {
        let here = run(&model, &Session::new(&model.graph).unwrap());
        let there = Session::connect(&model.graph, target).unwrap();
        assert_near(model.name, &run(&model, &there), &here);
    }
}
