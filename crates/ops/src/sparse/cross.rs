//! `SparseCross`, `SparseCrossV2`, `SparseCrossHashed`: crosses of features in sparse and dense columns.
//!
//! TensorFlow: (indices: int64…, values…, shapes: int64…, dense_inputs…, …) -> (output_indices: int64, output_values, output_shape:
//! int64); columns are matrices of int64 or string. The first joins by `_X_` or hashes, as attr out_type says, the second by an
//! input, the third hashes with FarmHash or, salted, SipHash.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::crossing::{Column, Hashing, Joining, crossed};

/// The nodes that all scripts have, and some more.
macro_rules! columns {
    ($more:literal) => {
        concat!(
            "i = int64[4, 2]{0, 0, 0, 1, 1, 0, 2, 0}
             v = string[4]{a, b, c, d}
             s = int64[2]{3, 2}
             j = int64[3, 2]{0, 0, 0, 1, 1, 1}
             w = int64[3]{10, 20, 7000000000}
             t = int64[2]{3, 3}
             d = int64[3, 2]{1, 2, 3, 4, 5, 6}
             e = string[3, 1]{x, y, z}
             ",
            $more
        )
    };
}

const FIRST: &[Script] = &[
    script(
        "texts",
        columns!(
            "c = SparseCross([i, j], [v, w], [s, t], [e]) {hashed_output=false, num_buckets=0, hash_key=7, out_type=DT_STRING, internal_type=DT_INT64}
             bad = SparseCross([i, j], [v, w], [s, t], [e]) {hashed_output=false, num_buckets=0, hash_key=7, out_type=DT_STRING, internal_type=DT_STRING}"
        ),
        &[
            "fetch c:0, c:1, c:2 => int64[5, 2]{0, 0, 0, 1, 0, 2, 0, 3, 1, 0}; string[5]{a_X_10_X_x, a_X_20_X_x, b_X_10_X_x, b_X_20_X_x, c_X_7000000000_X_y}; int64[2]{3, 4}",
            "fetch bad:1 fails INVALID_ARGUMENT Input values should be of internal type",
        ],
    ),
    script(
        "hashes",
        columns!(
            "c = SparseCross([i, j], [v, w], [s, t], [d, e]) {hashed_output=true, num_buckets=0, hash_key=-956, out_type=DT_INT64, internal_type=DT_STRING}
             b = SparseCross([i], [v], [s], [e]) {hashed_output=true, num_buckets=1000, hash_key=956, out_type=DT_INT64, internal_type=DT_STRING}
             n = SparseCross([j], [w], [t], [d]) {hashed_output=true, num_buckets=1000, hash_key=956, out_type=DT_INT64, internal_type=DT_INT64}"
        ),
        &[
            "fetch b:0, b:1, b:2 => ?",
            "fetch n:0, n:1, n:2 => ?",
            "fetch c:1 fails INVALID_ARGUMENT Input values should be of internal type",
        ],
    ),
];

const SECOND: &[Script] = &[script(
    "texts",
    columns!(
        "sep = string[]{' & '}
         c = SparseCrossV2([i, j], [v, w], [s, t], [d], sep)
         dense = SparseCrossV2([], [], [], [d, e], sep) {N=0, sparse_types=[]}
         u = int64[2]{2, 2}
         rows = SparseCrossV2([i, j], [v, w], [s, u], [], sep)
         flat = SparseCrossV2([s], [v], [s], [], sep)
         few = SparseCrossV2([i], [w], [s], [], sep)"
    ),
    &[
        "fetch c:0, c:1, c:2 => ?",
        "fetch dense:0, dense:1, dense:2 => int64[6, 2]{0, 0, 0, 1, 1, 0, 1, 1, 2, 0, 2, 1}; string[6]{'1 & x', '2 & x', '3 & y', '4 & y', '5 & z', '6 & z'}; int64[2]{3, 2}",
        "fetch rows:1 fails INVALID_ARGUMENT Expected batch size 3 got 2 at position 1",
        "fetch flat:1 fails INVALID_ARGUMENT",
        "fetch few:1 fails INVALID_ARGUMENT Expected size of values to be 4 got 3 at position 0",
    ],
)];

