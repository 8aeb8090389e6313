//! `StackV2`, `StackPushV2`, `StackPopV2`, `StackCloseV2` and their older forms: a stack of tensors that lives within a
//! step. Gradients of loops keep there what the way back needs.
//!
//! TensorFlow: StackV2(max_size: int32) -> handle: resource, with attrs elem_type: type, stack_name: string = "";
//! StackPushV2(handle: resource, elem: T) -> output: T, the element itself, with attr swap_memory: bool = false (only
//! devices with memory of their own swap); StackPopV2(handle: resource) -> elem: elem_type; StackCloseV2(handle: resource).
//! A handle carries its stack, which ends with the last handle. Stack() -> handle: Ref(string) has no limit; such stacks
//! go by a name in the step's own resources, and end with the step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use super::keeper::{names_by_ref, ref_to_names};
use crate::state::names::handle_to;

pub(crate) static OPS: [OpDef; 8] = [
    OpDef {
        name: "Stack",
        outputs: &["handle: Ref(string)"],
        attrs: &["elem_type: type", "stack_name: string = ''"],
        kernels: &[cpu(&[], build_stack)],
        scripts: &[BY_NAME],
        ..STACK
    },
    OpDef {
        name: "StackClose",
        inputs: &["handle: Ref(string)"],
        kernels: &[cpu(&[], build_close)],
        ..STACK_BY_REF
    },
    OpDef {
        name: "StackCloseV2",
        inputs: &["handle: resource"],
        kernels: &[cpu(&[], build_close)],
        ..STACK
    },
    OpDef {
        name: "StackPop",
        inputs: &["handle: Ref(string)"],
        outputs: &["elem: elem_type"],
        attrs: &["elem_type: type"],
        kernels: &[cpu(&[], build_pop)],
        ..STACK_BY_REF
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
        name: "StackPush",
        inputs: &["handle: Ref(string)", "elem: T"],
        outputs: &["output: T"],
        attrs: &["T: type", "swap_memory: bool = false"],
        kernels: &[cpu(&[], build_push)],
        ..STACK_BY_REF
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

const STACK_BY_REF: OpDef = OpDef {
    stateful: false,
    scripts: &[BY_NAME],
    ..STACK
};

const BY_NAME: Script = script(
    "by reference to a name, anew in every step",
    "s = Stack() {elem_type=DT_FLOAT, stack_name='s'}
     t = Stack() {elem_type=DT_FLOAT, stack_name='s'}
     x = float[2]{1, 2}
     y = float[]{3}
     px = StackPush(s, x)
     py = StackPush(s, y, ^px)
     pt = StackPush(t, y)
     first = StackPop(s, ^py) {elem_type=DT_FLOAT}
     second = StackPop(s, ^first) {elem_type=DT_FLOAT}
     third = StackPop(s, ^second) {elem_type=DT_FLOAT}
     other = StackPop(t, ^pt) {elem_type=DT_FLOAT}
     one = int32[]{1}
     wrong = StackPush(s, one)
     close = StackClose(s, ^px)
     after = StackPop(s, ^close) {elem_type=DT_FLOAT}",
    &[
        "fetch px, first, second, other => float[2]{1, 2}; float[]{3}; float[2]{1, 2}; float[]{3}",
        "fetch first, second => float[]{3}; float[2]{1, 2}",
        "fetch third fails INVALID_ARGUMENT is empty when calling Pop().",
        "run wrong fails INVALID_ARGUMENT Must have type",
        "run close",
        "run after fails INVALID_ARGUMENT has already been closed.",
    ],
);

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

/// The container of stacks by name.
const STACKS: &str = "_stacks";

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
        let max_size = match ctx.num_inputs() {
            0 => usize::MAX,
            _ => max_size(ctx)?,
        };
        let env = ctx.env();
        let stack = Arc::new(Stack {
            name: format!("{name}_{}", env.resources.unique_id()),
            dtype,
            max_size,
            elements: Mutex::new(Some(Vec::new())),
        });
        let by_ref = ctx.node().output_types.first();
        let value = if by_ref.is_some_and(|port| port.is_ref) {
            env.step_resources
                .create(STACKS, &stack.name, stack.clone())?;
            ref_to_names(STACKS.to_owned(), stack.name.clone())
        } else {
            let container = format!("__per_step_{}", env.step_id);
            handle_to(ctx, &container, &stack.name, stack.clone()).into()
        };
        ctx.set_value(0, value);
        Ok(())
    })
}

/// How many elements a stack may hold; a negative size means no limit.
fn max_size(ctx: &KernelCtx<'_>) -> Result<usize> {
    let size = ctx.input(0)?;
    ensure!(
        size.rank() == 0,
        invalid_argument,
        "Stack size must be a scalar, but had shape: {}",
        size.shape()
    );
    Ok(usize::try_from(ctx.int(0)?).unwrap_or(usize::MAX))
}

/// The stack of input 0.
fn stack(ctx: &KernelCtx<'_>) -> Result<Arc<Stack>> {
    match names_by_ref(ctx, 0)? {
        Some((container, name)) => ctx.env().step_resources.lookup(&container, &name),
        None => ctx.resource(0),
    }
}

fn build_push(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let stack = stack(ctx)?;
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
        let stack = stack(ctx)?;
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
        *stack(ctx)?.lock() = None;
        Ok(())
    })
}
