//! Gradient rules against central differences.

use std::sync::Arc;

use anyhow::{Context, Result};
use tensorfleet_graph::example::{Example, Expect};
use tensorfleet_graph::gradient::{densify, gradients};
use tensorfleet_graph::{GraphBuilder, OpDef, Output, Registry};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{DType, Tensor};

use crate::cases::build_node;
use crate::expand;

/// The largest relative error that is taken for rounding of the difference quotient.
const TOLERANCE: f64 = 2e-4;

/// What is wrong with the gradient rule of an op, judged on its examples in double.
///
/// The loss is the sum of all float outputs, each weighted by its position, so that no error cancels.
pub fn check(registry: &Arc<Registry>, def: &'static OpDef) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for example in def
        .examples
        .iter()
        .filter(|example| !matches!(example.expect, Expect::Error(..)))
    {
        let found = check_example(registry, def, example)
            .with_context(|| format!("{}/{}", def.name, example.name))?;
        wrong.extend(
            found
                .into_iter()
                .map(|text| format!("{}/{}: {text}", def.name, example.name)),
        );
    }
    Ok(wrong)
}

fn check_example(
    registry: &Arc<Registry>,
    def: &'static OpDef,
    example: &Example,
) -> Result<Vec<String>> {
    let signature = &registry.find(def.name)?.signature;
    let assignments = expand::assignments(def, signature, example)?;
    let in_double = assignments
        .into_iter()
        .find(|types| types.values().any(|dtype| *dtype == DType::F64));
    let Some(types) = in_double else {
        return Ok(Vec::new());
    };
    let mut builder = GraphBuilder::new(registry.clone());
    let mut inputs: Vec<(String, Tensor)> = Vec::new();
    let node = build_node(
        &mut builder,
        def,
        example,
        &types,
        |builder, tensor, label| {
            if tensor.dtype() != DType::F64 {
                return Ok(builder.constant(tensor)?);
            }
            inputs.push((label.to_owned(), tensor));
            Ok(builder
                .op("Placeholder")
                .name(label)
                .attr("dtype", DType::F64)
                .output()?)
        },
    )?;
    let outputs: Vec<Output> = (0..builder.graph().node(node).output_types.len())
        .map(|port| node.output(port))
        .filter(|output| {
            builder
                .graph()
                .output_type(*output)
                .is_some_and(|port| port.dtype == DType::F64)
        })
        .collect();
    if inputs.is_empty() || outputs.is_empty() {
        return Ok(Vec::new());
    }
    let ys: Vec<String> = outputs
        .iter()
        .map(|output| builder.graph().output_name(*output))
        .collect();
    let session = Session::with_registry(
        SessionOptions {
            optimize: false,
            threads: 1,
            ..SessionOptions::default()
        },
        registry.clone(),
    )?;
    // The weights have the shapes of the outputs, which only a run can tell.
    let plain = builder.graph().export()?;
    session.extend(&plain)?;
    let feeds = |inputs: &[(String, Tensor)]| -> Vec<(String, Tensor)> {
        inputs
            .iter()
            .map(|(name, tensor)| (format!("{name}:0"), tensor.clone()))
            .collect()
    };
    let values = run(&session, &feeds(&inputs), &ys)?;
    let weights: Vec<Tensor> = values.iter().map(weights_like).collect::<Result<_>>()?;
    let mut grad_ys = Vec::new();
    for weight in &weights {
        grad_ys.push(Some(builder.constant(weight.clone())?));
    }
    let xs: Vec<Output> = inputs
        .iter()
        .filter_map(|(name, _)| builder.graph().find(name))
        .map(Output::from)
        .collect();
    let grads = gradients(&mut builder, &outputs, &xs, &grad_ys)?;
    let mut names = Vec::new();
    for grad in &grads {
        names.push(match grad {
            Some(grad) => {
                let output = densify(&mut builder, *grad)?;
                Some(builder.graph().output_name(output))
            }
            None => None,
        });
    }
    let session = Session::with_registry(
        SessionOptions {
            optimize: false,
            threads: 1,
            ..SessionOptions::default()
        },
        registry.clone(),
    )?;
    session.extend(&builder.graph().export()?)?;
    let mut wrong = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let analytic = match name {
            Some(name) => run(&session, &feeds(&inputs), std::slice::from_ref(name))?.remove(0),
            None => Tensor::zeros(DType::F64, inputs[index].1.shape().clone())?,
        };
        if analytic.shape() != inputs[index].1.shape() {
            wrong.push(format!(
                "gradient {index} has shape {}, the input {}",
                analytic.shape(),
                inputs[index].1.shape()
            ));
            continue;
        }
        let numeric = numeric(&session, &inputs, index, &ys, &weights)?;
        wrong.extend(compare(index, analytic.slice::<f64>()?, &numeric));
    }
    Ok(wrong)
}

fn compare(index: usize, analytic: &[f64], numeric: &[f64]) -> Option<String> {
    let scale = numeric
        .iter()
        .filter(|v| v.is_finite())
        .fold(1e-3f64, |max, v| max.max(v.abs()));
    let position = analytic
        .iter()
        .zip(numeric)
        .position(|(a, n)| n.is_finite() && (a.is_nan() || (a - n).abs() > TOLERANCE * scale))?;
    Some(format!(
        "gradient {index}, element {position}: the rule says {}, differences say {}",
        analytic[position], numeric[position]
    ))
}

fn run(session: &Session, feeds: &[(String, Tensor)], fetches: &[String]) -> Result<Vec<Tensor>> {
    let feeds: Vec<(&str, Tensor)> = feeds
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.clone()))
        .collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    Ok(session.run(&feeds, &fetches, &[])?)
}

fn weights_like(value: &Tensor) -> Result<Tensor> {
    let weights = (0..value.elements())
        .map(|index| 1.0 + 0.25 * ((index % 7) as f64))
        .collect();
    Ok(Tensor::from_vec(value.shape().clone(), weights)?)
}

/// d(loss)/d(input `index`) by central differences.
fn numeric(
    session: &Session,
    inputs: &[(String, Tensor)],
    index: usize,
    ys: &[String],
    weights: &[Tensor],
) -> Result<Vec<f64>> {
    let loss = |input: &Tensor| -> Result<f64> {
        let feeds: Vec<(String, Tensor)> = inputs
            .iter()
            .enumerate()
            .map(|(position, (name, tensor))| {
                (
                    format!("{name}:0"),
                    if position == index {
                        input.clone()
                    } else {
                        tensor.clone()
                    },
                )
            })
            .collect();
        let mut sum = 0.0;
        for (value, weight) in run(session, &feeds, ys)?.iter().zip(weights) {
            sum += value
                .slice::<f64>()?
                .iter()
                .zip(weight.slice::<f64>()?)
                .map(|(v, w)| v * w)
                .sum::<f64>();
        }
        Ok(sum)
    };
    let original = &inputs[index].1;
    let mut out = Vec::with_capacity(original.elements());
    for element in 0..original.elements() {
        let value = original.slice::<f64>()?[element];
        let delta = 1e-5 * value.abs().max(1.0);
        let mut moved = original.clone();
        moved.slice_mut::<f64>()?[element] = value + delta;
        let above = loss(&moved)?;
        moved.slice_mut::<f64>()?[element] = value - delta;
        let below = loss(&moved)?;
        out.push((above - below) / (2.0 * delta));
    }
    Ok(out)
}
