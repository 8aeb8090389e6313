//! `TemporaryVariable` and `DestroyTemporaryVariable`: a mutable tensor that lives within one step.
//!
//! TensorFlow: TemporaryVariable() -> ref: Ref(dtype), with attrs shape: shape, dtype: type, var_name: string = "";
//! DestroyTemporaryVariable(ref: Ref(T)) -> value: T, with attr var_name: string. Every iteration of a loop has its
//! own. It starts with zeros; TensorFlow leaves it as memory happens to be.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, RefVar, Resource, StepEnv, Value};
use tensorfleet_status::{Code, Result, already_exists, not_found};
use tensorfleet_tensor::Tensor;

use super::NO_GRADIENT;
use super::variable_v2::declared_shape;

const TYPE_NAME: &str = "N10tensorflow19TemporaryVariableOp6TmpVarE";

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TemporaryVariable",
        outputs: &["ref: Ref(dtype)"],
        attrs: &["shape: shape", "dtype: type", "var_name: string = ''"],
        stateful: true,
        infer: infer::from_shape_attr,
        gradient: Gradient::Stop("a variable has no inputs"),
        kernels: &[cpu(&[], build_make)],
        cost: Cost::Cheap,
        exactness: Exactness::Bits,
        scripts: &[SUM, NAMES],
        ..OpDef::BLANK
    },
    OpDef {
        name: "DestroyTemporaryVariable",
        inputs: &["ref: Ref(T)"],
        outputs: &["value: T"],
        attrs: &["T: type", "var_name: string"],
        infer: infer::same_as_first,
        gradient: NO_GRADIENT,
        kernels: &[cpu(&[], build_destroy)],
        cost: Cost::Cheap,
        exactness: Exactness::Bits,
        scripts: &[SUM],
        ..OpDef::BLANK
    },
];

const SUM: Script = script(
    "a sum in place, anew in every step",
    "t = TemporaryVariable() {shape=[2], dtype=DT_FLOAT, var_name='sum'}
     a = float[2]{4, 5}
     b = float[2]{6, 7}
     set = Assign(t, a)
     add = AssignAdd(set, b)
     sum = DestroyTemporaryVariable(add) {var_name='sum'}",
    &[
        "fetch sum => float[2]{10, 12}",
        "fetch sum => float[2]{10, 12}",
    ],
);

const NAMES: Script = script(
    "names taken twice and names of nobody",
    "t = TemporaryVariable() {shape=[2], dtype=DT_FLOAT, var_name='t'}
     u = TemporaryVariable() {shape=[2], dtype=DT_FLOAT, var_name='t'}
     a = float[2]{4, 5}
     set = Assign(t, a)
     wrong = DestroyTemporaryVariable(set) {var_name='other'}",
    &[
        "fetch t, u fails ALREADY_EXISTS /t/frame:0/iter:0/N10tensorflow19TemporaryVariableOp6TmpVarE",
        "fetch wrong fails NOT_FOUND /other/frame:0/iter:0/N10tensorflow19TemporaryVariableOp6TmpVarE does not exist.",
    ],
);

/// Takes the name in the step.
struct Temporary;

impl Resource for Temporary {
    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }
}

/// The name in this frame and iteration.
fn name_in_frame(ctx: &KernelCtx<'_>, name: &str) -> String {
    let frame = ctx.frame();
    format!("{name}/frame:{}/iter:{}", frame.frame_id, frame.iteration)
}

/// How TensorFlow writes the resource in error texts.
fn full_name(ctx: &KernelCtx<'_>, name: &str) -> String {
    format!(
        "Resource __per_step_{}/{name}/{TYPE_NAME}",
        ctx.env().step_id
    )
}

fn build_make(node: &NodeInfo) -> Result<AnyKernel> {
    let shape = declared_shape(node.attrs.shape("shape")?)?;
    let dtype = node.attrs.dtype("dtype")?;
    let var_name = node.attrs.str("var_name")?;
    let name = if var_name.is_empty() {
        node.name.clone()
    } else {
        var_name.to_owned()
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let var = Arc::new(RefVar::declared(name.clone(), dtype, shape.clone()));
        *var.write() = Some(Tensor::zeros(dtype, shape.clone())?);
        let key = name_in_frame(ctx, &name);
        let kept = Arc::new(Temporary);
        let resources = &ctx.env().step_resources;
        if let Err(status) = resources.create(StepEnv::STEP_CONTAINER, &key, kept) {
            return Err(match status.code() {
                Code::AlreadyExists => already_exists!("{}", full_name(ctx, &key)),
                _ => status,
            });
        }
        ctx.set_value(0, Value::Ref(var));
        Ok(())
    })
}

fn build_destroy(node: &NodeInfo) -> Result<AnyKernel> {
    let name = node.attrs.str("var_name")?.to_owned();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let var = ctx.input_ref(0)?.clone();
        let key = name_in_frame(ctx, &name);
        let resources = &ctx.env().step_resources;
        if let Err(status) = resources.remove(StepEnv::STEP_CONTAINER, &key) {
            return Err(match status.code() {
                Code::NotFound => not_found!("{} does not exist.", full_name(ctx, &key)),
                _ => status,
            });
        }
        // Moved out, so that whoever gets it may write to it.
        let value = match var.write().take() {
            Some(value) => value,
            None => return Err(not_found!("{} has no value", full_name(ctx, &key))),
        };
        ctx.set(0, value);
        Ok(())
    })
}
