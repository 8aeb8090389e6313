//! Calls: arguments, results, functions, functional control flow, exchange between parts.

mod arguments;
mod branch;
mod device_index;
mod partitioned;
mod remote;
mod transfer;
mod while_loop;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "call",
    ops: &[&device_index::OP],
    tables: &[
        &arguments::OPS,
        &branch::OPS,
        &partitioned::OPS,
        &remote::OPS,
        &transfer::OPS,
        &while_loop::OPS,
    ],
};

use std::sync::Arc;

use tensorfleet_kernel::{AsyncCtx, Value};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

/// The tensors among inputs `from..`, moved out.
fn take_args(ctx: &mut AsyncCtx, from: usize) -> Result<Vec<Tensor>> {
    let inputs = ctx.take_inputs();
    let tensors = inputs.into_iter().skip(from).map(|value| match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(internal!("an argument of the call has no value")),
    });
    tensors.collect()
}

/// Calls a function and finishes the node with its results.
fn call_and_finish(func: &tensorfleet_kernel::FuncRef, args: Vec<Tensor>, ctx: AsyncCtx) {
    let env = Arc::clone(ctx.env());
    let wanted = ctx.node().output_types.len();
    let name = func.name.clone();
    let done = Box::new(move |result: Result<Vec<Tensor>>| match result {
        Ok(tensors) if tensors.len() == wanted => ctx.finish_with(tensors),
        Ok(tensors) => ctx.fail(invalid_argument!(
            "function {name} returned {} values, {wanted} were expected",
            tensors.len()
        )),
        Err(status) => ctx.fail(status),
    });
    env.functions.call(func, args, &env, done);
}

/// TensorFlow's idea of truth: a scalar is true if it is not zero or not empty, any other tensor if it has elements.
fn truth(tensor: &Tensor) -> Result<bool> {
    if tensor.rank() > 0 {
        return Ok(tensor.elements() > 0);
    }
    Ok(match tensor.dtype() {
        DType::Bool => tensor.to_scalar::<bool>()?,
        DType::F32 => tensor.to_scalar::<f32>()? != 0.0,
        DType::F64 => tensor.to_scalar::<f64>()? != 0.0,
        DType::I8 => tensor.to_scalar::<i8>()? != 0,
        DType::I16 => tensor.to_scalar::<i16>()? != 0,
        DType::I32 => tensor.to_scalar::<i32>()? != 0,
        DType::I64 => tensor.to_scalar::<i64>()? != 0,
        DType::U8 => tensor.to_scalar::<u8>()? != 0,
        DType::U16 => tensor.to_scalar::<u16>()? != 0,
        DType::U32 => tensor.to_scalar::<u32>()? != 0,
        DType::U64 => tensor.to_scalar::<u64>()? != 0,
        DType::String => !tensor
            .to_scalar::<tensorfleet_tensor::TString>()?
            .is_empty(),
        other => {
            return Err(invalid_argument!(
                "a predicate of dtype {other} cannot be turned into a bool"
            ));
        }
    })
}
