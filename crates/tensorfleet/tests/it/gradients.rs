//! Gradients of the examples: what the client built is what TensorFlow builds for the same loss. Skipped, loudly,
//! where there is no TensorFlow.
//!
//! Each example writes its graph. TensorFlow imports it and takes gradients of the loss itself; what the graph hands to
//! its optimizer must be the same, run by TensorFlow and run by us.

use std::path::Path;

use prost::Message as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tensorfleet::proto::MetaGraphDef;
use tensorfleet::{DType, Graph, Session, Shape, Tensor};
use tensorfleet_testkit::reference;

use crate::data;
use crate::program::Running;

/// How far gradients may lie apart, relative to the larger of them and a hundredth of the largest of their variable.
const TOLERANCE: f32 = 1e-4;
const LEAST: f32 = 1e-2;

/// An example that trains.
struct Case {
    name: &'static str,
    args: &'static [&'static str],
    loss: &'static str,
    feeds: Vec<(&'static str, Tensor)>,
    /// The global norm that it clips gradients to.
    clip: Option<f32>,
}

impl Case {
    fn new(
        name: &'static str,
        loss: &'static str,
        feeds: impl IntoIterator<Item = (&'static str, Tensor)>,
    ) -> Case {
        Case {
            name,
            args: &["--steps", "1"],
            loss,
            feeds: feeds.into_iter().collect(),
            clip: None,
        }
    }

    fn request(&self, graph: &Path) -> Value {
        let feeds = self.feeds.iter();
        let feeds: Map<String, Value> = feeds
            .map(|(name, tensor)| (format!("{name}:0"), to_json(tensor)))
            .collect();
        json!({"graph": graph, "loss": self.loss, "clip": self.clip, "feeds": feeds})
    }
}

fn cases() -> Vec<Case> {
    let line = || data::line(1, 32).unwrap();
    let named = || ["x", "y"].into_iter().zip(<[Tensor; 2]>::from(line()));
    let unnamed = |tensors: Vec<Tensor>| {
        [
            "Placeholder",
            "Placeholder_1",
            "Placeholder_2",
            "Placeholder_3",
        ]
        .into_iter()
        .zip(tensors)
    };
    let clicks = data::clicks(1, 128).unwrap();
    let (users, items) = (clicks.users, clicks.items);
    let columns = (0..5).map(|column| {
        let (x, y) = line();
        let (x, y) = (x.slice::<f32>().unwrap(), y.slice::<f32>().unwrap());
        let values = (0..32).map(|row| [&x[4 * row..4 * row + 4], &y[row..=row]].concat()[column]);
        Tensor::from_vec(Shape::vector(32), values.collect()).unwrap()
    });
    let click_loss = "sigmoid_cross_entropy_loss/value:0";
    vec![
        Case::new("trainer", "Mean:0", named()),
        Case::new("sync_trainer", "Mean:0", named()),
        Case::new("restore_tensorflow", "Mean:0", named()),
        Case::new(
            "drive_tensorflow",
            "Mean:0",
            unnamed(<[Tensor; 2]>::from(line()).to_vec()),
        ),
        Case {
            args: &["--epochs", "1"],
            ..Case::new(
                "dataset",
                "Mean:0",
                ["a", "b", "c", "d", "y"].into_iter().zip(columns),
            )
        },
        // The mean of the losses of four towers.
        Case::new(
            "towers",
            "truediv_4:0",
            unnamed(<[Tensor; 2]>::from(data::circle(1, 64).unwrap()).to_vec()),
        ),
        Case::new(
            "embeddings",
            click_loss,
            unnamed(vec![users.clone(), items.clone(), clicks.clicked.clone()]),
        ),
        Case::new(
            "wide_and_deep",
            click_loss,
            unnamed(vec![users, items, clicks.ages, clicks.clicked]),
        ),
        Case {
            clip: Some(1.0),
            ..Case::new(
                "lstm",
                "Mean:0",
                unnamed(<[Tensor; 2]>::from(data::waves(1, 32, 10).unwrap()).to_vec()),
            )
        },
    ]
}

fn to_json(tensor: &Tensor) -> Value {
    let (dtype, values) = match tensor.dtype() {
        DType::I64 => ("int64", json!(tensor.slice::<i64>().unwrap())),
        _ => ("float32", json!(tensor.slice::<f32>().unwrap())),
    };
    json!({"dtype": dtype, "shape": tensor.shape().dims(), "values": values})
}

/// What TensorFlow tells of a variable's gradient.
#[derive(Deserialize)]
struct Told {
    variable: String,
    /// The tensor that the graph has for it.
    gradient: String,
    /// The rows it is for, if it is sparse.
    indices: Option<String>,
    /// TensorFlow's own gradient.
    theirs: Vec<f32>,
    /// The graph's, run by TensorFlow.
    ours: Vec<f32>,
}

/// The graph's gradients, run by us.
fn ours(case: &Case, graph: &Path, told: &[Told]) -> Vec<Vec<f32>> {
    let mut meta = MetaGraphDef::decode(std::fs::read(graph).unwrap().as_slice()).unwrap();
    // All on one device: where nodes run changes no result.
    for node in &mut meta.graph_def.as_mut().unwrap().node {
        node.device.clear();
    }
    let g = Graph::new();
    g.import_meta_graph(&meta, "").unwrap();
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    let inputs: Vec<_> = case
        .feeds
        .iter()
        .map(|(name, tensor)| (g.tensor(name).unwrap(), tensor.clone()))
        .collect();
    let feeds: Vec<_> = inputs.iter().map(|(x, value)| (x, value.clone())).collect();
    let fetch = |name: &String| session.run_fed(&feeds, &g.tensor(name).unwrap()).unwrap();
    let gradients = told.iter().map(|told| {
        let gradient = fetch(&told.gradient);
        let values = gradient.slice::<f32>().unwrap();
        let Some(indices) = &told.indices else {
            return values.to_vec();
        };
        // Rows are added where they belong.
        let rows = fetch(indices);
        let rows = rows.slice::<i64>().unwrap();
        let width = values.len() / rows.len();
        let mut dense = vec![0.0; told.theirs.len()];
        for (row, values) in rows.iter().zip(values.chunks(width)) {
            let into = &mut dense[*row as usize * width..][..width];
            into.iter_mut()
                .zip(values)
                .for_each(|(to, from)| *to += from);
        }
        dense
    });
    gradients.collect()
}

/// The largest difference, by the measure of [`TOLERANCE`].
fn furthest(ours: &[f32], theirs: &[f32]) -> f32 {
    let largest = theirs
        .iter()
        .fold(0f32, |most, value| most.max(value.abs()));
    assert!(ours.len() == theirs.len() && largest > 0.0, "{theirs:?}");
    let apart = ours.iter().zip(theirs).map(|(ours, theirs)| {
        let size = ours.abs().max(theirs.abs()).max(LEAST * largest);
        (ours - theirs).abs() / size
    });
    apart.fold(0.0, f32::max)
}

#[test]
#[expect(clippy::print_stderr, reason = "how close they are is worth knowing")]
fn gradients_are_tensorflow_s() {
    let Some(python) = reference::python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let cases = cases();
    let path = |case: &Case| dir.path().join(case.name);
    let requests: Vec<Value> = cases
        .iter()
        .map(|case| {
            let graph = path(case);
            let args = [case.args, &["--graph", graph.to_str().unwrap()]].concat();
            Running::start(case.name, &args).finish();
            case.request(&graph)
        })
        .collect();
    let answers = reference::ask(&python, "example_gradients.py", &requests).unwrap();
    assert_eq!(answers.len(), cases.len());
    for (case, answer) in cases.iter().zip(answers) {
        let told: Vec<Told> = serde_json::from_value(answer).unwrap();
        assert!(!told.is_empty(), "{}: no variables", case.name);
        for (told, ours) in told.iter().zip(ours(case, &path(case), &told)) {
            let here = furthest(&ours, &told.theirs);
            let there = furthest(&told.ours, &told.theirs);
            let name = format!("{} {}", case.name, told.variable);
            eprintln!("{name}: {here:.1e} apart here, {there:.1e} in TensorFlow");
            assert!(here < TOLERANCE && there < TOLERANCE, "{name}");
        }
    }
}
