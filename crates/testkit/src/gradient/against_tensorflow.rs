//! Gradient rules against TensorFlow's own, on the examples.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde_json::{Map, Value, json};
use tensorfleet_graph::example::Expect;
use tensorfleet_graph::{OpDef, Registry};
use tensorfleet_proto::TensorProto;
use tensorfleet_tensor::{Complex64, DType, Tensor};

use super::{Differentiated, run};
use crate::reference;

/// What came of asking us for an example's gradients: one for each input, or why there are none.
type Ours = std::result::Result<Vec<Option<Tensor>>, String>;

/// Where our gradients of these ops differ from TensorFlow's, and how many examples were compared. Examples are
/// taken in double where the op has it, else in float; and in complex numbers where it has those.
pub fn differences_from_tensorflow(
    python: &Path,
    registry: &Arc<Registry>,
    ops: impl Iterator<Item = &'static OpDef>,
) -> Result<(Vec<String>, usize)> {
    let (mut names, mut requests, mut all_ours) = (Vec::new(), Vec::new(), Vec::new());
    // Deprecated ops are refused in graphs of today.
    for def in ops.filter(|def| def.deprecated == 0) {
        let works = |expect: &Expect| !matches!(expect, Expect::Error(..));
        for example in def.examples.iter().filter(|example| works(&example.expect)) {
            let name = format!("{}/{}", def.name, example.name);
            let real = match Differentiated::new(registry, def, example, DType::F64) {
                Ok(None) => Differentiated::new(registry, def, example, DType::F32),
                made => made,
            };
            let real = real.with_context(|| name.clone())?;
            let complex = Differentiated::new(registry, def, example, DType::C128);
            let complex = complex.with_context(|| name.clone())?;
            for (made, kind) in [(real, ""), (complex, " in complex")] {
                let Some(made) = made else { continue };
                requests.push(request(&made)?);
                all_ours.push(ours(made));
                names.push(format!("{name}{kind}"));
            }
        }
    }
    let answers = reference::ask(python, "gradients.py", &requests)?;
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for ((name, ours), theirs) in names.iter().zip(&all_ours).zip(&answers) {
        // Where TensorFlow has no gradient, or fails over it, ours is judged by differences alone.
        let Some(theirs) = theirs["gradients"].as_array() else {
            continue;
        };
        compared += 1;
        if let Some(text) = difference(ours, theirs).with_context(|| name.clone())? {
            wrong.push(format!("{name}: {text}"));
        }
    }
    Ok((wrong, compared))
}

/// Those of these ops that TensorFlow has a gradient function for.
pub fn differentiable_in_tensorflow(python: &Path, ops: &[&str]) -> Result<Vec<String>> {
    let answers = reference::ask(python, "gradients.py", &[json!({ "ops": ops })])?;
    let named = answers
        .first()
        .and_then(|answer| answer["differentiable"].as_array());
    let named = named.context("no list of ops")?;
    Ok(named
        .iter()
        .filter_map(|op| op.as_str().map(str::to_owned))
        .collect())
}

fn request(made: &Differentiated) -> Result<Value> {
    let mut feeds = Map::new();
    for (name, tensor) in made.feeds() {
        let bytes = tensor.to_proto()?.encode_to_vec();
        feeds.insert(name, json!(STANDARD.encode(bytes)));
    }
    let xs: Vec<String> = made.feeds().into_iter().map(|(name, _)| name).collect();
    Ok(json!({
        "graph": STANDARD.encode(made.builder.graph().export()?.encode_to_vec()),
        "feeds": feeds,
        "ys": made.ys(),
        "grad_ys": made.names(&made.weight_nodes),
        "xs": xs,
    }))
}

fn ours(mut made: Differentiated) -> Ours {
    let names = made.add_gradients().map_err(|error| format!("{error:#}"))?;
    let wanted: Vec<String> = names.iter().flatten().cloned().collect();
    let session = made.session().map_err(|error| format!("{error:#}"))?;
    let values = run(&session, &made.feeds(), &wanted).map_err(|error| format!("{error:#}"))?;
    let mut values = values.into_iter();
    Ok(names
        .iter()
        .map(|name| name.as_ref().and_then(|_| values.next()))
        .collect())
}

fn difference(ours: &Ours, theirs: &[Value]) -> Result<Option<String>> {
    let ours = match ours {
        Ok(ours) => ours,
        Err(error) => return Ok(Some(format!("TensorFlow has a gradient, we: {error}"))),
    };
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let theirs = match theirs.as_str() {
            Some(text) => {
                let bytes = STANDARD.decode(text)?;
                Some(Tensor::from_proto(&TensorProto::decode(bytes.as_slice())?)?)
            }
            None => None,
        };
        if let Some(text) = one_difference(ours.as_ref(), theirs.as_ref())? {
            return Ok(Some(format!("gradient {index}: {text}")));
        }
    }
    Ok(None)
}

/// Nothing that flows is as good as zeros that flow.
fn one_difference(ours: Option<&Tensor>, theirs: Option<&Tensor>) -> Result<Option<String>> {
    let (a, b) = match (ours, theirs) {
        (None, None) => return Ok(None),
        (Some(ours), Some(theirs)) if ours.shape() != theirs.shape() => {
            let (ours, theirs) = (ours.shape(), theirs.shape());
            return Ok(Some(format!("shape {ours}, TensorFlow's {theirs}")));
        }
        (ours, theirs) => {
            let either = ours.or(theirs);
            let parts = either.map_or(1, |tensor| 1 + usize::from(tensor.dtype().is_complex()));
            let count = parts * either.map_or(0, Tensor::elements);
            let numbers = |tensor: Option<&Tensor>| match tensor {
                Some(tensor) => numbers(tensor),
                None => Ok(vec![0.0; count]),
            };
            (numbers(ours)?, numbers(theirs)?)
        }
    };
    let is_double = ours
        .or(theirs)
        .is_some_and(|tensor| tensor.dtype() != DType::F32);
    let tolerance = if is_double { 1e-9 } else { 1e-4 };
    let finite = b.iter().filter(|value| value.is_finite());
    let scale = finite.fold(1e-3f64, |max, value| max.max(value.abs()));
    let differs = |(a, b): (&f64, &f64)| {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
        !same
    };
    let position = a.iter().zip(&b).position(differs);
    Ok(position.map(|at| format!("element {at} is {}, TensorFlow's {}", a[at], b[at])))
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(match tensor.dtype() {
        DType::C128 => {
            let parts = tensor.slice::<Complex64>()?.iter();
            parts.flat_map(|v| [v.re, v.im]).collect()
        }
        DType::F32 => tensor
            .slice::<f32>()?
            .iter()
            .map(|v| f64::from(*v))
            .collect(),
        _ => tensor.slice::<f64>()?.to_vec(),
    })
}
