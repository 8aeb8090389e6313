//! `Barrier`, `BarrierInsertMany`, `BarrierTakeMany`, `BarrierClose`, `BarrierReadySize`, `BarrierIncompleteSize`.
//!
//! TensorFlow: Barrier() -> handle: Ref(string), with attrs component_types: list(type), shapes: list(shape), capacity: int =
//! -1, container: string = "", shared_name: string = ""; BarrierInsertMany(handle, keys: string, values: T), with attr
//! component_index: int; BarrierTakeMany(handle, num_elements: int32) -> indices: int64, keys: string, values:
//! component_types, with attrs allow_small_batch: bool = false, wait_for_incomplete: bool = false, timeout_ms: int = -1;
//! BarrierClose(handle), with attr cancel_pending_enqueues: bool = false. The index of a key counts the insertions that
//! brought new keys, from the least int64 on. A take that waits in a closed barrier fails as soon as nothing more can come;
//! TensorFlow's waits for ever if keys were incomplete at the close.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, TString, Tensor};

use super::barrier::Barrier;
use super::dequeue::check_types;
use super::spec::list;
use super::{BY_HANDLE, BY_REF};
use crate::data_flow::keeper::{Keeper, resource};
use crate::types::{VALUES, dtypes};

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Barrier",
        outputs: &["handle: Ref(string)"],
        attrs: &[
            "component_types: list(type) >= 1",
            "shapes: list(shape) >= 0 = []",
            "capacity: int = -1",
            "container: string = ''",
            "shared_name: string = ''",
        ],
        kernels: &[cpu(&[], build_barrier)],
        cost: Cost::Cheap,
        scripts: &[SHARED],
        ..BY_HANDLE
    },
    OpDef {
        name: "BarrierClose",
        inputs: &["handle: Ref(string)"],
        attrs: &["cancel_pending_enqueues: bool = false"],
        kernels: &[cpu(&[], build_close)],
        scripts: &[CLOSED, CANCELLED],
        ..BY_REF
    },
    OpDef {
        name: "BarrierIncompleteSize",
        inputs: &["handle: Ref(string)"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| size(Barrier::incomplete_size))],
        cost: Cost::Cheap,
        scripts: &[PUT_TOGETHER],
        ..BY_REF
    },
    OpDef {
        name: "BarrierInsertMany",
        inputs: &["handle: Ref(string)", "keys: string", "values: T"],
        attrs: &["T: type", "component_index: int"],
        kernels: &[cpu(
            &[("T", dtypes![VALUES, &[DType::Resource, DType::Variant]])],
            build_insert,
        )],
        scripts: &[PUT_TOGETHER, WRONG],
        ..BY_REF
    },
    OpDef {
        name: "BarrierReadySize",
        inputs: &["handle: Ref(string)"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| size(Barrier::ready_size))],
        cost: Cost::Cheap,
        scripts: &[PUT_TOGETHER],
        ..BY_REF
    },
    OpDef {
        name: "BarrierTakeMany",
        inputs: &["handle: Ref(string)", "num_elements: int32"],
        outputs: &["indices: int64", "keys: string", "values: component_types"],
        attrs: &[
            "component_types: list(type) >= 1",
            "allow_small_batch: bool = false",
            "wait_for_incomplete: bool = false",
            "timeout_ms: int = -1",
        ],
        kernels: &[cpu(&[], build_take)],
        scripts: &[PUT_TOGETHER, CLOSED, WRONG],
        ..BY_REF
    },
];

