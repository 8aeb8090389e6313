//! The same in real TensorFlow. Skipped, loudly, where there is none.

mod devices;
mod gradients;
mod optimizers;
mod schedules;

use std::collections::BTreeMap;

use serde_json::Value;
use tensorfleet_client::{DType, Graph, Session, Tensor};
use tensorfleet_testkit::reference;

/// TensorFlow's answers to requests of one kind; none where there is no TensorFlow.
fn ask(kind: &str, mut requests: Vec<Value>) -> Option<Vec<Value>> {
    let python = reference::python()?;
    for request in &mut requests {
        request["kind"] = kind.into();
    }
    let answers = reference::ask(&python, "training.py", &requests).unwrap();
    assert_eq!(answers.len(), requests.len());
    Some(answers)
}

/// Says where two lists of numbers differ.
fn differences(ours: &[f64], theirs: &Value, tolerance: f64) -> Option<String> {
    let theirs: Vec<f64> = theirs
        .as_array()?
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * b.abs().max(1.0);
    if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(close) {
        return None;
    }
    Some(format!("ours {ours:?}, TensorFlow's {theirs:?}"))
}

/// The global variables of a graph by name.
fn values_by_name(g: &Graph, session: &Session) -> BTreeMap<String, Vec<f64>> {
    let variables = g.global_variables();
    let values = session.run(&variables).unwrap();
    let named = variables.iter().zip(values);
    named
        .map(|(variable, value)| (variable.name().to_owned(), numbers(&value)))
        .collect()
}

fn numbers(value: &Tensor) -> Vec<f64> {
    let wide = |value: &Tensor| match value.dtype() {
        DType::I64 => value
            .slice::<i64>()
            .map(|all| all.iter().map(|v| *v as f64).collect()),
        DType::I32 => value
            .slice::<i32>()
            .map(|all| all.iter().map(|v| f64::from(*v)).collect()),
        _ => value
            .slice::<f32>()
            .map(|all| all.iter().map(|v| f64::from(*v)).collect()),
    };
    wide(value).unwrap()
}
