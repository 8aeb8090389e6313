//! `PartitionedCall`, `StatefulPartitionedCall`: call a function.
//!
//! TensorFlow: (args: Tin) -> output: Tout, with f: func. Passes inline most calls; these kernels run the rest.
//! SymbolicGradient(input: Tin) -> output: Tout, with f: func, calls the gradient of a function; passes always inline it.

use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, AttrValue, FuncRef, NodeInfo};
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::DType;

use super::{call_and_finish, take_args};

const CALL: OpDef = OpDef {
    inputs: &["args: Tin"],
    outputs: &["output: Tout"],
    attrs: &[
        "Tin: list(type) >= 0",
        "Tout: list(type) >= 0",
        "f: func",
        "config: string = ''",
        "config_proto: string = ''",
        "executor_type: string = ''",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "PartitionedCall",
        ..CALL
    },
    OpDef {
        name: "StatefulPartitionedCall",
        stateful: true,
        distributed: true,
        ..CALL
    },
    OpDef {
        name: "SymbolicGradient",
        inputs: &["input: Tin"],
        outputs: &["output: Tout"],
        attrs: &["Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"],
        gradient: Gradient::None("gradients of gradients are taken after they were inlined"),
        kernels: &[cpu(&[], |node| {
            Err(unimplemented!(
                "the gradient of function {} must be inlined before it runs",
                node.attrs.func("f")?.name
            ))
        })],
        ..OpDef::BLANK
    },
];

/// The gradient that the library gives for the function, else one that is made when it is inlined.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let AttrValue::Func(func) = g.attr("f")? else {
        return Err(unimplemented!("a call without a function"));
    };
    let mut inputs: Vec<Output> = (0..g.num_inputs()).map(|index| g.input(index)).collect();
    let outs: Vec<DType> = inputs.iter().map(|input| g.dtype(*input)).collect();
    for index in 0..g.num_outputs() {
        inputs.push(g.grad(index)?);
    }
    let ins: Vec<DType> = inputs.iter().map(|input| g.dtype(*input)).collect();
    let given = g.builder().graph().library().gradient_of(&func.name);
    let (op, func) = match given.map(str::to_owned) {
        Some(name) => (
            "StatefulPartitionedCall",
            FuncRef {
                name: name.into(),
                ..func
            },
        ),
        None => ("SymbolicGradient", func),
    };
    let node = g.builder().op(op).list(&inputs);
    let node = node.attr("f", AttrValue::Func(func));
    let call = node.attr("Tin", ins).attr("Tout", outs.clone()).build()?;
    let grads = outs.iter().enumerate().map(|(index, dtype)| {
        let flows = dtype.is_floating() || dtype.is_complex();
        flows.then(|| Grad::Dense(call.output(index)))
    });
    Ok(grads.collect())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let func = node.attrs.func("f")?.clone();
    AnyKernel::later(move |mut ctx: AsyncCtx| match take_args(&mut ctx, 0) {
        Ok(args) => call_and_finish(&func, args, ctx),
        Err(status) => ctx.fail(status),
    })
}
