//! `StackV2`, `StackPushV2`, `StackPopV2`, `StackCloseV2`: a stack of tensors that lives within a step. Gradients of loops
//! keep there what the way back needs.
//!
//! TensorFlow: StackV2(max_size: int32) -> handle: resource, with attrs elem_type: type, stack_name: string = "";
//! StackPushV2(handle: resource, elem: T) -> output: T, the element itself, with attr swap_memory: bool = false (only
//! devices with memory of their own swap); StackPopV2(handle: resource) -> elem: elem_type; StackCloseV2(handle: resource).
//! A handle carries its stack, which ends with the last handle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::state::names::handle_to;

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "StackCloseV2",
        inputs: &["handle: resource"],
        kernels: &[cpu(&[], build_close)],
        ..STACK
    },
    OpDef {
        name: "StackPopV2",
        inputs: &["handle: resource"],
        outputs: &["elem: elem_type"],
        attrs: &["elem_type: type"],
        kernels: &[cpu(&[], build_pop)],
        ..STACK
    },
    OpDef {
        name: "StackPushV2",
        inputs: &["handle: resource", "elem: T"],
        outputs: &["output: T"],
        attrs: &["T: type", "swap_memory: bool = false"],
        kernels: &[cpu(&[], build_push)],
        ..STACK
    },
    OpDef {
        name: "StackV2",
        inputs: &["max_size: int32"],
        outputs: &["handle: resource"],
        attrs: &["elem_type: type", "stack_name: string = ''"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_stack)],
        ..STACK
    },
];

const STACK: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("stacks belong to gradients already"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[LAST_IN_FIRST_OUT, LIMITS],
    ..OpDef::BLANK
};

const LAST_IN_FIRST_OUT: Script = script(
    "last in, first out, anew in every step",
    "max = int32[]{-1}
     s = StackV2(max) {elem_type=DT_FLOAT, stack_name='s'}
     x = float[2]{1, 2}
     y = float[]{3}
     px = StackPushV2(s, x) {swap_memory=true}
     py = StackPushV2(s, y, ^px)
     first = StackPopV2(s, ^py) {elem_type=DT_FLOAT}
     second = StackPopV2(s, ^first) {elem_type=DT_FLOAT}
     third = StackPopV2(s, ^second) {elem_type=DT_FLOAT}",
    &[
        "fetch px, first, second => float[2]{1, 2}; float[]{3}; float[2]{1, 2}",
        "fetch px, first, second => float[2]{1, 2}; float[]{3}; float[2]{1, 2}",
        "fetch third fails INVALID_ARGUMENT is empty when calling Pop().",
    ],
);

const LIMITS: Script = script(
    "full, closed, wrong",
    "one = int32[]{1}
     many = int32[2]{1, 1}
     s = StackV2(one) {elem_type=DT_FLOAT}
     x = float[]{1}
     a = StackPushV2(s, x)
     b = StackPushV2(s, x, ^a)
     wrong = StackPushV2(s, one)
     close = StackCloseV2(s, ^a)
     after = StackPushV2(s, x, ^close)
     pop = StackPopV2(s, ^close) {elem_type=DT_FLOAT}
     t = StackV2(many) {elem_type=DT_FLOAT}",
    &[
        "run b fails INVALID_ARGUMENT overflowed its max_size (1)",
        "run wrong fails INVALID_ARGUMENT Must have type",
        "run close",
        "run after fails INVALID_ARGUMENT has already been closed.",
        "run pop fails INVALID_ARGUMENT has already been closed.",
        "run t fails INVALID_ARGUMENT",
    ],
);

/// What C++ calls the type.
const TYPE_NAME: &str = "N10tensorflow5StackE";

struct Stack {
    name: String,
    dtype: DType,
    max_size: usize,
    /// `None` once closed.
    elements: Mutex<Option<Vec<Tensor>>>,
}

impl Resource for Stack {
    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }
}

impl Stack {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Tensor>>> {
        self.elements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the elements, unless the stack is closed.
    fn open<R>(&self, work: impl FnOnce(&mut Vec<Tensor>) -> Result<R>) -> Result<R> {
        match &mut *self.lock() {
            Some(elements) => work(elements),
            None => Err(invalid_argument!(
                "Stack[{}] has already been closed.",
                self.name
            )),
        }
    }
}

fn build_stack(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("elem_type")?;
    let name = match node.attrs.str("stack_name")? {
        "" => node.name.clone(),
        name => name.to_owned(),
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = ctx.input(0)?;
        ensure!(
            size.rank() == 0,
            invalid_argument,
            "Stack size must be a scalar, but had shape: {}",
            size.shape()
        );
        let env = ctx.env();
        let stack = Arc::new(Stack {
            name: format!("{name}_{}", env.step_resources.unique_id()),
            dtype,
            // A negative size means no limit.
            max_size: usize::try_from(ctx.int(0)?).unwrap_or(usize::MAX),
            elements: Mutex::new(Some(Vec::new())),
        });
        let container = format!("__per_step_{}", env.step_id);
        let handle = handle_to(ctx, &container, &stack.name, stack.clone());
        ctx.set(0, handle);
        Ok(())
    })
}

fn build_push(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let stack = ctx.resource::<Stack>(0)?;
        ensure!(
            stack.dtype == dtype,
            invalid_argument,
            "Must have type {} but got {dtype}",
            stack.dtype
        );
        let element = ctx.take(1)?;
        stack.open(|elements| {
            ensure!(
                elements.len() < stack.max_size,
                invalid_argument,
                "Stack[{}] overflowed its max_size ({})",
                stack.name,
                stack.max_size
            );
            elements.push(element.clone());
            Ok(())
        })?;
        ctx.set(0, element);
        Ok(())
    })
}

fn build_pop(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("elem_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let stack = ctx.resource::<Stack>(0)?;
        ensure!(
            stack.dtype == dtype,
            invalid_argument,
            "Must have type {} but got {dtype}",
            stack.dtype
        );
        let element = stack.open(|elements| {
            elements.pop().ok_or_else(|| {
                invalid_argument!("Stack[{}] is empty when calling Pop().", stack.name)
            })
        })?;
        ctx.set(0, element);
        Ok(())
    })
}

fn build_close(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        *ctx.resource::<Stack>(0)?.lock() = None;
        Ok(())
    })
}