const PUT_TOGETHER: Script = script(
    "whole tuples in the order of their keys",
    "b = Barrier() {component_types=[DT_FLOAT, DT_INT32], shapes=[[], [2]], shared_name='b'}
     ab = string[2]{a, b}
     c = string[1]{c}
     cba = string[3]{c, b, a}
     one = float[2]{1, 2}
     more = float[1]{3}
     rows = int32[3,2]{1, 2, 3, 4, 5, 6}
     put_ab = BarrierInsertMany(b, ab, one) {component_index=0}
     put_c = BarrierInsertMany(b, c, more) {component_index=0}
     put_rows = BarrierInsertMany(b, cba, rows) {component_index=1}
     ready = BarrierReadySize(b)
     incomplete = BarrierIncompleteSize(b)
     two = int32[]{2}
     take = BarrierTakeMany(b, two) {component_types=[DT_FLOAT, DT_INT32]}
     single = int32[]{1}
     take_one = BarrierTakeMany(b, single) {component_types=[DT_FLOAT, DT_INT32]}
     put_again = BarrierInsertMany(b, ab, one) {component_index=0}
     put_twice = BarrierInsertMany(b, ab, one) {component_index=0}
     nobody = string[0]{}
     nothing = float[0]{}
     put_nothing = BarrierInsertMany(b, nobody, nothing) {component_index=0}
     zero = int32[]{0}
     take_none = BarrierTakeMany(b, zero) {component_types=[DT_FLOAT, DT_INT32]}",
    &[
        "run put_ab",
        "run put_c",
        "fetch ready, incomplete => int32[]{0}; int32[]{3}",
        "run put_rows",
        "fetch ready, incomplete => int32[]{3}; int32[]{0}",
        "fetch take:0, take:1, take:2, take:3 => int64[2]{-9223372036854775808, -9223372036854775808}; string[2]{b, a}; float[2]{2, 1}; int32[2,2]{3, 4, 5, 6}",
        "fetch take_one:0, take_one:1, take_one:2, take_one:3 => int64[1]{-9223372036854775807}; string[1]{c}; float[1]{3}; int32[1,2]{1, 2}",
        "run put_again",
        "run put_twice fails INVALID_ARGUMENT Key a already has a value for component 0 in barrier b",
        "run put_nothing",
        "fetch incomplete => int32[]{2}",
        "fetch take_none:0, take_none:1, take_none:2, take_none:3 => int64[0]{}; string[0]{}; float[0]{}; int32[0,2]{}",
    ],
);

const CLOSED: Script = script(
    "closed to new keys",
    "b = Barrier() {component_types=[DT_INT32, DT_INT32], shapes=[[], []], shared_name='b'}
     ab = string[2]{a, b}
     bc = string[2]{b, c}
     a = string[1]{a}
     x = int32[2]{1, 2}
     y = int32[1]{3}
     first = BarrierInsertMany(b, ab, x) {component_index=0}
     close = BarrierClose(b)
     new = BarrierInsertMany(b, bc, x) {component_index=1}
     last = BarrierInsertMany(b, a, y) {component_index=1}
     four = int32[]{4}
     take_four = BarrierTakeMany(b, four) {component_types=[DT_INT32, DT_INT32]}
     take_some = BarrierTakeMany(b, four) {component_types=[DT_INT32, DT_INT32], allow_small_batch=true}
     ready = BarrierReadySize(b)
     incomplete = BarrierIncompleteSize(b)",
    &[
        "run first",
        "run close",
        "run close fails CANCELLED Barrier 'b' is already closed.",
        "fetch take_four fails OUT_OF_RANGE Barrier 'b' is closed and has insufficient elements (requested 4, total size 2)",
        "fetch take_some fails OUT_OF_RANGE Barrier 'b' is closed and has insufficient elements (requested 0, total size 0)",
        "run new fails CANCELLED Barrier b is closed, but attempted to insert a brand new key: c.  Pending enqueues cancelled: 0.  Insertion index: 1.  Number of incomplete keys: 1.",
        "run last",
        "fetch ready, incomplete => int32[]{1}; int32[]{0}",
        "fetch take_some:1, take_some:2, take_some:3 => string[1]{a}; int32[1]{1}; int32[1]{3}",
        "run last fails CANCELLED Barrier b is closed.  Pending enqueues cancelled: 0.  Number of new insertions: 1.  Number of incomplete keys: 0.",
    ],
);

