//! Running one node: inputs prepared, kernel called, panics and missing outputs turned into statuses.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::{FrameIter, Kernel, KernelCtx, NodeInfo, Outputs, StepEnv, Value};
use tensorfleet_math::par::GivenUp;
use tensorfleet_status::{Code, Result, Status, internal, invalid_argument, panic_text};
use tensorfleet_tensor::{DType, TString, Tensor};

use crate::plan::{Kind, PlanNode};

/// Reads references where the node wants values; an uninitialised one is an error unless the op takes it.
#[inline]
pub(crate) fn prepare(node: &PlanNode, inputs: &mut [Value]) -> Result<()> {
    if !node.derefs {
        return Ok(());
    }
    for (value, wanted) in inputs.iter_mut().zip(&node.info.input_types) {
        if let Value::Ref(var) = value
            && !wanted.is_ref
        {
            let tensor = if node.allows_uninitialized && !var.is_initialized() {
                None
            } else {
                Some(var.get()?)
            };
            *value = tensor.map_or(Value::Empty, Value::Tensor);
        }
    }
    Ok(())
}

/// How much a kernel is given: elements, bytes of few strings, and, if it is `sized`, how much the numbers tell it to make.
#[inline]
pub(crate) fn extent(inputs: &[Value], sized: bool) -> usize {
    let extents = inputs.iter().map(|value| match value {
        Value::Tensor(tensor) => match tensor.elements() {
            0 => rows(tensor),
            few @ 1..=FEW => few.saturating_add(said(tensor, sized)),
            many => many,
        },
        _ => 0,
    });
    extents.fold(0, usize::saturating_add)
}

/// Most elements of a tensor that may be a shape or a size.
const FEW: usize = 16;

/// A tensor without elements may still have any number of rows.
#[cold]
fn rows(tensor: &Tensor) -> usize {
    let dims = tensor.shape().iter();
    let dims = dims.map(|dim| usize::try_from(*dim).unwrap_or(0).max(1));
    dims.fold(1, usize::saturating_mul)
}

/// What a small tensor asks for.
fn said(tensor: &Tensor, sized: bool) -> usize {
    let steps = |value: f64| {
        let size = value.abs();
        if (0.0..1.0).contains(&size) {
            size.recip()
        } else {
            size
        }
    };
    let product = |sizes: &mut dyn Iterator<Item = f64>| {
        sizes.filter(|size| size.is_finite()).product::<f64>() as usize
    };
    match tensor.dtype() {
        DType::String => {
            let texts = tensor.slice::<TString>().unwrap_or_default();
            texts.iter().map(TString::len).sum()
        }
        DType::I32 if sized => {
            let values = tensor.slice::<i32>().unwrap_or_default();
            product(&mut values.iter().map(|value| f64::from(*value).abs().max(1.0)))
        }
        DType::I64 if sized => {
            let values = tensor.slice::<i64>().unwrap_or_default();
            product(&mut values.iter().map(|value| (*value as f64).abs().max(1.0)))
        }
        DType::F32 if sized => {
            let values = tensor.slice::<f32>().unwrap_or_default();
            product(&mut values.iter().map(|value| steps(f64::from(*value))))
        }
        DType::F64 if sized => {
            let values = tensor.slice::<f64>().unwrap_or_default();
            product(&mut values.iter().map(|value| steps(*value)))
        }
        _ => 0,
    }
}

/// Calls a synchronous kernel on whatever thread. A panic fails the step, not the process.
#[inline]
pub(crate) fn call(
    kernel: &dyn Kernel,
    info: &NodeInfo,
    env: &Arc<StepEnv>,
    inputs: &mut [Value],
    outputs: &mut [Value],
    frame: FrameIter,
    dead: bool,
) -> Result<()> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let watched = !info.has_effects();
        let mut ctx = KernelCtx::new(info, env, inputs, outputs)
            .in_frame(frame, dead)
            .watched(watched);
        compute(kernel, watched, env, &mut ctx)
    }));
    result.unwrap_or_else(|panic| Err(ended_by(info, env, &*panic)))?;
    check_outputs(info, outputs)
}

