//! Examples and scripts in real TensorFlow. Skipped, loudly, where there is none.

use std::sync::Arc;

use tensorfleet_graph::Gradient;
use tensorfleet_math::par::Pool;
use tensorfleet_session::SessionOptions;
use tensorfleet_testkit::{compare, gradient, reference, run};

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
    (
        "ApproxTopK/smallest of columns",
        "TensorFlow's CPU kernel knows the largest of rows only",
    ),
    ("SelfAdjointEigV2/values only", UNSET),
    ("Svd/values only", UNSET),
];

/// What oneDNN says where it has no loop for a type and a processor: half precision needs AVX512-FP16. TensorFlow's `_Mkl` ops,
/// which have no other loops, cannot be asked there.
const NO_PRIMITIVE: &str = "could not create a primitive descriptor";

#[test]
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
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
            Ok(ours) => {
                let differences = compare::against(case, &ours, theirs.get(&case.name));
                for text in differences {
                    if case.name.starts_with("_Mkl") && text.contains(NO_PRIMITIVE) {
                        eprintln!("{}: skipped, oneDNN has no loop for it here", case.name);
                    } else {
                        wrong.push(format!("{}: {text}", case.name));
                    }
                }
            }
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

/// Where our gradients are others than TensorFlow's, and why: (op or op/example, why).
const OTHER_GRADIENTS: &[(&str, &str)] = &[
    ("MatrixDiagV2/", PADDING),
    ("MatrixDiagV3/", PADDING),
    ("MatrixDiagPartV2/", PADDING),
    ("MatrixDiagPartV3/", PADDING),
    ("PadV2/", PADDING),
    (
        "SoftmaxCrossEntropyWithLogits/",
        "TensorFlow leaves out what flows from the second output to the labels",
    ),
    (
        "Zeta/poles and beyond",
        "at a pole, minus infinity where TensorFlow has no number",
    ),
    ("Acosh/one in complex", POLE),
    ("Acos/one in complex", POLE),
    ("Acos/curve in complex", POLE),
    ("Asin/curve in complex", POLE),
    (
        "TridiagonalSolve/singular, perturbed",
        "TensorFlow perturbs a pivot by more where the quotient would be too large",
    ),
    ("SparseSegmentSum/nothing picked", UNSET),
    ("SparseSegmentSumWithNumSegments/nothing picked", UNSET),
    ("SparseSegmentMean/nothing picked", UNSET),
    ("SparseSegmentMeanWithNumSegments/nothing picked", UNSET),
    ("SparseSegmentSqrtN/nothing picked", UNSET),
    ("SparseSegmentSqrtNWithNumSegments/nothing picked", UNSET),
];

const POLE: &str = "at a pole, no number where TensorFlow has infinity";
const UNSET: &str = "TensorFlow's kernel leaves its memory as it was";
const PADDING: &str =
    "TensorFlow lets nothing flow to the value that pads; differences say that it does";

#[test]
fn gradients_agree_with_tensorflow() {
    let Some(python) = reference::python() else {
        return;
    };
    let registry = tensorfleet_ops::registry().unwrap();
    let (mut wrong, compared) =
        gradient::differences_from_tensorflow(&python, &registry, tensorfleet_ops::all()).unwrap();
    wrong.retain(|text| {
        !OTHER_GRADIENTS
            .iter()
            .any(|(name, _)| text.starts_with(name))
    });
    assert!(compared > 800, "only {compared} examples");
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Ops that TensorFlow differentiates and whose definition has no rule, and why.
const OTHERWISE: &[(&[&str], &str)] = &[
    (
        &[
            "If",
            "StatelessIf",
            "Case",
            "StatelessCase",
            "While",
            "StatelessWhile",
        ],
        "the driver makes functions for them",
    ),
    (
        &[
            "Enter",
            "RefEnter",
            "Exit",
            "RefExit",
            "NextIteration",
            "RefNextIteration",
            "LoopCond",
            "Switch",
            "RefSwitch",
            "Merge",
            "RefMerge",
            "RefIdentity",
        ],
        "gradients are taken of conditionals and loops as functions only",
    ),
    (
        &[
            "PreventGradient",
            "SparseDenseCwiseAdd",
            "SparseSparseMaximum",
            "SparseSparseMinimum",
        ],
        "TensorFlow's function only fails",
    ),
];

#[test]
fn what_tensorflow_differentiates_has_a_rule() {
    let Some(python) = reference::python() else {
        return;
    };
    let without = tensorfleet_ops::all().filter(|def| matches!(def.gradient, Gradient::None(_)));
    let without: Vec<&str> = without.map(|def| def.name).collect();
    let mut missing = gradient::differentiable_in_tensorflow(&python, &without).unwrap();
    missing.retain(|op| !OTHERWISE.iter().any(|(ops, _)| ops.contains(&op.as_str())));
    assert!(missing.is_empty(), "no gradient rule: {missing:?}");
}