const CANCELLED: Script = script(
    "closed to all",
    "b = Barrier() {component_types=[DT_INT32, DT_INT32], shapes=[[], []], shared_name='b'}
     ab = string[2]{a, b}
     x = int32[2]{1, 2}
     first = BarrierInsertMany(b, ab, x) {component_index=0}
     second = BarrierInsertMany(b, ab, x) {component_index=1}
     close = BarrierClose(b) {cancel_pending_enqueues=true}
     incomplete = BarrierIncompleteSize(b)",
    &[
        "run first",
        "run close",
        "fetch incomplete => int32[]{0}",
        "run second fails CANCELLED Barrier b is closed.  Pending enqueues cancelled: 1.  Number of new insertions: 2.  Number of incomplete keys: 0.",
        "run close fails CANCELLED is already closed.",
    ],
);

const WRONG: Script = script(
    "what a barrier does not take",
    "b = Barrier() {component_types=[DT_INT32], shapes=[[2]], shared_name='b'}
     a = string[1]{a}
     x = int32[1,3]{1, 2, 3}
     f = float[1,2]{1, 2}
     e = int32[1,0]{}
     shape = BarrierInsertMany(b, a, x) {component_index=0}
     dtype = BarrierInsertMany(b, a, f) {component_index=0}
     empty = BarrierInsertMany(b, a, e) {component_index=0}
     index = BarrierInsertMany(b, a, x) {component_index=1}
     one = int32[]{1}
     take = BarrierTakeMany(b, one) {component_types=[DT_FLOAT]}
     time = BarrierTakeMany(b, one) {component_types=[DT_INT32], timeout_ms=5}",
    &[
        "run shape fails INVALID_ARGUMENT Shape mismatch in tuple component 2. Expected [2], got [3]",
        "run dtype fails INVALID_ARGUMENT Signature mismatch, have: string_ref,string,float-> expected: string_ref,string,int32->",
        "run empty fails INVALID_ARGUMENT Tensors with no elements are not supported b: received shape [1,0]",
        "run index fails INVALID_ARGUMENT The component ID is out of range 1 > num_components (= 1)",
        "fetch take fails INVALID_ARGUMENT Signature mismatch",
        "fetch time fails INVALID_ARGUMENT Timeout not supported yet.",
    ],
);

const SHARED: Script = script(
    "shared by name",
    "a = Barrier() {component_types=[DT_INT32], shapes=[[]], shared_name='b'}
     b = Barrier() {component_types=[DT_INT32], shapes=[[]], shared_name='b'}
     k = string[1]{k}
     x = int32[1]{1}
     put = BarrierInsertMany(a, k, x) {component_index=0}
     ready = BarrierReadySize(b)
     types = Barrier() {component_types=[DT_FLOAT], shapes=[[]], shared_name='b'}
     shapes = Barrier() {component_types=[DT_INT32], shapes=[[2]], shared_name='b'}
     none = Barrier() {component_types=[DT_INT32]}
     full = Barrier() {component_types=[DT_INT32], shapes=[[]], capacity=3}",
    &[
        "run put",
        "fetch ready => int32[]{1}",
        "run types fails INVALID_ARGUMENT Shared barrier 'b' has component types int32 but requested component types were float",
        "run shapes fails INVALID_ARGUMENT Shared barrier 'b' has component shapes [[]] but requested component shapes were [[2]]",
        "run none fails INVALID_ARGUMENT All of the component shapes must be specified",
        "run full fails INVALID_ARGUMENT Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited capacity.",
    ],
);