const THIRD: &[Script] = &[script(
    "hashes",
    columns!(
        "some = int64[]{100}
         any = int64[]{0}
         no = bool[]{false}
         yes = bool[]{true}
         salt = int64[2]{137, -8}
         short = int64[1]{137}
         a = SparseCrossHashed([i, j], [v, w], [s, t], [d, e], some, no, salt)
         b = SparseCrossHashed([i, j], [v, w], [s, t], [e], any, yes, salt)
         c = SparseCrossHashed([i, j], [v, w], [s, t], [e], any, yes, short)"
    ),
    &[
        "fetch a:0, a:1, a:2 => ?",
        "fetch b:0, b:1, b:2 => ?",
        "fetch c:1 fails INVALID_ARGUMENT",
    ],
)];

const CROSS: OpDef = OpDef {
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SparseCross",
        inputs: &[
            "indices: N * int64",
            "values: sparse_types",
            "shapes: N * int64",
            "dense_inputs: dense_types",
        ],
        outputs: &[
            "output_indices: int64",
            "output_values: out_type",
            "output_shape: int64",
        ],
        attrs: &[
            "N: int >= 0",
            "hashed_output: bool",
            "num_buckets: int >= 0",
            "hash_key: int",
            "sparse_types: list({int64, string}) >= 0",
            "dense_types: list({int64, string}) >= 0",
            "out_type: {int64, string}",
            "internal_type: {int64, string}",
        ],
        kernels: &[cpu(&[], build)],
        scripts: FIRST,
        ..CROSS
    },
    OpDef {
        name: "SparseCrossHashed",
        inputs: &[
            "indices: N * int64",
            "values: sparse_types",
            "shapes: N * int64",
            "dense_inputs: dense_types",
            "num_buckets: int64",
            "strong_hash: bool",
            "salt: int64",
        ],
        outputs: &[
            "output_indices: int64",
            "output_values: int64",
            "output_shape: int64",
        ],
        attrs: &[
            "N: int >= 0",
            "sparse_types: list({int64, string}) >= 0",
            "dense_types: list({int64, string}) >= 0",
        ],
        kernels: &[cpu(&[], build_hashed)],
        scripts: THIRD,
        ..CROSS
    },
    OpDef {
        name: "SparseCrossV2",
        inputs: &[
            "indices: N * int64",
            "values: sparse_types",
            "shapes: N * int64",
            "dense_inputs: dense_types",
            "sep: string",
        ],
        outputs: &[
            "output_indices: int64",
            "output_values: string",
            "output_shape: int64",
        ],
        attrs: &[
            "N: int >= 0",
            "sparse_types: list({int64, string}) >= 0",
            "dense_types: list({int64, string}) >= 0",
        ],
        kernels: &[cpu(&[], build_v2)],
        scripts: SECOND,
        ..CROSS
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let count = sparse_columns(node)?;
    let is_text_only = node.attrs.dtype("internal_type")? == DType::String;
    let joining = match node.attrs.dtype("out_type")? {
        DType::String => Joining::Text(TString::from_static(b"_X_")),
        _ => Joining::Hash {
            hashing: Hashing::Plain,
            key: Some(node.attrs.int("hash_key")? as u64),
            buckets: node.attrs.int("num_buckets")?,
        },
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let inputs = ctx.num_inputs();
        for index in (count..2 * count).chain(3 * count..inputs) {
            let dtype = ctx.input(index)?.dtype();
            let what = if index < 2 * count {
                "Input values"
            } else {
                "Dense inputs"
            };
            ensure!(
                !(is_text_only && dtype == DType::I64),
                invalid_argument,
                "{what} should be of internal type {} but received {}",
                DType::String.number(),
                dtype.number()
            );
        }
        cross(ctx, count, inputs, &joining)
    })
}

fn sparse_columns(node: &NodeInfo) -> Result<usize> {
    let count = node.attrs.int("N")?;
    let types = node.attrs.dtypes("sparse_types")?.len();
    ensure!(
        types as i64 == count,
        invalid_argument,
        "Expected {count} input values, got {types}"
    );
    Ok(types)
}

fn build_v2(node: &NodeInfo) -> Result<AnyKernel> {
    let count = sparse_columns(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let end = ctx.num_inputs() - 1;
        let separator = ctx.input(end)?;
        ensure!(
            separator.rank() == 0,
            invalid_argument,
            "Input separator should be a scalar. Received: {separator:?}"
        );
        let joining = Joining::Text(separator.to_scalar::<TString>()?);
        cross(ctx, count, end, &joining)
    })
}

