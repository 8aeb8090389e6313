//! `SerializeSparse`, `SerializeManySparse`, `DeserializeSparse`, `DeserializeManySparse`: sparse tensors as three strings or
//! variants, and back.
//!
//! TensorFlow: SerializeSparse(sparse_indices, sparse_values: T, sparse_shape) -> serialized_sparse: out_type of shape [3], in
//! SerializeManySparse of shape [N, 3], one for each row of dimension 0. DeserializeSparse(serialized_sparse) ->
//! (sparse_indices, sparse_values: dtype, sparse_shape): dimensions before the last come first in the result.

use std::any::Any;
use std::sync::Arc;

use prost::Message as _;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, Shape, TString, Tensor, Variant, VariantObject};

use super::parts::Part;

const IN: &[&str] = &[
    "sparse_indices: int64",
    "sparse_values: T",
    "sparse_shape: int64",
];

const OUT: &[&str] = &[
    "sparse_indices: int64",
    "sparse_values: dtype",
    "sparse_shape: int64",
];

const SERIALIZED: &[DType] = &[DType::String, DType::Variant];

const SERIALIZE: OpDef = OpDef {
    inputs: IN,
    outputs: &["serialized_sparse: out_type"],
    attrs: &["T: type", "out_type: {string, variant} = DT_STRING"],
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Bits,
    scripts: &[script(
        "there and back",
        "i = int64[3,2]{0, 0, 0, 3, 2, 2}
         v = int32[3]{1, 2, 3}
         s = int64[2]{4, 5}
         one = SerializeSparse(i, v, s)
         many = SerializeManySparse(i, v, s)
         kept = SerializeManySparse(i, v, s) {out_type=DT_VARIANT}
         a = DeserializeSparse(one) {dtype=DT_INT32}
         b = DeserializeManySparse(many) {dtype=DT_INT32}
         c = DeserializeSparse(kept) {dtype=DT_INT32}
         wrong = DeserializeSparse(one) {dtype=DT_INT64}
         text = string[3]{a, b, c}
         none = DeserializeSparse(text) {dtype=DT_INT64}
         two = string[2]{a, b}
         short = DeserializeSparse(two) {dtype=DT_INT64}",
        &[
            "fetch a:0, a:1, a:2 => int64[3,2]{0, 0, 0, 3, 2, 2}; int32[3]{1, 2, 3}; int64[2]{4, 5}",
            "fetch b:0, b:1, b:2 => int64[3,2]{0, 0, 0, 3, 2, 2}; int32[3]{1, 2, 3}; int64[2]{4, 5}",
            "fetch c:0, c:1, c:2 => int64[3,2]{0, 0, 0, 3, 2, 2}; int32[3]{1, 2, 3}; int64[2]{4, 5}",
            "fetch wrong fails INVALID_ARGUMENT Requested SparseTensor of type int64 but SparseTensor[0].values.dtype() == int32",
            "fetch none fails INVALID_ARGUMENT Could not parse serialized proto",
            "fetch short fails INVALID_ARGUMENT Serialized sparse should have 3 as the last dimension [2]",
        ],
    )],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "DeserializeManySparse",
        inputs: &["serialized_sparse: string"],
        outputs: OUT,
        attrs: &["dtype: type"],
        kernels: &[cpu(&[], build_deserialize)],
        ..SERIALIZE
    },
    OpDef {
        name: "DeserializeSparse",
        inputs: &["serialized_sparse: Tserialized"],
        outputs: OUT,
        attrs: &["dtype: type", "Tserialized: {string, variant} = DT_STRING"],
        kernels: &[cpu(&[("Tserialized", SERIALIZED)], build_deserialize)],
        ..SERIALIZE
    },
    OpDef {
        name: "SerializeManySparse",
        kernels: &[cpu(&[("out_type", SERIALIZED)], build_many)],
        ..SERIALIZE
    },
    OpDef {
        name: "SerializeSparse",
        kernels: &[cpu(&[("out_type", SERIALIZED)], build_one)],
        ..SERIALIZE
    },
];

/// A tensor in a variant.
struct Boxed(Tensor);