/// Runs a kernel; one that is `watched`, as nobody could see what is half done, is given up where it asks whether it is still
/// wanted.
#[inline]
pub(crate) fn compute(
    kernel: &dyn Kernel,
    watched: bool,
    env: &StepEnv,
    ctx: &mut KernelCtx<'_>,
) -> Result<()> {
    if watched {
        env.par.watch(|| kernel.compute(ctx))
    } else {
        kernel.compute(ctx)
    }
}

/// A kernel must have set all of its outputs that somebody reads.
#[inline]
pub(crate) fn check_outputs(info: &NodeInfo, outputs: &[Value]) -> Result<()> {
    let missing =
        |(index, output): (usize, &Value)| matches!(output, Value::Empty) && info.is_read(index);
    match outputs.iter().enumerate().position(missing) {
        None => Ok(()),
        Some(index) => Err(internal!(
            "Missing {index}-th output from {{{{node {}}}}}",
            info.name
        )),
    }
}

/// The status of a kernel that panicked, or that was given up because the step was.
pub(crate) fn ended_by(info: &NodeInfo, env: &StepEnv, panic: &(dyn Any + Send)) -> Status {
    if GivenUp::is_in(panic) {
        return env.cancel.reason();
    }
    let text = panic_text(panic);
    internal!(
        "the kernel of op {} (node '{}') panicked: {text}",
        info.op,
        info.name
    )
}

/// Adds the node to an error, once, the way TensorFlow's Python client finds it.
#[cold]
pub(crate) fn at_node(status: Status, node: &PlanNode) -> Status {
    let name = &node.info.name;
    let tag = if status.message().contains("{{node ") {
        format!("\n\t [[{name}]]")
    } else {
        format!("\n\t [[{{{{node {name}}}}}]]")
    };
    let status = status.append(tag);
    // Clients take UNAVAILABLE for a lost peer and retry; only communication may say so.
    if status.code() == Code::Unavailable && node.kind != Kind::Transfer {
        return status.with_code(Code::Internal);
    }
    status
}

/// Runs a control-flow node, which needs no kernel.
#[inline]
pub(crate) fn control(node: &PlanNode, inputs: &mut [Value], outputs: &mut [Value]) -> Result<()> {
    match node.kind {
        Kind::Switch => switch(node, inputs, outputs),
        Kind::Merge => {
            let chosen = inputs
                .iter_mut()
                .enumerate()
                .find(|(_, value)| !matches!(value, Value::Empty));
            let Some((index, value)) = chosen else {
                return Err(internal!("a Merge ran without a live input"));
            };
            hand_over(value, outputs, 0);
            if node.marked {
                let index = i32::try_from(index).unwrap_or(i32::MAX);
                if let Some(output) = outputs.get_mut(1) {
                    *output = Value::Tensor(Tensor::scalar(index));
                }
            }
            Ok(())
        }
        Kind::ControlTrigger => Ok(()),
        _ => {
            if let Some(value) = inputs.first_mut() {
                hand_over(value, outputs, 0);
            }
            Ok(())
        }
    }
}

/// Moves an input to an output, which is empty.
#[inline]
fn hand_over(input: &mut Value, outputs: &mut [Value], index: usize) {
    if let Some(output) = outputs.get_mut(index) {
        std::mem::swap(input, output);
    }
}

/// The data goes to the output that the predicate (or, for `_SwitchN`, the index) names; the others are dead.
fn switch(node: &PlanNode, inputs: &mut [Value], outputs: &mut [Value]) -> Result<()> {
    let [data, Value::Tensor(selector)] = inputs else {
        return Err(internal!("a Switch ran without its predicate"));
    };
    if selector.elements() != 1 {
        return Err(invalid_argument!(
            "The second input must be a scalar, but it has shape {}",
            selector.shape()
        ));
    }
    let port = match selector.dtype() {
        DType::Bool => usize::from(selector.to_scalar::<bool>()?),
        _ => {
            let index = selector.to_scalar::<i32>()?;
            let last = node.outputs.saturating_sub(1) as usize;
            usize::try_from(index).map_or(last, |index| index.min(last))
        }
    };
    hand_over(data, outputs, port);
    Ok(())
}

/// Empty outputs for a run.
#[inline]
pub(crate) fn empty_outputs(count: u32) -> Outputs {
    let mut outputs: Outputs = SmallVec::new();
    outputs.resize_with(count as usize, Value::default);
    outputs
}
