//! `OptionalNone`, `OptionalFromValue`, `OptionalHasValue`, `OptionalGetValue`: tensors that may be missing.
//!
//! TensorFlow: OptionalNone() -> optional: variant; OptionalFromValue(components: Toutput_types) -> optional: variant;
//! OptionalHasValue(optional: variant) -> has_value: bool; OptionalGetValue(optional: variant) -> components: output_types.
//! Conditionals hand values of the branch taken to their gradients in them.

use std::any::Any;
use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AttrList, AttrValue, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, PartialShape, Tensor, Variant, VariantObject};

/// The name under which optionals travel.
const TYPE_NAME: &str = "tensorflow::data::Optional";

/// The components, or nothing.
pub(crate) struct Optional {
    components: Option<Vec<Tensor>>,
}

impl VariantObject for Optional {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let has_value = [u8::from(self.components.is_some())];
        let tensors = self.components.clone().unwrap_or_default();
        Some((Bytes::copy_from_slice(&has_value), tensors))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An optional as a variant.
pub(crate) fn variant(components: Option<Vec<Tensor>>) -> Variant {
    Variant::Object(Arc::new(Optional { components }))
}

/// The components in a variant if it is an optional, also one that came over the wire.
pub(crate) fn components(variant: &Variant) -> Option<Option<&[Tensor]>> {
    match variant {
        Variant::Opaque(opaque) if opaque.type_name == TYPE_NAME => {
            let has_value = opaque.metadata.first().is_some_and(|byte| *byte != 0);
            Some(has_value.then_some(opaque.tensors.as_slice()))
        }
        other => {
            let optional = other.downcast::<Optional>()?;
            Some(optional.components.as_deref())
        }
    }
}

const SCRIPTS: &[Script] = &[script(
    "one and none",
    "a = float[2]{1, 2}
     b = int32[]{3}
     some = OptionalFromValue([a, b])
     none = OptionalNone()
     is = OptionalHasValue(some)
     is_not = OptionalHasValue(none)
     got = OptionalGetValue(some) {output_types=[DT_FLOAT, DT_INT32], output_shapes=[[2], []]}
     missing = OptionalGetValue(none) {output_types=[DT_FLOAT], output_shapes=[[2]]}
     typed = OptionalGetValue(some) {output_types=[DT_FLOAT, DT_FLOAT], output_shapes=[[2], []]}
     shaped = OptionalGetValue(some) {output_types=[DT_FLOAT, DT_INT32], output_shapes=[[3], []]}
     fewer = OptionalGetValue(some) {output_types=[DT_FLOAT], output_shapes=[[2]]}
     zeros = ZerosLike(some)
     zero = OptionalGetValue(zeros) {output_types=[DT_FLOAT, DT_INT32], output_shapes=[[2], []]}
     twice = AddN([some, some])
     two = OptionalGetValue(twice) {output_types=[DT_FLOAT, DT_INT32], output_shapes=[[2], []]}",
    &[
        "fetch is, is_not => bool[]{true}; bool[]{false}",
        "fetch got:0, got:1 => float[2]{1, 2}; int32[]{3}",
        "fetch missing fails INVALID_ARGUMENT The given optional does not have a value.",
        "fetch typed fails INVALID_ARGUMENT The given optional does not match the expected type for component 1. Expected: float. Actual: int32.",
        "fetch shaped fails INVALID_ARGUMENT The given optional does not match the expected shape for component 0. Expected: [3]. Actual: [2].",
        "fetch fewer fails INVALID_ARGUMENT The given optional has 2 components, expected 1",
        "fetch zero:0, zero:1 => float[2]{0, 0}; int32[]{0}",
        "fetch two:0, two:1 => float[2]{2, 4}; int32[]{6}",
    ],
)];

const OPTIONAL: OpDef = OpDef {
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "OptionalFromValue",
        inputs: &["components: Toutput_types"],
        outputs: &["optional: variant"],
        attrs: &["Toutput_types: list(type) >= 1"],
        infer: infer::scalar,
        gradient: Gradient::Rule(from_value_gradient),
        kernels: &[cpu(&[], build_from_value)],
        ..OPTIONAL
    },
    OpDef {
        name: "OptionalGetValue",
        inputs: &["optional: variant"],
        outputs: &["components: output_types"],
        attrs: &[
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
        ],
        infer: infer_value,
        gradient: Gradient::Rule(get_value_gradient),
        kernels: &[cpu(&[], build_get_value)],
        ..OPTIONAL
    },
    OpDef {
        name: "OptionalHasValue",
        inputs: &["optional: variant"],
        outputs: &["has_value: bool"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_has_value)],
        ..OPTIONAL
    },
    OpDef {
        name: "OptionalNone",
        outputs: &["optional: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_none)],
        ..OPTIONAL
    },
];

