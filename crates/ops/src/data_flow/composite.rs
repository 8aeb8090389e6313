//! `CompositeTensorVariantFromComponents`, `CompositeTensorVariantToComponents`: values of several tensors, such as sparse
//! and ragged ones, as one element of a variant tensor.
//!
//! TensorFlow: (components: Tcomponents) -> encoded: variant and back, with attrs metadata: string, a serialized
//! CompositeTensorVariantMetadata of which only the class of the type counts, and Tcomponents: list(type).

use std::any::Any;
use std::sync::Arc;

use prost::Message;
use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AttrValue, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, Tensor, Variant, VariantObject};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "CompositeTensorVariantFromComponents",
        inputs: &["components: Tcomponents"],
        outputs: &["encoded: variant"],
        attrs: ATTRS,
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient_of_join),
        kernels: &[cpu(&[], build_join)],
        ..COMPOSITE
    },
    OpDef {
        name: "CompositeTensorVariantToComponents",
        inputs: &["encoded: variant"],
        outputs: &["components: Tcomponents"],
        attrs: ATTRS,
        gradient: Gradient::Rule(gradient_of_split),
        kernels: &[cpu(&[], build_split)],
        ..COMPOSITE
    },
];

const ATTRS: &[&str] = &["metadata: string", "Tcomponents: list(type) >= 0"];

const COMPOSITE: OpDef = OpDef {
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[THERE_AND_BACK],
    ..OpDef::BLANK
};

/// The metadata of no class at all is empty; `\n\x02\x08\x03` is that of ragged tensors.
const THERE_AND_BACK: Script = script(
    "there and back",
    "a = float[2]{1, 2}
     b = string[]{x}
     c = CompositeTensorVariantFromComponents([a, b]) {metadata='', Tcomponents=[DT_FLOAT, DT_STRING]}
     back = CompositeTensorVariantToComponents(c) {metadata='', Tcomponents=[DT_FLOAT, DT_STRING]}
     fewer = CompositeTensorVariantToComponents(c) {metadata='', Tcomponents=[DT_FLOAT]}
     typed = CompositeTensorVariantToComponents(c) {metadata='', Tcomponents=[DT_FLOAT, DT_INT32]}
     other = CompositeTensorVariantToComponents(c) {metadata='\\n\x02\x08\x03', Tcomponents=[DT_FLOAT, DT_STRING]}
     ragged = CompositeTensorVariantFromComponents([a]) {metadata='\\n\x02\x08\x03', Tcomponents=[DT_FLOAT]}
     ragged_back = CompositeTensorVariantToComponents(ragged) {metadata='\\n\x02\x08\x03', Tcomponents=[DT_FLOAT]}
     broken = CompositeTensorVariantFromComponents([a]) {metadata='x', Tcomponents=[DT_FLOAT]}
     list = OptionalNone()
     wrong = CompositeTensorVariantToComponents(list) {metadata='', Tcomponents=[DT_FLOAT]}",
    &[
        "fetch back:0, back:1, ragged_back => float[2]{1, 2}; string[]{x}; float[2]{1, 2}",
        "fetch fewer fails INVALID_ARGUMENT Encoded value has 2 tensor components; expected 1 components based on type_spec",
        "fetch typed fails INVALID_ARGUMENT Tensor component 1 had dtype DT_STRING; expected dtype DT_INT32",
        "fetch other fails INVALID_ARGUMENT Expected a RAGGED_TENSOR_SPEC (based on `type_spec`), but `encoded` contains a UNKNOWN",
        "run broken fails INVALID_ARGUMENT Error parsing metadata",
        "fetch wrong fails INVALID_ARGUMENT The input `encoded` is not a valid CompositeTensorVariant tensor",
    ],
);

/// The name under which the values travel.
const TYPE_NAME: &str = "CompositeTensorVariant";

/// What tells one class of values from another in the metadata.
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(message, optional, tag = "1")]
    type_spec: Option<TypeSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeSpec {
    #[prost(int32, tag = "1")]
    class: i32,
}

/// The class of values that metadata is of.
fn class_of(metadata: &Bytes) -> Option<i32> {
    let metadata = Metadata::decode(metadata.clone()).ok()?;
    Some(metadata.type_spec.map_or(0, |spec| spec.class))
}

