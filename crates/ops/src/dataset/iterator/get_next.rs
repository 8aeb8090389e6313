//! `IteratorGetNext`, `IteratorGetNextSync`, `IteratorGetNextAsOptional`: the next element, or the end.
//!
//! TensorFlow: IteratorGetNext(iterator: resource) -> components: output_types, OUT_OF_RANGE at the end;
//! IteratorGetNextAsOptional(iterator: resource) -> optional: variant, without a value at the end.

use std::sync::Arc;

use smallvec::smallvec;
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, NodeInfo, Outputs, Value};
use tensorfleet_status::{Result, ensure, out_of_range};
use tensorfleet_tensor::Tensor;

use super::ITERATOR;
use super::resource::{Answer, IteratorResource};
use crate::data_flow::optional;
use crate::dataset::kernel::{TYPES, infer_output_shapes};
use crate::dataset::value::{Element, Spec};

const NEXT: OpDef = OpDef {
    inputs: &["iterator: resource"],
    outputs: &["components: output_types"],
    attrs: TYPES,
    infer: infer_output_shapes,
    kernels: &[cpu(&[], |node| build(node, element))],
    scripts: &[super::make::SCRIPT],
    ..ITERATOR
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "IteratorGetNext",
        ..NEXT
    },
    OpDef {
        name: "IteratorGetNextAsOptional",
        outputs: &["optional: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |node| build(node, as_optional))],
        ..NEXT
    },
    OpDef {
        name: "IteratorGetNextSync",
        ..NEXT
    },
];

fn build(
    node: &NodeInfo,
    answer: fn(&Spec, Option<Element>) -> Result<Outputs>,
) -> Result<AnyKernel> {
    let spec = Arc::new(Spec::of(node)?);
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let spec = spec.clone();
        let answer: Answer = Box::new(move |next| answer(&spec, next));
        match ctx.view(|view| view.resource::<IteratorResource>(0)) {
            Ok(iterator) => iterator.submit(ctx, answer),
            Err(status) => ctx.fail(status),
        }
    })
}

fn element(spec: &Spec, next: Option<Element>) -> Result<Outputs> {
    let Some(element) = next else {
        return Err(out_of_range!("End of sequence"));
    };
    spec.check_element(&element)?;
    Ok(element.into_iter().map(Value::Tensor).collect())
}

fn as_optional(spec: &Spec, next: Option<Element>) -> Result<Outputs> {
    for (index, component) in next.iter().flatten().enumerate() {
        let dtype = spec.types.get(index).copied();
        ensure!(
            dtype == Some(component.dtype()),
            invalid_argument,
            "The given optional does not match the expected type for component {index}. Expected: {}. Actual: {}.",
            dtype.map_or("nothing", |dtype| dtype.name()),
            component.dtype()
        );
        if let Some(shape) = spec.shapes.get(index) {
            ensure!(
                shape.admits(component.shape()),
                invalid_argument,
                "The given optional does not match the expected shape for component {index}. Expected: {shape}. Actual: {}.",
                component.shape()
            );
        }
    }
    let optional = Tensor::scalar(optional::variant(next));
    Ok(smallvec![Value::Tensor(optional)])
}
