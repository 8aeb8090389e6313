//! Are two tensors the same, as far as an op promises?

use tensorfleet_graph::Exactness;
use tensorfleet_status::Code;
use tensorfleet_tensor::{Complex32, Complex64, DType, TString, Tensor, bf16, f16};

use crate::cases::{Case, Expected};
use crate::run::StepResult;

/// What is wrong with the results of a case, judged by what it promises itself.
pub fn judge(case: &Case, results: &[StepResult]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, (step, result)) in case.steps.iter().zip(results).enumerate() {
        let place = if case.steps.len() > 1 {
            format!("step {index}: ")
        } else {
            String::new()
        };
        match (&step.expect, result) {
            (Expected::Tensors(expected), Ok(got)) => {
                if let Some(text) = differences(expected, got, case.exactness) {
                    wrong.push(format!("{place}{text}"));
                }
            }
            (Expected::Reference, Ok(_)) => {}
            (Expected::Error(code, text), Err(status)) => {
                if status.code() != *code || !status.message().contains(text.as_str()) {
                    wrong.push(format!(
                        "{place}expected {code} with '{text}', got {status}"
                    ));
                }
            }
            (Expected::Error(code, _), Ok(got)) => {
                wrong.push(format!("{place}expected {code}, got {got:?}"));
            }
            (_, Err(status)) => wrong.push(format!("{place}failed: {status}")),
        }
    }
    wrong
}

/// What differs between expected and real tensors.
pub fn differences(expected: &[Tensor], got: &[Tensor], exactness: Exactness) -> Option<String> {
    if expected.is_empty() {
        return None;
    }
    if expected.len() != got.len() {
        return Some(format!(
            "{} tensors were expected, got {}",
            expected.len(),
            got.len()
        ));
    }
    expected
        .iter()
        .zip(got)
        .enumerate()
        .find_map(|(index, (want, got))| {
            difference(want, got, exactness)
                .map(|text| format!("output {index}: {text}; expected {want:?}, got {got:?}"))
        })
}

/// What differs between two tensors.
pub fn difference(want: &Tensor, got: &Tensor, exactness: Exactness) -> Option<String> {
    if want.dtype() != got.dtype() {
        return Some(format!("dtype {} instead of {}", got.dtype(), want.dtype()));
    }
    if want.shape() != got.shape() {
        return Some(format!("shape {} instead of {}", got.shape(), want.shape()));
    }
    if exactness == Exactness::Shape {
        return None;
    }
    if want.dtype() == DType::String {
        let (want, got) = (want.slice::<TString>().ok()?, got.slice::<TString>().ok()?);
        return want
            .iter()
            .zip(got)
            .position(|(a, b)| a != b)
            .map(|index| format!("element {index}"));
    }
    let Some((want_values, unit)) = numbers(want) else {
        return (want.bytes() != got.bytes()).then(|| "other bytes".to_owned());
    };
    let (got_values, _) = numbers(got)?;
    let largest = want_values
        .iter()
        .filter(|v| v.is_finite())
        .fold(0.0f64, |max, v| max.max(v.abs()));
    want_values
        .iter()
        .zip(&got_values)
        .position(|(want, got)| !close(*want, *got, unit, largest, exactness))
        .map(|index| {
            format!(
                "element {index} is {} instead of {}",
                got_values[index], want_values[index]
            )
        })
}

/// Floats as doubles with the dtype's rounding unit; `None` for types that must be equal bit by bit.
fn numbers(tensor: &Tensor) -> Option<(Vec<f64>, f64)> {
    Some(match tensor.dtype() {
        DType::F32 => (
            tensor
                .slice::<f32>()
                .ok()?
                .iter()
                .map(|v| f64::from(*v))
                .collect(),
            f64::from(f32::EPSILON),
        ),
        DType::F64 => (tensor.slice::<f64>().ok()?.to_vec(), f64::EPSILON),
        DType::F16 => (
            tensor
                .slice::<f16>()
                .ok()?
                .iter()
                .map(|v| v.to_f64())
                .collect(),
            f16::EPSILON.to_f64(),
        ),
        DType::BF16 => (
            tensor
                .slice::<bf16>()
                .ok()?
                .iter()
                .map(|v| v.to_f64())
                .collect(),
            bf16::EPSILON.to_f64(),
        ),
        DType::C64 => {
            let values = tensor
                .slice::<Complex32>()
                .ok()?
                .iter()
                .flat_map(|v| [f64::from(v.re), f64::from(v.im)]);
            (values.collect(), f64::from(f32::EPSILON))
        }
        DType::C128 => (
            tensor
                .slice::<Complex64>()
                .ok()?
                .iter()
                .flat_map(|v| [v.re, v.im])
                .collect(),
            f64::EPSILON,
        ),
        _ => return None,
    })
}

fn close(want: f64, got: f64, unit: f64, largest: f64, exactness: Exactness) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    if want == got {
        return exactness != Exactness::Bits
            || want.is_sign_negative() == got.is_sign_negative()
            || want != 0.0;
    }
    if want.is_infinite() || got.is_infinite() {
        return false;
    }
    let error = (want - got).abs();
    match exactness {
        Exactness::Bits => false,
        // Complex and transcendental results carry a few roundings of their parts.
        Exactness::Rounding => {
            error <= 8.0 * unit * want.abs().max(got.abs()).max(largest * 0.25) || error < 1e-30
        }
        Exactness::Relative(relative) => {
            error <= relative.max(8.0 * unit) * want.abs().max(largest)
        }
        Exactness::Shape => true,
    }
}

/// What differs between our results and TensorFlow's. Error texts may differ, codes may not.
pub fn against(case: &Case, ours: &[StepResult], theirs: Option<&Vec<StepResult>>) -> Vec<String> {
    if case.steps.is_empty() {
        return Vec::new();
    }
    let Some(theirs) = theirs else {
        return vec!["TensorFlow gave no answer".to_owned()];
    };
    let mut wrong = Vec::new();
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let text = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => differences(theirs, ours, case.exactness),
            (Err(ours), Err(theirs)) if ours.code() == theirs.code() => None,
            (Err(ours), Err(theirs)) => Some(format!("we say {ours}; TensorFlow says {theirs}")),
            // A dtype or form that TensorFlow's CPU does not have is ours to add.
            (Ok(_), Err(theirs)) if theirs.code() == Code::Unimplemented => None,
            (Ok(_), Err(theirs)) => Some(format!("we succeed; TensorFlow says {theirs}")),
            (Err(ours), Ok(_)) => Some(format!("TensorFlow succeeds; we say {ours}")),
        };
        wrong.extend(text.map(|text| format!("step {index}: {text}")));
    }
    wrong
}
