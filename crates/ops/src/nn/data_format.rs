//! `DataFormatDimMap`, `DataFormatVecPermute`: dimensions and their lists carried from one image layout to another.
//!
//! TensorFlow: DataFormatDimMap(x: T) -> y: T gives the place of source dimensions in the destination;
//! DataFormatVecPermute(x: T) -> y: T reorders a list with one number (or pair) for each dimension, or for each but batch
//! and channels. With attrs src_format and dst_format such as `NHWC` and `NCHW`.

use tensorfleet_graph::example::{Example, ex, ex_attrs, ex_err, i32s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor};

const TYPES: &[DType] = &[DType::I32, DType::I64];

const FORMAT: OpDef = OpDef {
    inputs: &["x: T"],
    outputs: &["y: T"],
    attrs: &[
        "T: {int32, int64} = DT_INT32",
        "src_format: string = 'NHWC'",
        "dst_format: string = 'NCHW'",
    ],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("dimensions are not differentiated"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const NO_PERMUTATION: Example = ex_err(
    "no permutation",
    &[("src_format", "'1233'"), ("dst_format", "'4321'")],
    &[i32s(&[4], &[0])],
    Code::InvalidArgument,
    "Destination and source format must determine a permutation, got 1233 and 4321",
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DataFormatDimMap",
        kernels: &[cpu(&[("T", TYPES)], build_dim_map)],
        examples: &[
            ex(
                "all, and from the end",
                &[x(&[6], &[0.0, 1.0, 2.0, 3.0, -1.0, -4.0])],
                &[x(&[6], &[0.0, 2.0, 3.0, 1.0, 1.0, 0.0])],
            ),
            NO_PERMUTATION,
            ex_err(
                "too short",
                &[("src_format", "'NHW'")],
                &[i32s(&[1], &[0])],
                Code::InvalidArgument,
                "Source format must be of length 4 or 5, received src_format = NHW",
            ),
        ],
        ..FORMAT
    },
    OpDef {
        name: "DataFormatVecPermute",
        kernels: &[cpu(&[("T", TYPES)], build_permute)],
        examples: &[
            ex(
                "four",
                &[x(&[4], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[4], &[1.0, 4.0, 2.0, 3.0])],
            ),
            ex_attrs(
                "height and width",
                &[("dst_format", "'WHCN'")],
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[2, 2], &[3.0, 4.0, 1.0, 2.0])],
            ),
            ex_attrs(
                "five in pairs",
                &[("src_format", "'NDHWC'"), ("dst_format", "'NCDHW'")],
                &[x(
                    &[5, 2],
                    &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
                )],
                &[x(
                    &[5, 2],
                    &[1.0, 2.0, 9.0, 10.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
                )],
            ),
            ex_err(
                "three of four",
                &[],
                &[i32s(&[3], &[0])],
                Code::InvalidArgument,
                "1D input must be of size 2 or 4, but got shape [3]",
            ),
            ex_err(
                "rank",
                &[],
                &[i32s(&[1, 1, 1], &[0])],
                Code::InvalidArgument,
                "input must be a vector or 2D tensor, but got shape [1,1,1]",
            ),
            NO_PERMUTATION,
        ],
        ..FORMAT
    },
];

/// The two formats, which must name the same dimensions.
fn formats(node: &NodeInfo) -> Result<(Vec<u8>, Vec<u8>)> {
    let (source, destination) = (node.attrs.str("src_format")?, node.attrs.str("dst_format")?);
    ensure!(
        matches!(source.len(), 4 | 5),
        invalid_argument,
        "Source format must be of length 4 or 5, received src_format = {source}"
    );
    ensure!(
        matches!(destination.len(), 4 | 5),
        invalid_argument,
        "Destination format must be of length 4 or 5, received dst_format = {destination}"
    );
    let sorted = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    let names = sorted(source);
    ensure!(
        names == sorted(destination) && names.windows(2).all(|pair| pair[0] != pair[1]),
        invalid_argument,
        "Destination and source format must determine a permutation, got {source} and {destination}"
    );
    Ok((source.into(), destination.into()))
}

/// For each dimension of `from` its place in `to`.
fn places(from: &[u8], to: &[u8]) -> Vec<usize> {
    let place = |name: &u8| to.iter().position(|other| other == name);
    from.iter().filter_map(place).collect()
}

fn build_dim_map(node: &NodeInfo) -> Result<AnyKernel> {
    let (source, destination) = formats(node)?;
    let places = places(&source, &destination);
    // Numbers beyond the formats wrap, as in TensorFlow.
    let map = move |dim: i64| {
        let index = dim.rem_euclid(places.len().max(1) as i64) as usize;
        places.get(index).map_or(0, |place| *place as i64)
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mapped: Vec<i64> = ctx.ints(0)?.iter().map(|dim| map(*dim)).collect();
        let out = like(ctx.input(0)?, &mapped)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn like(input: &Tensor, values: &[i64]) -> Result<Tensor> {
    let shape = input.shape().clone();
    match input.dtype() {
        DType::I32 => Tensor::from_vec(shape, values.iter().map(|value| *value as i32).collect()),
        _ => Tensor::from_slice(shape, values),
    }
}

fn build_permute(node: &NodeInfo) -> Result<AnyKernel> {
    let (source, destination) = formats(node)?;
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let (full, spatial) = (source.len(), source.len() - 2);
        let (shape, count) = (input.shape(), input.shape().dim(0));
        ensure!(
            matches!(shape.rank(), 1 | 2),
            invalid_argument,
            "input must be a vector or 2D tensor, but got shape {shape}"
        );
        if count != full && count != spatial {
            return Err(match shape.rank() {
                1 => invalid_argument!(
                    "1D input must be of size {spatial} or {full}, but got shape {shape}"
                ),
                _ => invalid_argument!(
                    "First dimension of 2D input must be of size {spatial} or {full}, but got shape {shape}"
                ),
            });
        }
        ensure!(
            shape.rank() == 1 || shape.dim(1) == 2,
            invalid_argument,
            "Second dimension of 2D input must be of size 2, but got shape {shape}"
        );
        let order = if count == full {
            places(&destination, &source)
        } else {
            let inner = |format: &[u8]| -> Vec<u8> {
                let is_spatial = |name: &&u8| matches!(name, b'D' | b'H' | b'W');
                format.iter().filter(is_spatial).copied().collect()
            };
            let (source, destination) = (inner(&source), inner(&destination));
            ensure!(
                source.len() == spatial,
                invalid_argument,
                "Format specifier must contain {} for {spatial}D case",
                if spatial == 2 {
                    "H and W"
                } else {
                    "D, H and W"
                }
            );
            places(&destination, &source)
        };
        let out = match dtype {
            DType::I32 => permuted::<i32>(input, &order)?,
            _ => permuted::<i64>(input, &order)?,
        };
        ctx.set(0, out);
        Ok(())
    })
}

fn permuted<T: Element + Copy>(input: &Tensor, order: &[usize]) -> Result<Tensor> {
    let width = input.elements() / order.len().max(1);
    let values = input.slice::<T>()?;
    let rows = order
        .iter()
        .flat_map(|row| values.iter().skip(row * width).take(width));
    Tensor::from_vec(input.shape().clone(), rows.copied().collect())
}
