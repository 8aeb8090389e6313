//! `If`, `StatelessIf`, `Case`, `StatelessCase`: call one of several functions.
//!
//! TensorFlow: If(cond: Tcond, input: Tin) -> output: Tout; Case(branch_index: int32, input: Tin) -> output: Tout.
//! An index outside of the branches takes the last one.

use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, FuncRef, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

use super::{call_and_finish, take_args, truth};

const IF: OpDef = OpDef {
    inputs: &["cond: Tcond", "input: Tin"],
    outputs: &["output: Tout"],
    attrs: &[
        "Tcond: type",
        "Tin: list(type) >= 0",
        "Tout: list(type) >= 0",
        "then_branch: func",
        "else_branch: func",
        "output_shapes: list(shape) = []",
    ],
    gradient: Gradient::None("the branches' gradient functions are made with the graph"),
    kernels: &[cpu(&[], build_if)],
    ..OpDef::BLANK
};

const CASE: OpDef = OpDef {
    inputs: &["branch_index: int32", "input: Tin"],
    attrs: &[
        "Tin: list(type) >= 0",
        "Tout: list(type) >= 0",
        "branches: list(func) >= 1",
        "output_shapes: list(shape) = []",
    ],
    kernels: &[cpu(&[], build_case)],
    ..IF
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "If",
        stateful: true,
        ..IF
    },
    OpDef {
        name: "StatelessIf",
        ..IF
    },
    OpDef {
        name: "Case",
        stateful: true,
        ..CASE
    },
    OpDef {
        name: "StatelessCase",
        ..CASE
    },
];

fn build_if(node: &NodeInfo) -> Result<AnyKernel> {
    let then_branch = node.attrs.func("then_branch")?.clone();
    let else_branch = node.attrs.func("else_branch")?.clone();
    AnyKernel::later(
        move |mut ctx: AsyncCtx| match ctx.view(|view| truth(view.input(0)?)) {
            Ok(true) => call(&then_branch, ctx),
            Ok(false) => call(&else_branch, ctx),
            Err(status) => ctx.fail(status),
        },
    )
}

fn build_case(node: &NodeInfo) -> Result<AnyKernel> {
    let branches = node.attrs.funcs("branches")?.to_vec();
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let chosen = ctx.view(|view| view.int(0)).and_then(|index| {
            let chosen = usize::try_from(index)
                .ok()
                .and_then(|index| branches.get(index))
                .or(branches.last());
            chosen.ok_or_else(|| invalid_argument!("there are no branches"))
        });
        match chosen {
            Ok(branch) => call(branch, ctx),
            Err(status) => ctx.fail(status),
        }
    })
}

fn call(branch: &FuncRef, mut ctx: AsyncCtx) {
    match take_args(&mut ctx, 1) {
        Ok(args) => call_and_finish(branch, args, ctx),
        Err(status) => ctx.fail(status),
    }
}
