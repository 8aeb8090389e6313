//! `ZerosLike`, `OnesLike`: zeros and ones of a tensor's shape.
//!
//! TensorFlow: ZerosLike(x: T) -> y: T; OnesLike(x: T) -> y: T. The zeros of a TensorList are a list of
//! zeros, of a string the empty string.

use std::sync::Arc;

use tensorfleet_graph::example::{bools, ex, strs, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor, TensorList, Variant};

use crate::by_number;
use crate::data_flow::optional;
use crate::data_flow::tensor_map::TensorMap;
use crate::data_flow::variant_number::VariantNumber;
use crate::ragged::variant::RaggedVariant;
use crate::types::{PLAIN, VALUES, dtypes};

const LIKE: OpDef = OpDef {
    inputs: &["x: T"],
    outputs: &["y: T"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("the result does not depend on the elements"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// What `ZerosLike` takes.
const ZEROS: &[DType] = dtypes![VALUES, &[DType::Variant]];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "OnesLike",
        attrs: &[
            "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}",
        ],
        kernels: &[cpu(&[("T", PLAIN)], build_ones)],
        examples: &[
            ex("matrix", &[x(&[2, 2], &[3.0])], &[x(&[2, 2], &[1.0])]),
            ex("bool", &[bools(&[], &[false])], &[bools(&[], &[true])]),
            ex("empty", &[x(&[0], &[])], &[x(&[0], &[])]),
        ],
        ..LIKE
    },
    OpDef {
        name: "ZerosLike",
        attrs: &["T: type"],
        kernels: &[cpu(&[("T", ZEROS)], build_zeros)],
        examples: &[
            ex("matrix", &[x(&[2, 2], &[3.0])], &[x(&[2, 2], &[0.0])]),
            ex("bool", &[bools(&[1], &[true])], &[bools(&[1], &[false])]),
            ex(
                "strings",
                &[strs(&[2], &["a", "b"])],
                &[strs(&[2], &["", ""])],
            ),
            ex("empty", &[x(&[0], &[])], &[x(&[0], &[])]),
        ],
        ..LIKE
    },
];

fn build_ones(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let mut y = owned_like(ctx.take(0)?)?;
        match y.dtype() {
            DType::Bool => y.slice_mut::<bool>()?.fill(true),
            dtype => by_number!(dtype, T => write_ones::<T>(ctx.par(), &mut y)?, else => {
                return Err(internal!("no ones of dtype {dtype}"));
            }),
        }
        ctx.set(0, y);
        Ok(())
    })
}

fn write_ones<T: Num + Element>(par: &dyn Par, y: &mut Tensor) -> Result<()> {
    chunks_mut(par, y.slice_mut::<T>()?, 32 * 1024, |_, chunk| {
        chunk.fill(T::ONE);
    });
    Ok(())
}

/// A tensor of the same dtype and shape to be written whole: the same one if nobody else has it.
fn owned_like(mut x: Tensor) -> Result<Tensor> {
    if x.is_unique() {
        return Ok(x);
    }
    Tensor::new(x.dtype(), x.shape().clone())
}

fn build_zeros(node: &NodeInfo) -> Result<AnyKernel> {
    if node.attrs.dtype("T")? == DType::Variant {
        return AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
            let y = zeros(ctx.input(0)?)?;
            ctx.set(0, y);
            Ok(())
        });
    }
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let mut x = ctx.take(0)?;
        let y = match x.is_unique().then(|| x.bytes_mut()).flatten() {
            Some(bytes) => {
                bytes.fill(0);
                x
            }
            None => Tensor::zeros(x.dtype(), x.shape().clone())?,
        };
        ctx.set(0, y);
        Ok(())
    })
}

fn zeros(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::Variant {
        let zeros: Result<Vec<Variant>> = x.slice::<Variant>()?.iter().map(zero_of).collect();
        return Tensor::from_vec(x.shape().clone(), zeros?);
    }
    Tensor::zeros(x.dtype(), x.shape().clone())
}

fn zero_of(variant: &Variant) -> Result<Variant> {
    if let Some(number) = VariantNumber::of(variant) {
        return Ok(number.zero().into_variant());
    }
    match variant {
        Variant::Empty => Ok(Variant::Empty),
        Variant::List(list) => {
            let items = list.items.iter().map(|item| match item {
                Some(tensor) => zeros(tensor).map(Some),
                None => Ok(None),
            });
            Ok(Variant::List(Arc::new(TensorList {
                element_dtype: list.element_dtype,
                element_shape: list.element_shape.clone(),
                max_num_elements: list.max_num_elements,
                items: items.collect::<Result<_>>()?,
            })))
        }
        other => match optional::components(other) {
            Some(parts) => {
                let zeros = parts.map(|parts| parts.iter().map(zeros).collect::<Result<_>>());
                Ok(optional::variant(zeros.transpose()?))
            }
            None if other.downcast::<TensorMap>().is_some() => {
                let map = other.downcast::<TensorMap>().map(|map| map.map(zeros));
                Ok(map.transpose()?.unwrap_or_default().into_variant())
            }
            None => match RaggedVariant::of(other) {
                Some(ragged) => {
                    let values = zeros(ragged.values())?;
                    Ok(ragged.with_values(values).into_variant())
                }
                None => Err(invalid_argument!(
                    "no zeros for a variant of type '{}'",
                    other.type_name()
                )),
            },
        },
    }
}