fn build_hashed(node: &NodeInfo) -> Result<AnyKernel> {
    let count = sparse_columns(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let end = ctx.num_inputs() - 3;
        let (buckets, is_strong) = (ctx.scalar::<i64>(end)?, ctx.scalar::<bool>(end + 1)?);
        let salt = ctx.input(end + 2)?.slice::<i64>()?;
        let [low, high] = salt else {
            return Err(invalid_argument!(
                "Input \"salt\" must have length 2 but has length {}",
                salt.len()
            ));
        };
        let hashing = match is_strong {
            true => Hashing::Strong([*low as u64, *high as u64]),
            false => Hashing::Farm,
        };
        let joining = Joining::Hash {
            hashing,
            key: None,
            buckets,
        };
        cross(ctx, count, end, &joining)
    })
}

/// Crosses `count` sparse columns and the dense ones that stand before input `end`.
fn cross(ctx: &mut KernelCtx<'_>, count: usize, end: usize, joining: &Joining) -> Result<()> {
    let batch = check(ctx, count, end)?;
    let mut columns = Vec::with_capacity(end - 2 * count);
    for at in 0..count {
        let rows = ctx
            .input(at)?
            .slice::<i64>()?
            .chunks_exact(2)
            .map(|index| index[0]);
        columns.push(Column::by_row(ctx.input(count + at)?, rows)?);
    }
    for at in 3 * count..end {
        columns.push(Column::dense(ctx.input(at)?)?);
    }
    let found = crossed(&columns, batch, joining)?;
    let most = found.counts.iter().map(|(_, count)| *count).max();
    let shape = [batch, most.unwrap_or(0) as i64];
    let mut indices = Tensor::new(DType::I64, Shape::matrix(found.values.elements(), 2)?)?;
    let places = found
        .counts
        .iter()
        .flat_map(|(row, count)| (0..*count as i64).map(move |number| [*row, number]));
    let slots = indices.slice_mut::<i64>()?.chunks_exact_mut(2);
    slots
        .zip(places)
        .for_each(|(slot, place)| slot.copy_from_slice(&place));
    ctx.set(0, indices);
    ctx.set(1, found.values);
    ctx.set(2, Tensor::vector(&shape));
    Ok(())
}

/// The number of rows, on which all inputs agree.
fn check(ctx: &KernelCtx<'_>, count: usize, end: usize) -> Result<i64> {
    let mut batch = None;
    for at in 0..count {
        let [indices, values, shape] = [
            ctx.input(at)?,
            ctx.input(count + at)?,
            ctx.input(2 * count + at)?,
        ];
        ensure!(
            indices.rank() == 2,
            invalid_argument,
            "Input indices should be a matrix but received shape {} at position {at}",
            indices.shape()
        );
        ensure!(
            indices.shape().dim(1) == 2,
            invalid_argument,
            "Expected D2 of index to be 2 got {} at position {at}",
            indices.shape().dim(1)
        );
        ensure!(
            values.rank() == 1,
            invalid_argument,
            "Input values should be a vector but received shape {} at position {at}",
            values.shape()
        );
        ensure!(
            values.elements() == indices.shape().dim(0),
            invalid_argument,
            "Expected size of values to be {} got {} at position {at}",
            indices.shape().dim(0),
            values.elements()
        );
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "Input shapes should be a vector but received shape {} at position {at}",
            shape.shape()
        );
        let [rows, _] = shape.slice::<i64>()? else {
            return Err(invalid_argument!(
                "shape should imply a 2D tensor, but got {} at position {at}",
                shape.shape()
            ));
        };
        check_batch(
            *batch.get_or_insert(*rows),
            *rows,
            format_args!("position {at}"),
        )?;
    }
    for (at, index) in (3 * count..end).enumerate() {
        let shape = ctx.input(index)?.shape();
        ensure!(
            shape.rank() == 2,
            invalid_argument,
            "Dense inputs should be a matrix but received shape {shape} at position {at}"
        );
        let rows = shape[0];
        check_batch(
            *batch.get_or_insert(rows),
            rows,
            format_args!("dense tensor {at}"),
        )?;
    }
    Ok(batch.unwrap_or(0))
}

/// Fails unless the number of rows is that of all others.
fn check_batch(batch: i64, own: i64, place: impl std::fmt::Display) -> Result<()> {
    ensure!(
        own == batch,
        invalid_argument,
        "Expected batch size {batch} got {own} at {place}"
    );
    Ok(())
}