fn build_barrier(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let dtypes = attrs.dtypes("component_types")?;
    let mut shapes = attrs.shapes("shapes")?.to_vec();
    for shape in &mut shapes {
        // As TensorFlow reads the attribute: no rank is no dimensions.
        if shape.rank().is_none() {
            *shape = PartialShape::scalar();
        }
        ensure!(
            shape.to_shape().is_some(),
            invalid_argument,
            "shape {shape} must be fully defined"
        );
    }
    ensure!(
        shapes.len() == dtypes.len(),
        invalid_argument,
        "All of the component shapes must be specified"
    );
    ensure!(
        attrs.int("capacity")? == -1,
        invalid_argument,
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited capacity."
    );
    let keeper: Keeper<Barrier> = Keeper::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let make = |name: &str| Ok(Barrier::new(name, &dtypes, &shapes));
        let verify = |found: &Barrier| {
            ensure!(
                found.dtypes == dtypes,
                invalid_argument,
                "Shared barrier '{}' has component types {} but requested component types were {}",
                found.name,
                list(&found.dtypes),
                list(&dtypes)
            );
            ensure!(
                found.shapes == shapes,
                invalid_argument,
                "Shared barrier '{}' has component shapes [{}] but requested component shapes were [{}]",
                found.name,
                list(&found.shapes),
                list(&shapes)
            );
            Ok(())
        };
        keeper.hand_out(ctx, make, verify)
    })
}

/// A kernel that first reads its inputs, then does something with the barrier, now or later.
fn later<P: Send + Sync + 'static>(
    prepare: impl Fn(&KernelCtx<'_>, &Barrier) -> Result<P> + Send + Sync + 'static,
    run: fn(&Arc<Barrier>, AsyncCtx, P),
) -> Result<AnyKernel> {
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let prepared = ctx.view(|view| {
            let barrier = resource::<Barrier>(view)?;
            let inputs = prepare(view, &barrier)?;
            Ok((barrier, inputs))
        });
        match prepared {
            Ok((barrier, inputs)) => run(&barrier, ctx, inputs),
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_insert(node: &NodeInfo) -> Result<AnyKernel> {
    let component = node.attrs.int("component_index")?;
    let dtype = node.attrs.dtype("T")?;
    later(
        move |ctx, barrier| {
            let index = usize::try_from(component).ok();
            let found = index.and_then(|index| Some((index, *barrier.dtypes.get(index)?)));
            let (index, expected) = found.ok_or_else(|| {
                invalid_argument!(
                    "The component ID is out of range {component} > num_components (= {})",
                    barrier.dtypes.len()
                )
            })?;
            ensure!(
                dtype == expected,
                invalid_argument,
                "Signature mismatch, have: string_ref,string,{dtype}-> expected: string_ref,string,{expected}->"
            );
            Ok((index, ctx.input(1)?.clone(), ctx.input(2)?.clone()))
        },
        |barrier, ctx, (index, keys, values)| match keys.slice::<TString>() {
            Ok(keys) => barrier.insert(ctx, index, keys, &values),
            Err(status) => ctx.fail(status),
        },
    )
}

fn build_take(node: &NodeInfo) -> Result<AnyKernel> {
    ensure!(
        node.attrs.int("timeout_ms")? == -1,
        invalid_argument,
        "Timeout not supported yet."
    );
    let up_to = node.attrs.bool("allow_small_batch")?;
    let dtypes = node.attrs.dtypes("component_types")?;
    later(
        move |ctx, barrier| {
            let count = ctx.input(1)?;
            ensure!(
                count.rank() == 0,
                invalid_argument,
                "num_elements must be a scalar."
            );
            check_types(&dtypes, &barrier.dtypes)?;
            let count = ctx.int(1)?;
            let wanted = usize::try_from(count)
                .map_err(|_| invalid_argument!("BarrierTakeMany requested {count} < 0 elements"))?;
            Ok((wanted, up_to))
        },
        |barrier, ctx, (wanted, up_to)| barrier.take(ctx, wanted, up_to),
    )
}

fn build_close(node: &NodeInfo) -> Result<AnyKernel> {
    let cancel = node.attrs.bool("cancel_pending_enqueues")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| resource::<Barrier>(ctx)?.close(cancel))
}

fn size(of: fn(&Barrier) -> usize) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = of(&*resource::<Barrier>(ctx)?);
        ctx.set(0, Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)));
        Ok(())
    })
}