/// The gradient of an optional is an optional with the gradients of its components.
fn from_value_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let count = g.num_inputs();
    let types = (0..count).map(|index| g.dtype(g.input(index)).into());
    let types = AttrList::Type(types.collect());
    let shapes = AttrList::Shape(vec![PartialShape::unknown(); count]);
    let grad = g.grad(0)?;
    let node = g.builder().op("OptionalGetValue").input(grad);
    let node = node.attr("output_types", AttrValue::List(types));
    let got = node
        .attr("output_shapes", AttrValue::List(shapes))
        .build()?;
    Ok((0..count)
        .map(|index| Some(Grad::Dense(got.output(index))))
        .collect())
}

fn get_value_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let mut grads = Vec::with_capacity(g.num_outputs());
    for index in 0..g.num_outputs() {
        grads.push(g.grad(index)?);
    }
    dense(g.builder().op("OptionalFromValue").list(&grads).output()?)
}

fn infer_value(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shapes = ctx.attrs().shapes("output_shapes")?.to_vec();
    for (index, shape) in shapes.into_iter().enumerate() {
        ctx.set(index, shape);
    }
    Ok(())
}

fn build_none(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        ctx.set(0, Tensor::scalar(variant(None)));
        Ok(())
    })
}

fn build_from_value(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let parts: Result<Vec<Tensor>> = (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect();
        ctx.set(0, Tensor::scalar(variant(Some(parts?))));
        Ok(())
    })
}

/// The optional in input 0.
fn input<'a>(ctx: &'a KernelCtx<'_>) -> Result<Option<&'a [Tensor]>> {
    let tensor = ctx.input(0)?;
    let found = match tensor.slice::<Variant>()? {
        [variant] if tensor.rank() == 0 => components(variant),
        _ => {
            return Err(invalid_argument!(
                "Input to the op must be a scalar tensor containing an Optional object, got shape {}",
                tensor.shape()
            ));
        }
    };
    found.ok_or_else(|| invalid_argument!("Input is not an Optional."))
}

fn build_has_value(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let has_value = input(ctx)?.is_some();
        ctx.set(0, Tensor::scalar(has_value));
        Ok(())
    })
}

fn build_get_value(node: &NodeInfo) -> Result<AnyKernel> {
    let types = node.output_types.clone();
    let shapes = node.attrs.shapes("output_shapes")?.to_vec();
    ensure!(
        types.len() == shapes.len(),
        invalid_argument,
        "output_types and output_shapes must be same length, got:\noutput_types: {}\noutput_shapes: {}",
        types.len(),
        shapes.len()
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let Some(parts) = input(ctx)? else {
            return Err(invalid_argument!(
                "The given optional does not have a value."
            ));
        };
        ensure!(
            parts.len() == types.len(),
            invalid_argument,
            "The given optional has {} components, expected {}",
            parts.len(),
            types.len()
        );
        let parts = parts.to_vec();
        for (index, part) in parts.into_iter().enumerate() {
            ensure!(
                part.dtype() == types[index].dtype,
                invalid_argument,
                "The given optional does not match the expected type for component {index}. Expected: {}. Actual: {}.",
                types[index].dtype,
                part.dtype()
            );
            ensure!(
                shapes[index].admits(part.shape()),
                invalid_argument,
                "The given optional does not match the expected shape for component {index}. Expected: {}. Actual: {}.",
                shapes[index],
                part.shape()
            );
            ctx.set(index, part);
        }
        Ok(())
    })
}
