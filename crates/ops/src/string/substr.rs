//! `Substr`: a part of every string, by position and length.
//!
//! TensorFlow: Substr(input: string, pos: T, len: T) -> output: string, with unit. A negative position counts from the end.
//! Inputs broadcast against each other; a position beyond the end is INVALID_ARGUMENT.

use std::ops::Range;

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument, unimplemented};
use tensorfleet_tensor::{PartialShape, Shape, TString};

use super::elements;
use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "Substr",
    inputs: &["input: string", "pos: T", "len: T"],
    outputs: &["output: string"],
    attrs: &["T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    infer: infer::broadcast,
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[("T", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "one position",
            &[
                strs(&[2], &["hello", "world"]),
                i32s(&[], &[1]),
                i32s(&[], &[3]),
            ],
            &[strs(&[2], &["ell", "orl"])],
        ),
        ex(
            "one each, from the end",
            &[
                strs(&[2], &["hello", "wo"]),
                i64s(&[2], &[-2, 0]),
                i64s(&[2], &[9, 1]),
            ],
            &[strs(&[2], &["lo", "w"])],
        ),
        ex_attrs(
            "characters",
            &[("unit", "'UTF8_CHAR'")],
            &[strs(&[1], &["äöü"]), i32s(&[], &[1]), i32s(&[], &[1])],
            &[strs(&[1], &["ö"])],
        ),
        ex_err(
            "beyond the end",
            &[],
            &[strs(&[1], &["abc"]), i32s(&[], &[4]), i32s(&[], &[1])],
            Code::InvalidArgument,
            "pos 4 out of range",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let characters = node.attrs.str("unit")? == "UTF8_CHAR";
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, pos, len) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        if pos.shape() != len.shape() {
            return Err(invalid_argument!(
                "pos and len should have the same shape, got: {} vs. {}",
                pos.shape(),
                len.shape()
            ));
        }
        let shape = infer::broadcast_shapes(
            &PartialShape::from(input.shape()),
            &PartialShape::from(pos.shape()),
        )?;
        let shape = shape.to_shape().ok_or_else(|| {
            invalid_argument!(
                "shapes {} and {} do not broadcast",
                input.shape(),
                pos.shape()
            )
        })?;
        // TensorFlow broadcasts no further.
        if pos.rank() > 0 && pos.shape() != input.shape() && shape.rank() > 2 {
            return Err(unimplemented!(
                "Substr broadcast not implemented for {} dimensions",
                shape.rank()
            ));
        }
        let (positions, lengths) = (ctx.ints(1)?, ctx.ints(2)?);
        let values = input.slice::<TString>()?;
        let is_whole = *input.shape() == shape;
        let out = elements(ctx.par(), shape.clone(), |element, out: &mut TString, _| {
            let value = match is_whole {
                true => &values[element],
                false => &values[source_index(&shape, input.shape(), element)],
            };
            let at = match positions.len() {
                1 => 0,
                _ => source_index(&shape, pos.shape(), element),
            };
            let range = range(value, positions[at], lengths[at], characters)?;
            out.assign_part(value, &value[range]);
            Ok(())
        })?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Which element of a tensor of shape `from` is broadcast to element `index` of shape `to`.
fn source_index(to: &Shape, from: &Shape, mut index: usize) -> usize {
    let (mut source, mut stride) = (0, 1);
    for axis in (0..to.rank()).rev() {
        let position = index % to.dim(axis).max(1);
        index /= to.dim(axis).max(1);
        if let Some(own) = (axis + from.rank()).checked_sub(to.rank()) {
            source += if from.dim(own) == 1 {
                0
            } else {
                position * stride
            };
            stride *= from.dim(own);
        }
    }
    source
}

/// Where in a string the part is.
fn range(value: &[u8], pos: i64, len: i64, characters: bool) -> Result<Range<usize>> {
    // Where every unit begins, and the end.
    let starts: Vec<usize> = if characters {
        (0..value.len())
            .filter(|at| value[*at] & 0xc0 != 0x80)
            .chain([value.len()])
            .collect()
    } else {
        Vec::new()
    };
    let units = if characters {
        starts.len() - 1
    } else {
        value.len()
    };
    let place = |unit: usize| if characters { starts[unit] } else { unit };
    let start = if pos < 0 {
        units.checked_sub(pos.unsigned_abs() as usize)
    } else {
        usize::try_from(pos).ok().filter(|at| *at <= units)
    };
    let Some(start) = start else {
        return Err(invalid_argument!(
            "pos {pos} out of range for string b'{}' at index 0",
            String::from_utf8_lossy(value)
        ));
    };
    let end = start + usize::try_from(len).unwrap_or(0).min(units - start);
    Ok(place(start)..place(end))
}
