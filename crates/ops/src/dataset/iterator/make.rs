//! `Iterator`, `IteratorV2`, `AnonymousIterator` and its V2 and V3, `MakeIterator`, `DeleteIterator`: places for iterators, what
//! puts one there, and their end.
//!
//! TensorFlow: IteratorV2() -> handle: resource, with attrs shared_name: string, container: string; MakeIterator(dataset:
//! variant, iterator: resource); AnonymousIteratorV2() -> handle: resource, deleter: variant; DeleteIterator(handle: resource,
//! deleter: variant). An anonymous iterator lives as long as its handle, but for the first kind, which has a name.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::ITERATOR;
use super::resource::IteratorResource;
use crate::data_flow::keeper::Keeper;
use crate::dataset::handles;
use crate::dataset::home::Home;
use crate::dataset::kernel::TYPES;
use crate::dataset::value::{Dataset, Spec};
use crate::state::names::handle_to;

pub(super) const SCRIPT: Script = script(
    "by name and without",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     a = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='it', container=''}
     b = Iterator() {output_types=[DT_INT64], output_shapes=[[]], shared_name='it', container=''}
     make = MakeIterator(numbers, a)
     next = IteratorGetNext(b) {output_types=[DT_INT64], output_shapes=[[]]}
     sync = IteratorGetNextSync(a) {output_types=[DT_INT64], output_shapes=[[]]}
     maybe = IteratorGetNextAsOptional(a) {output_types=[DT_INT64], output_shapes=[[]]}
     has = OptionalHasValue(maybe)
     other = IteratorV2() {output_types=[DT_FLOAT], output_shapes=[[]], shared_name='it', container=''}
     v1 = AnonymousIterator() {output_types=[DT_INT64], output_shapes=[[]]}
     make_v1 = MakeIterator(numbers, v1)
     first_v1 = IteratorGetNext(v1, ^make_v1) {output_types=[DT_INT64], output_shapes=[[]]}
     v2 = AnonymousIteratorV2() {output_types=[DT_INT64], output_shapes=[[]]}
     make_v2 = MakeIterator(numbers, v2)
     first_v2 = IteratorGetNext(v2, ^make_v2) {output_types=[DT_INT64], output_shapes=[[]]}
     end_v2 = DeleteIterator(v2, v2:1, ^first_v2)
     v3 = AnonymousIteratorV3() {output_types=[DT_INT64], output_shapes=[[]]}
     make_v3 = MakeIterator(numbers, v3)
     first_v3 = IteratorGetNext(v3, ^make_v3) {output_types=[DT_INT64], output_shapes=[[]]}
     second_v3 = IteratorGetNext(v3, ^first_v3) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "fetch next fails FAILED_PRECONDITION GetNext() failed because the iterator has not been initialized.",
        "run make",
        "fetch next => int64[]{0}",
        "fetch sync => int64[]{1}",
        "fetch has => bool[]{true}",
        "fetch has => bool[]{false}",
        "fetch next fails OUT_OF_RANGE End of sequence",
        "run make",
        "fetch next => int64[]{0}",
        "run other fails INVALID_ARGUMENT Data type mismatch at component 0: expected float but got int64.",
        "fetch first_v1 => int64[]{0}",
        "fetch first_v1 => int64[]{0}",
        "run end_v2",
        "fetch first_v3, second_v3 => int64[]{0}; int64[]{1}",
    ],
);

const NAMED: OpDef = OpDef {
    outputs: &["handle: resource"],
    attrs: &[
        "shared_name: string",
        "container: string",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
    ],
    infer: infer::scalar,
    kernels: &[cpu(&[], build_named)],
    cost: Cost::Cheap,
    scripts: &[SCRIPT],
    ..ITERATOR
};

const ANONYMOUS: OpDef = OpDef {
    outputs: &["handle: resource"],
    attrs: TYPES,
    infer: infer::scalar,
    kernels: &[cpu(&[], build_anonymous)],
    cost: Cost::Cheap,
    scripts: &[SCRIPT],
    ..ITERATOR
};

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "AnonymousIterator",
        kernels: &[cpu(&[], build_numbered)],
        ..ANONYMOUS
    },
    OpDef {
        name: "AnonymousIteratorV2",
        outputs: &["handle: resource", "deleter: variant"],
        ..ANONYMOUS
    },
    OpDef {
        name: "AnonymousIteratorV3",
        ..ANONYMOUS
    },
    OpDef {
        name: "DeleteIterator",
        inputs: &["handle: resource", "deleter: variant"],
        kernels: &[cpu(&[], handles::build_delete)],
        cost: Cost::Cheap,
        scripts: &[SCRIPT],
        ..ITERATOR
    },
    OpDef {
        name: "Iterator",
        ..NAMED
    },
    OpDef {
        name: "IteratorV2",
        ..NAMED
    },
    OpDef {
        name: "MakeIterator",
        inputs: &["dataset: variant", "iterator: resource"],
        kernels: &[cpu(&[], build_make)],
        cost: Cost::Cheap,
        scripts: &[SCRIPT],
        ..ITERATOR
    },
];

fn build_named(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(node)?;
    let keeper: Keeper<IteratorResource> = Keeper::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let make = |_: &str| Ok(IteratorResource::new(spec.clone()));
        keeper.hand_out(ctx, make, |there| spec.check(&there.spec))
    })
}

fn build_anonymous(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let resource = Arc::new(IteratorResource::new(spec.clone()));
        handles::hand_out_anonymous(ctx, "AnonymousIterator", resource);
        Ok(())
    })
}

fn build_numbered(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let resource = Arc::new(IteratorResource::new(spec.clone()));
        let name = format!("AnonymousIterator{}", ctx.env().resources.unique_id());
        let container = ctx.env().device.default_container.clone();
        let resources = &ctx.env().resources;
        resources.create(&container, &name, resource.clone())?;
        let handle = handle_to(ctx, &container, &name, resource);
        ctx.set(0, handle);
        Ok(())
    })
}

fn build_make(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let dataset = Dataset::input(ctx, 0)?;
        let iterator = ctx.resource::<IteratorResource>(1)?;
        iterator.start(&dataset, Home::lasting(ctx.env()))
    })
}
