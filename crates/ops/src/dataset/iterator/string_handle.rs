//! `IteratorToStringHandle`, `IteratorFromStringHandle`, `IteratorFromStringHandleV2`, `IteratorGetDevice`: iterators as strings,
//! so that a program can feed which one a step is to use.
//!
//! TensorFlow: IteratorToStringHandle(resource_handle: resource) -> string_handle: string; IteratorFromStringHandle(string_handle:
//! string) -> resource_handle: resource. The string is the message that a handle travels as.

use prost::Message as _;
use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::ResourceHandleProto;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{HandleData, ResourceHandle, TString, Tensor};

use super::ITERATOR;
use super::resource::IteratorResource;
use crate::dataset::value::Spec;

const SCRIPT: Script = script(
    "there and back",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     a = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='strings', container=''}
     make = MakeIterator(numbers, a)
     text = IteratorToStringHandle(a)
     b = IteratorFromStringHandle(text) {output_types=[DT_INT64], output_shapes=[[]]}
     c = IteratorFromStringHandleV2(text)
     next_b = IteratorGetNext(b) {output_types=[DT_INT64], output_shapes=[[]]}
     next_c = IteratorGetNext(c) {output_types=[DT_INT64], output_shapes=[[]]}
     wrong = IteratorFromStringHandle(text) {output_types=[DT_FLOAT], output_shapes=[[]]}
     nothing = string[]{}
     nobody = IteratorFromStringHandle(nothing)
     device = IteratorGetDevice(a)",
    &[
        "run make",
        "fetch next_b => int64[]{0}",
        "fetch next_c => int64[]{1}",
        "run wrong fails INVALID_ARGUMENT Data type mismatch at component 0: expected float but got int64.",
        "run nobody fails INVALID_ARGUMENT from handle defined on device",
        "run device",
    ],
);

const FROM: OpDef = OpDef {
    inputs: &["string_handle: string"],
    outputs: &["resource_handle: resource"],
    attrs: &[
        "output_types: list(type) >= 0 = []",
        "output_shapes: list(shape) >= 0 = []",
    ],
    infer: infer::scalar,
    kernels: &[cpu(&[], build_from)],
    cost: Cost::Cheap,
    scripts: &[SCRIPT],
    ..ITERATOR
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "IteratorFromStringHandle",
        ..FROM
    },
    OpDef {
        name: "IteratorFromStringHandleV2",
        ..FROM
    },
    OpDef {
        name: "IteratorGetDevice",
        inputs: &["resource: resource"],
        outputs: &["device: string"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_device)],
        cost: Cost::Cheap,
        scripts: &[SCRIPT],
        ..ITERATOR
    },
    OpDef {
        name: "IteratorToStringHandle",
        inputs: &["resource_handle: resource"],
        outputs: &["string_handle: string"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_to)],
        cost: Cost::Cheap,
        scripts: &[SCRIPT],
        ..ITERATOR
    },
];

fn build_to(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        ensure!(
            ctx.input(0)?.rank() == 0,
            invalid_argument,
            "resource_handle must be a scalar"
        );
        ctx.resource::<IteratorResource>(0)?;
        let handle = ctx.handle(0)?;
        let message = ResourceHandleProto {
            device: handle.device.clone(),
            container: handle.container.clone(),
            name: handle.name.clone(),
            hash_code: handle.hash_code,
            maybe_type_name: handle.type_name.clone(),
            ..ResourceHandleProto::default()
        };
        let text = TString::from(message.encode_to_vec());
        ctx.set(0, Tensor::scalar(text));
        Ok(())
    })
}

fn build_from(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(node)?;
    ensure!(
        spec.types.is_empty() || spec.shapes.is_empty() || spec.types.len() == spec.shapes.len(),
        invalid_argument,
        "If both 'output_types' and 'output_shapes' are set, they must have the same length."
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        ensure!(
            ctx.input(0)?.rank() == 0,
            invalid_argument,
            "string_handle must be a scalar"
        );
        let text: TString = ctx.scalar(0)?;
        let Ok(message) = ResourceHandleProto::decode(&*text) else {
            return Err(invalid_argument!(
                "Could not parse string_handle as a valid ResourceHandle"
            ));
        };
        let device = &ctx.env().device.name;
        ensure!(
            message.device == *device,
            invalid_argument,
            "Attempted create an iterator on device \"{device}\" from handle defined on device \"{}\"",
            message.device
        );
        let handle = ResourceHandle::new(HandleData {
            device: message.device,
            container: message.container,
            name: message.name,
            hash_code: message.hash_code,
            type_name: message.maybe_type_name,
            ..HandleData::default()
        });
        let resources = &ctx.env().resources;
        let iterator = resources.lookup_handle::<IteratorResource>(&handle)?;
        let known = Spec {
            types: match spec.types.is_empty() {
                true => iterator.spec.types.clone(),
                false => spec.types.clone(),
            },
            shapes: match spec.shapes.is_empty() {
                true => iterator.spec.shapes.clone(),
                false => spec.shapes.clone(),
            },
        };
        known.check(&iterator.spec)?;
        ctx.set(0, Tensor::scalar(handle));
        Ok(())
    })
}

fn build_device(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let device = TString::from(ctx.handle(0)?.device.clone());
        ctx.set(0, Tensor::scalar(device));
        Ok(())
    })
}