const TYPE_NAME: &str = "tensorflow::Tensor";

impl VariantObject for Boxed {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        Some((Bytes::new(), vec![self.0.clone()]))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn build_one(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("out_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = serialized(vec![Part::of(ctx, 0)?], dtype)?;
        ctx.set(0, out.reshaped(Shape::vector(3))?);
        Ok(())
    })
}

fn build_many(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("out_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = serialized(Part::of(ctx, 0)?.unstacked()?, dtype)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn serialized(parts: Vec<Part>, dtype: DType) -> Result<Tensor> {
    let shape = Shape::matrix(parts.len(), 3)?;
    let mut tensors = Vec::with_capacity(parts.len() * 3);
    for part in parts {
        tensors.extend(part.tensors()?);
    }
    if dtype == DType::Variant {
        let boxed = |tensor| Variant::Object(Arc::new(Boxed(tensor)));
        return Tensor::from_vec(shape, tensors.into_iter().map(boxed).collect());
    }
    let texts = tensors
        .iter()
        .map(|tensor| Ok(TString::from(tensor.to_proto()?.encode_to_vec())));
    Tensor::from_vec(shape, texts.collect::<Result<Vec<_>>>()?)
}

/// The tensors in strings or variants.
fn unpacked(serialized: &Tensor) -> Result<Vec<Tensor>> {
    if serialized.dtype() == DType::Variant {
        let tensor = |variant: &Variant| match variant {
            Variant::Opaque(opaque) if opaque.type_name == TYPE_NAME => {
                opaque.tensors.first().cloned()
            }
            other => other.downcast::<Boxed>().map(|boxed| boxed.0.clone()),
        };
        let found = serialized.slice::<Variant>()?.iter().map(tensor);
        return found
            .map(|found| {
                found.ok_or_else(|| {
                    invalid_argument!(
                        "Could not get a tensor from a variant of the serialized sparse tensor"
                    )
                })
            })
            .collect();
    }
    let parse = |text: &TString| {
        let proto = TensorProto::decode(Bytes::from(text)).ok();
        proto.and_then(|proto| Tensor::from_proto(&proto).ok())
    };
    serialized
        .slice::<TString>()?
        .iter()
        .map(|text| {
            parse(text).ok_or_else(|| invalid_argument!("Could not parse serialized proto"))
        })
        .collect()
}

fn build_deserialize(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let part = deserialized(ctx.input(0)?, dtype)?;
        part.set(ctx, 0)
    })
}

fn deserialized(serialized: &Tensor, dtype: DType) -> Result<Part> {
    let shape = serialized.shape();
    let Some((last, prefix)) = shape.dims().split_last() else {
        return Err(invalid_argument!(
            "Serialized sparse should have non-zero rank {shape}"
        ));
    };
    ensure!(
        *last == 3,
        invalid_argument,
        "Serialized sparse should have 3 as the last dimension {shape}"
    );
    ensure!(
        !serialized.is_empty(),
        invalid_argument,
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension {shape}"
    );
    let mut parts: Vec<Part> = Vec::new();
    for (index, three) in unpacked(serialized)?.chunks_exact(3).enumerate() {
        let [indices, values, shape] = three else {
            continue;
        };
        ensure!(
            indices.dtype() == DType::I64 && shape.dtype() == DType::I64,
            invalid_argument,
            "Expected SparseTensor[{index}] to have int64 indices and shape, got {} and {}",
            indices.dtype(),
            shape.dtype()
        );
        let part = Part::new(indices, values, shape)?;
        ensure!(
            values.dtype() == dtype,
            invalid_argument,
            "Requested SparseTensor of type {dtype} but SparseTensor[{index}].values.dtype() == {}",
            values.dtype()
        );
        if let Some(first) = parts.first()
            && first.rank() != part.rank()
        {
            return Err(invalid_argument!(
                "Inconsistent shape across SparseTensors: rank prior to SparseTensor[{index}] was: {} but rank of SparseTensor[{index}] is: {}",
                first.rank(),
                part.rank()
            ));
        }
        parts.push(part);
    }
    Part::stacked(&parts, prefix, dtype)
}
