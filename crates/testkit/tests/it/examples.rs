//! Every example and script holds on our session, with and without rewrites; inferred shapes admit the real ones.

use std::sync::Arc;

use prost::Message as _;
use tensorfleet_graph::{Graph, Registry, infer};
use tensorfleet_math::par::Pool;
use tensorfleet_session::SessionOptions;
use tensorfleet_testkit::cases::{Case, cases_of};
use tensorfleet_testkit::{compare, run};

pub(crate) fn all_cases(registry: &Arc<Registry>) -> Vec<Case> {
    let mut all = Vec::new();
    for def in tensorfleet_ops::all() {
        match cases_of(registry, def) {
            Ok(cases) => all.extend(cases),
            Err(error) => panic!("{error:#}"),
        }
    }
    all
}

fn check(optimize: bool) {
    let registry = tensorfleet_ops::registry().unwrap();
    let pool = Arc::new(Pool::new(2));
    let mut wrong = Vec::new();
    for case in all_cases(&registry) {
        let options = SessionOptions {
            optimize,
            pool: Some(pool.clone()),
            ..SessionOptions::default()
        };
        match run::run(&case, options) {
            Ok(results) => wrong.extend(
                compare::judge(&case, &results)
                    .into_iter()
                    .map(|text| format!("{}: {text}", case.name)),
            ),
            Err(error) => wrong.push(format!("{}: {error:#}", case.name)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} examples fail:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn examples_hold_with_rewrites() {
    check(true);
}

#[test]
fn examples_hold_without_rewrites() {
    check(false);
}

#[test]
fn inferred_shapes_admit_the_real_ones() {
    let registry = tensorfleet_ops::registry().unwrap();
    let pool = Arc::new(Pool::new(1));
    let mut wrong = Vec::new();
    for case in all_cases(&registry) {
        let Some(node) = case.node else { continue };
        let shapes = infer::infer_shapes(&case.graph).unwrap();
        let options = SessionOptions {
            pool: Some(pool.clone()),
            ..SessionOptions::default()
        };
        let Ok(results) = run::run(&case, options) else {
            continue;
        };
        let Some(Ok(tensors)) = results.first() else {
            continue;
        };
        for (port, (tensor, shape)) in tensors.iter().zip(&shapes[node.index()]).enumerate() {
            if !shape.admits(tensor.shape()) {
                wrong.push(format!(
                    "{}: output {port} has shape {}, the rule says {shape}",
                    case.name,
                    tensor.shape()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn graphs_survive_export_and_import() {
    let registry = tensorfleet_ops::registry().unwrap();
    for case in all_cases(&registry) {
        let exported = case.graph.export().unwrap();
        let imported = Graph::import(registry.clone(), &exported)
            .unwrap_or_else(|status| panic!("{}: {status}", case.name));
        // Bytes, because NaN is not equal to itself.
        let again = imported.export().unwrap().encode_to_vec();
        assert!(again == exported.encode_to_vec(), "{} changed", case.name);
    }
}
