//! Examples and scripts in real TensorFlow. Skipped, loudly, where there is none.

use std::sync::Arc;

use tensorfleet_math::par::Pool;
use tensorfleet_session::SessionOptions;
use tensorfleet_testkit::{compare, reference, run};

use crate::examples::all_cases;

/// Where we mean to differ, and why.
const DIVERGENCES: &[(&str, &str)] = &[
    (
        "Where/scalar/",
        "TensorFlow's kernel has no case for scalars; the answer is plain",
    ),
    (
        "PlaceholderV2/",
        "TensorFlow refuses the op by the graph's version before it runs",
    ),
    ("Abort/", "TensorFlow's ends the process"),
];

#[test]
fn examples_agree_with_tensorflow() {
    let Some(python) = reference::python() else {
        return;
    };
    let registry = tensorfleet_ops::registry().unwrap();
    let cases = all_cases(&registry);
    let theirs = reference::run_all(&python, &cases).unwrap();
    let pool = Arc::new(Pool::new(2));
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| {
        !DIVERGENCES
            .iter()
            .any(|(prefix, _)| case.name.starts_with(prefix))
    }) {
        let options = SessionOptions {
            pool: Some(pool.clone()),
            ..SessionOptions::default()
        };
        match run::run(case, options) {
            Ok(ours) => wrong.extend(
                compare::against(case, &ours, theirs.get(&case.name))
                    .into_iter()
                    .map(|text| format!("{}: {text}", case.name)),
            ),
            Err(error) => wrong.push(format!("{}: {error:#}", case.name)),
        }
    }
    assert!(cases.len() > 1000, "only {} cases", cases.len());
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
