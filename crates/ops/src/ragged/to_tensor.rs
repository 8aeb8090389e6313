//! `RaggedTensorToTensor`: a ragged tensor as a dense one, short rows filled up with a default, long ones cut.
//!
//! TensorFlow: RaggedTensorToTensor(shape: Tshape, values: T, default_value: T, row_partition_tensors: Tindex…) -> result: T. What
//! each partition tensor says is in attr row_partition_types: FIRST_DIM_SIZE, VALUE_ROWIDS or ROW_SPLITS. Dimensions that the shape
//! leaves open (-1) are as long as the longest row. Row numbers that fall, and more rows than values, which TensorFlow 2.21 fills with
//! whatever lies in memory, are INVALID_ARGUMENT.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor, UNKNOWN_DIM, Word, by_word};

use super::gather::HELD;
use super::partition::{Level, Partition, check_default, places, sizes};
use super::rows;
use crate::array::{grads, moves};
use crate::types::INDEX;

const SPLITS: &[(&str, &str)] = &[("row_partition_types", "['ROW_SPLITS']")];
const IDS: &[(&str, &str)] = &[("row_partition_types", "['FIRST_DIM_SIZE', 'VALUE_ROWIDS']")];

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedTensorToTensor",
    inputs: &[
        "shape: Tshape",
        "values: T",
        "default_value: T",
        "row_partition_tensors: num_row_partition_tensors * Tindex",
    ],
    outputs: &["result: T"],
    attrs: &[
        "T: type",
        "Tindex: {int64, int32}",
        "Tshape: {int64, int32}",
        "num_row_partition_tensors: int >= 1",
        "row_partition_types: list(string)",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", HELD), ("Tindex", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "splits",
            SPLITS,
            &[
                i64s(&[], &[-1]),
                x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                x(&[], &[9.0]),
                i64s(&[4], &[0, 1, 1, 4]),
            ],
            &[x(&[3, 3], &[1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 2.0, 3.0, 4.0])],
        ),
        ex_attrs(
            "row numbers, cut and filled",
            IDS,
            &[
                i32s(&[2], &[4, 2]),
                f32s(&[4], &[1.0, 2.0, 3.0, 4.0]),
                f32s(&[], &[9.0]),
                i32s(&[], &[3]),
                i32s(&[4], &[0, 2, 2, 2]),
            ],
            &[f32s(&[4, 2], &[1.0, 9.0, 9.0, 9.0, 2.0, 3.0, 9.0, 9.0])],
        ),
        ex_attrs(
            "rows of rows of pairs, a default for each of a pair",
            &[("row_partition_types", "['ROW_SPLITS', 'ROW_SPLITS']")],
            &[
                i64s(&[4], &[-1, 2, -1, 2]),
                f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                f32s(&[2], &[8.0, 9.0]),
                i64s(&[2], &[0, 2]),
                i64s(&[3], &[0, 1, 3]),
            ],
            &[f32s(
                &[1, 2, 2, 2],
                &[1.0, 2.0, 8.0, 9.0, 3.0, 4.0, 5.0, 6.0],
            )],
        ),
        ex_attrs(
            "nothing",
            SPLITS,
            &[
                i64s(&[2], &[-1, -1]),
                f32s(&[0], &[]),
                f32s(&[], &[9.0]),
                i64s(&[1], &[0]),
            ],
            &[f32s(&[0, 0], &[])],
        ),
        ex_err(
            "rank of the shape",
            SPLITS,
            &[
                i64s(&[3], &[-1, -1, -1]),
                f32s(&[1], &[1.0]),
                f32s(&[], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "rt_input.shape and shape=[?,?,?] are incompatible: rt_input.rank = 2 but shape.rank = 3",
        ),
        ex_err(
            "negative shape",
            SPLITS,
            &[
                i64s(&[2], &[-2, -1]),
                f32s(&[1], &[1.0]),
                f32s(&[], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "Dimension -2 must be >= -1",
        ),
        ex_err(
            "negative number of rows",
            IDS,
            &[
                i64s(&[2], &[-1, -1]),
                f32s(&[0], &[]),
                f32s(&[], &[9.0]),
                i64s(&[], &[-3]),
                i64s(&[0], &[]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_attrs(
            "no rows where some are wanted",
            IDS,
            &[
                i64s(&[2], &[1, 2]),
                f32s(&[0], &[]),
                f32s(&[], &[9.0]),
                i64s(&[], &[-3]),
                i64s(&[0], &[]),
            ],
            &[f32s(&[1, 2], &[9.0, 9.0])],
        ),
        ex_err(
            "inner dimensions",
            SPLITS,
            &[
                i64s(&[3], &[-1, -1, 3]),
                f32s(&[1, 2], &[1.0]),
                f32s(&[], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "are incompatible: rt_input.shape[2] = 2 but shape[2] = 3",
        ),
        ex_err(
            "rank of the default",
            SPLITS,
            &[
                i64s(&[2], &[-1, -1]),
                f32s(&[1], &[1.0]),
                f32s(&[1], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "must be less than rt_input.flat_values.rank = 1",
        ),
        ex_err(
            "shape of the default",
            SPLITS,
            &[
                i64s(&[3], &[-1, -1, -1]),
                f32s(&[1, 2], &[1.0]),
                f32s(&[3], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "are incompatible: default_value.shape[-1] = 3 but rt_input.flat_values.shape[-1] = 2",
        ),
        ex_err(
            "row number",
            IDS,
            &[
                i64s(&[2], &[-1, -1]),
                f32s(&[2], &[1.0]),
                f32s(&[], &[9.0]),
                i64s(&[], &[2]),
                i64s(&[2], &[0, 2]),
            ],
            Code::InvalidArgument,
            "Got next_value_rowid=2 which is not less than 2",
        ),
        ex_err(
            "unknown partition",
            &[("row_partition_types", "['ROWS']")],
            &[
                i64s(&[2], &[-1, -1]),
                f32s(&[1], &[1.0]),
                f32s(&[], &[9.0]),
                i64s(&[2], &[0, 1]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

/// The same op on the numbers of the values says where each went; the rest is the default's.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, values, default) = (g.grad(0)?, g.input(1), g.input(2));
    let partitions: Vec<Output> = (3..g.num_inputs()).map(|index| g.input(index)).collect();
    let kinds = g.attr("row_partition_types")?;
    let types = Partition::all(g.attrs().bytes_list("row_partition_types")?)?;
    let outer = 1 + types
        .iter()
        .filter(|kind| **kind != Partition::Size)
        .count() as i32;
    let (zero, one, begin) = (grads::int(g, 0)?, grads::int(g, 1)?, g.ints(&[0])?);
    let value_shape = g.shape(values)?;
    let count = grads::element(g, value_shape, zero)?;
    let numbers = g.apply("Range", &[zero, count, one])?;
    let none = grads::int(g, -1)?;
    let shape = g.shape(grad)?;
    let size = g.ints(&[outer])?;
    let rows_shape = g.apply("Slice", &[shape, begin, size])?;
    let node = g.builder().op("RaggedTensorToTensor").input(rows_shape);
    let node = node.input(numbers).input(none).list(&partitions);
    let sources = node.attr("row_partition_types", kinds).output()?;
    let flat = g.ints(&[-1])?;
    let sources = g.apply("Reshape", &[sources, flat])?;
    let total = g.shape(sources)?;
    let inner = grads::part(g, value_shape, one, None)?;
    let row_shape = grads::join(g, &[total, inner])?;
    let by_row = g.apply("Reshape", &[grad, row_shape])?;
    let rows_where = |g: &mut GradCtx<'_>, op: &str| -> Result<(Output, Output)> {
        let is_chosen = g.apply(op, &[sources, none])?;
        let places = g.apply("Where", &[is_chosen])?;
        let places = g.apply("Reshape", &[places, flat])?;
        let rows = grads::element(g, by_row, places)?;
        Ok((places, rows))
    };
    let (places, to_values) = rows_where(g, "NotEqual")?;
    let indices = grads::element(g, sources, places)?;
    let (_, to_default) = rows_where(g, "Equal")?;
    let (default_shape, full_shape) = (g.shape(default)?, g.shape(to_default)?);
    let axes = g.builder().op("BroadcastGradientArgs");
    let axes = axes.input(default_shape).input(full_shape).build()?;
    let to_default = g.apply("Sum", &[to_default, axes.output(0)])?;
    let to_default = g.apply("Reshape", &[to_default, default_shape])?;
    let mut out = vec![
        None,
        Some(Grad::Rows {
            values: to_values,
            indices,
            dense_shape: value_shape,
        }),
        Some(Grad::Dense(to_default)),
    ];
    out.resize(3 + partitions.len(), None);
    Ok(out)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let kinds = Partition::all(node.attrs.bytes_list("row_partition_types")?)?;
    let has_size = kinds.first() == Some(&Partition::Size);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        ensure!(
            ctx.num_inputs() == kinds.len() + 3 && !kinds.is_empty(),
            invalid_argument,
            "{} row_partition_types for {} tensors",
            kinds.len(),
            ctx.num_inputs().saturating_sub(3)
        );
        let first = ctx.ints(3)?;
        let first_dim = match (kinds[0], first.first()) {
            (_, None) => {
                return Err(invalid_argument!(
                    "Invalid first partition input. Tensor requires at least one element."
                ));
            }
            (Partition::Size, Some(size)) => *size,
            (Partition::Splits, _) => rows(&first) as i64,
            (Partition::Ids, _) => {
                return Err(invalid_argument!(
                    "Cannot handle VALUE_ROWIDS in first dimension."
                ));
            }
        };
        let mut levels = Vec::new();
        for (index, kind) in kinds.iter().enumerate().skip(usize::from(has_size)) {
            levels.push(Level {
                kind: *kind,
                numbers: ctx.ints(3 + index)?.to_vec(),
            });
        }
        let (values, default) = (ctx.input(1)?, ctx.input(2)?);
        check_default(default.shape(), values.shape())?;
        let wanted = wanted(ctx, levels.len() + values.rank())?;
        let shape = Shape::new(&sizes(wanted, values.shape(), first_dim, &levels)?)?;
        let inner = Shape::new(shape.get(levels.len() + 1..).unwrap_or_default())?;
        let default = spread(ctx, default, &inner)?;
        let mut out = Tensor::new(values.dtype(), shape)?;
        if !out.is_empty() {
            let places = places(out.shape(), first_dim, &levels, values.shape().dim(0))?;
            by_word!(values.dtype(), W => fill::<W>(values, &default, &places, &mut out))?;
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// The shape that is asked for, -1 where it is left open.
fn wanted(ctx: &KernelCtx<'_>, rank: usize) -> Result<Vec<i64>> {
    match (ctx.input(0)?.rank(), ctx.ints(0)?.as_slice()) {
        (0, [-1]) => Ok(vec![-1; rank]),
        (1, dims) => {
            let wrong = dims.iter().find(|dim| **dim < UNKNOWN_DIM);
            match wrong {
                Some(dim) => Err(invalid_argument!("Dimension {dim} must be >= -1")),
                None => Ok(dims.to_vec()),
            }
        }
        _ => Err(invalid_argument!(
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        )),
    }
}

/// The default for all elements of a value.
fn spread(ctx: &KernelCtx<'_>, default: &Tensor, inner: &Shape) -> Result<Tensor> {
    if default.elements() == 1 {
        return moves::fill(ctx.par(), default, inner.clone());
    }
    let fits = |(from, to): (&i64, &i64)| from == to || *from == 1;
    ensure!(
        default.rank() <= inner.rank()
            && default
                .shape()
                .iter()
                .rev()
                .zip(inner.iter().rev())
                .all(fits),
        invalid_argument,
        "Error broadcasting default_value"
    );
    let view = View::broadcast(&moves::extents(default.shape()), &moves::extents(inner));
    moves::copy_view(ctx.par(), default, &view, inner.clone())
}

fn fill<W: Word>(
    values: &Tensor,
    default: &Tensor,
    places: &[Option<usize>],
    out: &mut Tensor,
) -> Result<()> {
    let default = default.words::<W>()?;
    let out = out.words_mut::<W>()?;
    for row in out.chunks_exact_mut(default.len().max(1)) {
        row.clone_from_slice(default);
    }
    let rows = values.words::<W>()?.chunks_exact(default.len().max(1));
    for (place, row) in places.iter().zip(rows) {
        let slot = place.and_then(|place| out.get_mut(place * row.len()..(place + 1) * row.len()));
        if let Some(slot) = slot {
            slot.clone_from_slice(row);
        }
    }
    Ok(())
}
