//! Gradient rules against central differences, and against TensorFlow's.

mod against_tensorflow;

use std::sync::Arc;

use anyhow::{Context, Result};
use tensorfleet_graph::example::{Example, Expect};
use tensorfleet_graph::gradient::{densify, gradients};
use tensorfleet_graph::{GraphBuilder, OpDef, Output, Registry};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{Complex64, DType, PartialShape, Tensor};

use crate::cases::build_node;
use crate::expand;

pub use against_tensorflow::{differences_from_tensorflow, differentiable_in_tensorflow};

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

/// An example of an op as a function of its inputs of one dtype.
struct Differentiated {
    builder: GraphBuilder,
    /// The placeholders of the inputs, and their values.
    inputs: Vec<(String, Tensor)>,
    /// The outputs of the dtype.
    outputs: Vec<Output>,
    /// What each output's elements count in the loss, as tensors and as nodes.
    weights: Vec<Tensor>,
    weight_nodes: Vec<Output>,
}

impl Differentiated {
    /// `None` if the example has no input or no output of this dtype.
    fn new(
        registry: &Arc<Registry>,
        def: &'static OpDef,
        example: &Example,
        dtype: DType,
    ) -> Result<Option<Differentiated>> {
        let signature = &registry.find(def.name)?.signature;
        let assignments = expand::assignments(def, signature, example)?;
        // What no type attribute settles may be settled by the signature.
        let types = assignments
            .iter()
            .find(|types| types.values().any(|found| *found == dtype))
            .or_else(|| assignments.iter().find(|types| types.is_empty()));
        let Some(types) = types else {
            return Ok(None);
        };
        let mut builder = GraphBuilder::new(registry.clone());
        let mut inputs: Vec<(String, Tensor)> = Vec::new();
        let node = build_node(
            &mut builder,
            def,
            example,
            types,
            |builder, tensor, label| {
                if tensor.dtype() != dtype {
                    return Ok(builder.constant(tensor)?);
                }
                let shape = PartialShape::from(tensor.shape());
                inputs.push((label.to_owned(), tensor));
                Ok(builder
                    .op("Placeholder")
                    .name(label)
                    .attr("dtype", dtype)
                    .attr("shape", shape)
                    .output()?)
            },
        )?;
        let outputs: Vec<Output> = (0..builder.graph().node(node).output_types.len())
            .map(|port| node.output(port))
            .filter(|output| {
                builder
                    .graph()
                    .output_type(*output)
                    .is_some_and(|port| port.dtype == dtype)
            })
            .collect();
        if inputs.is_empty() || outputs.is_empty() {
            return Ok(None);
        }
        let mut made = Differentiated {
            builder,
            inputs,
            outputs,
            weights: Vec::new(),
            weight_nodes: Vec::new(),
        };
        // The weights have the shapes of the outputs, which only a run can tell.
        let values = run(&made.session()?, &made.feeds(), &made.ys())?;
        for value in &values {
            let weight = weights_like(value)?;
            made.weight_nodes
                .push(made.builder.constant(weight.clone())?);
            made.weights.push(weight);
        }
        Ok(Some(made))
    }

    /// A session on the graph as it is now.
    fn session(&self) -> Result<Session> {
        let options = SessionOptions {
            optimize: false,
            threads: 1,
            ..SessionOptions::default()
        };
        let graph = self.builder.graph();
        let session = Session::with_registry(options, graph.registry().clone())?;
        session.extend(&graph.export()?)?;
        Ok(session)
    }

    fn feeds(&self) -> Vec<(String, Tensor)> {
        let inputs = self.inputs.iter();
        inputs
            .map(|(name, tensor)| (format!("{name}:0"), tensor.clone()))
            .collect()
    }

    fn names(&self, outputs: &[Output]) -> Vec<String> {
        let graph = self.builder.graph();
        outputs
            .iter()
            .map(|output| graph.output_name(*output))
            .collect()
    }

    fn ys(&self) -> Vec<String> {
        self.names(&self.outputs)
    }

    /// Adds the gradients of the weighted outputs: a name for each input, `None` where nothing flows.
    fn add_gradients(&mut self) -> Result<Vec<Option<String>>> {
        let graph = self.builder.graph();
        let inputs = self.inputs.iter();
        let xs: Vec<Output> = inputs
            .filter_map(|(name, _)| graph.find(name))
            .map(Output::from)
            .collect();
        let grad_ys: Vec<Option<Output>> = self.weight_nodes.iter().copied().map(Some).collect();
        let grads = gradients(&mut self.builder, &self.outputs, &xs, &grad_ys)?;
        let mut names = Vec::new();
        for grad in grads {
            names.push(match grad {
                Some(grad) => {
                    let output = densify(&mut self.builder, grad)?;
                    Some(self.builder.graph().output_name(output))
                }
                None => None,
            });
        }
        Ok(names)
    }
}

fn check_example(
    registry: &Arc<Registry>,
    def: &'static OpDef,
    example: &Example,
) -> Result<Vec<String>> {
    let Some(mut made) = Differentiated::new(registry, def, example, DType::F64)? else {
        return Ok(Vec::new());
    };
    let names = made.add_gradients()?;
    let session = made.session()?;
    let (ys, inputs) = (made.ys(), &made.inputs);
    let mut wrong = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let analytic = match name {
            Some(name) => run(&session, &made.feeds(), std::slice::from_ref(name))?.remove(0),
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
        let numeric = numeric(&session, inputs, index, &ys, &made.weights)?;
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
    let shape = value.shape().clone();
    let weights = (0..value.elements()).map(|index| 1.0 + 0.25 * ((index % 7) as f64));
    Ok(match value.dtype() {
        DType::F32 => Tensor::from_vec(shape, weights.map(|weight| weight as f32).collect())?,
        DType::C128 => {
            let turned = weights.map(|weight| Complex64::new(weight, 0.5 - 0.25 * weight));
            Tensor::from_vec(shape, turned.collect())?
        }
        _ => Tensor::from_vec(shape, weights.collect())?,
    })
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