/// TensorFlow's name of a class.
fn class_name(class: i32) -> &'static str {
    const NAMES: &[&str] = &[
        "UNKNOWN",
        "SPARSE_TENSOR_SPEC",
        "INDEXED_SLICES_SPEC",
        "RAGGED_TENSOR_SPEC",
        "TENSOR_ARRAY_SPEC",
        "DATA_DATASET_SPEC",
        "DATA_ITERATOR_SPEC",
        "OPTIONAL_SPEC",
        "PER_REPLICA_SPEC",
        "VARIABLE_SPEC",
        "ROW_PARTITION_SPEC",
        "",
        "REGISTERED_TYPE_SPEC",
        "EXTENSION_TYPE_SPEC",
    ];
    let known = usize::try_from(class).ok().and_then(|at| NAMES.get(at));
    known.copied().unwrap_or_default()
}

/// The parts of a value.
struct Composite {
    metadata: Bytes,
    components: Vec<Tensor>,
}

impl VariantObject for Composite {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        Some((self.metadata.clone(), self.components.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Metadata and components in a variant if it holds such a value, also one that came over the wire.
fn parts(variant: &Variant) -> Option<(&Bytes, &[Tensor])> {
    match variant {
        Variant::Opaque(opaque) if opaque.type_name == TYPE_NAME => {
            Some((&opaque.metadata, &opaque.tensors))
        }
        other => {
            let composite = other.downcast::<Composite>()?;
            Some((&composite.metadata, &composite.components))
        }
    }
}

fn build_join(node: &NodeInfo) -> Result<AnyKernel> {
    let metadata = node.attrs.bytes("metadata")?.clone();
    ensure!(
        class_of(&metadata).is_some(),
        invalid_argument,
        "Error parsing metadata"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let components: Result<Vec<Tensor>> = (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect();
        let composite = Composite {
            metadata: metadata.clone(),
            components: components?,
        };
        ctx.set(0, Tensor::scalar(Variant::Object(Arc::new(composite))));
        Ok(())
    })
}

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    let class = class_of(node.attrs.bytes("metadata")?)
        .ok_or_else(|| invalid_argument!("Error parsing `metadata`"))?;
    let dtypes = node.attrs.dtypes("Tcomponents")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let encoded = ctx.take(0)?;
        let Some(first) = encoded.slice::<Variant>()?.first() else {
            return Err(invalid_argument!(
                "Input `encoded` must not be an empty variant tensor, but got shape {}",
                encoded.shape()
            ));
        };
        let (metadata, components) = parts(first).ok_or_else(|| {
            invalid_argument!(
                "The input `encoded` is not a valid CompositeTensorVariant tensor, got {first:?}"
            )
        })?;
        let found = class_of(metadata).unwrap_or_default();
        ensure!(
            found == class,
            invalid_argument,
            "Expected a {} (based on `type_spec`), but `encoded` contains a {}",
            class_name(class),
            class_name(found)
        );
        check_dtypes(components, &dtypes)?;
        for (index, component) in components.iter().enumerate() {
            ctx.set(index, component.clone());
        }
        Ok(())
    })
}

fn check_dtypes(components: &[Tensor], dtypes: &[DType]) -> Result<()> {
    ensure!(
        components.len() == dtypes.len(),
        invalid_argument,
        "Encoded value has {} tensor components; expected {} components based on type_spec",
        components.len(),
        dtypes.len()
    );
    for (index, (component, dtype)) in components.iter().zip(dtypes).enumerate() {
        ensure!(
            component.dtype() == *dtype,
            invalid_argument,
            "Tensor component {index} had dtype DT_{}; expected dtype DT_{}",
            component.dtype().name().to_uppercase(),
            dtype.name().to_uppercase()
        );
    }
    Ok(())
}

/// The gradient of a value is a value of the gradients of its components.
fn gradient_of_join(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (metadata, types) = (g.attr("metadata")?, g.attr("Tcomponents")?);
    let count = g.num_inputs();
    let grad = g.grad(0)?;
    let node = g.builder().op("CompositeTensorVariantToComponents");
    let node = node.input(grad).attr("metadata", metadata);
    let parts = node.attr("Tcomponents", types).build()?;
    Ok((0..count)
        .map(|index| Some(Grad::Dense(parts.output(index))))
        .collect())
}

/// Components without a gradient stand for themselves.
fn gradient_of_split(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let metadata: AttrValue = g.attr("metadata")?;
    let components: Vec<_> = (0..g.num_outputs())
        .map(|index| g.grad_or_none(index).unwrap_or(g.output(index)))
        .collect();
    let node = g.builder().op("CompositeTensorVariantFromComponents");
    dense(node.list(&components).attr("metadata", metadata).output()?)
}
