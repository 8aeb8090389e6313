//! `RaggedCross`: crosses of features in ragged, sparse and dense columns, as a ragged matrix.
//!
//! TensorFlow: RaggedCross(ragged_values…, ragged_row_splits…, sparse_indices: int64…, sparse_values…, sparse_shape: int64…,
//! dense_inputs…) -> (output_values: out_values_type, output_row_splits: out_row_splits_type). The attr input_order says by letters
//! R, S and D in which order the columns are crossed; values are joined by `_X_` or hashed, as their type says.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::{check_splits, rows};
use crate::math::cast::from_integers;
use crate::sparse::crossing::{Column, Hashing, Joining, crossed};
use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedCross",
    inputs: &[
        "ragged_values: ragged_values_types",
        "ragged_row_splits: ragged_splits_types",
        "sparse_indices: Nsparse * int64",
        "sparse_values: sparse_values_types",
        "sparse_shape: Nsparse * int64",
        "dense_inputs: dense_types",
    ],
    outputs: &[
        "output_values: out_values_type",
        "output_row_splits: out_row_splits_type",
    ],
    attrs: &[
        "Nsparse: int >= 0",
        "input_order: string",
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        "ragged_values_types: list({int64, string}) >= 0",
        "ragged_splits_types: list({int32, int64}) >= 0",
        "sparse_values_types: list({int64, string}) >= 0",
        "dense_types: list({int64, string}) >= 0",
        "out_values_type: {int64, string}",
        "out_row_splits_type: {int32, int64}",
    ],
    kernels: &[cpu(&[("out_row_splits_type", INDEX)], build)],
    exactness: Exactness::Bits,
    scripts: &[script(
        "texts and hashes",
        "rv = string[4]{a, b, c, d}
         rs = int64[4]{0, 2, 3, 4}
         si = int64[3, 2]{0, 0, 1, 0, 1, 1}
         sv = int64[3]{10, 20, 30}
         ss = int64[2]{3, 2}
         d = string[3, 2]{u, v, w, x, y, z}
         t = RaggedCross([rv], [rs], [si], [sv], [ss], [d]) {input_order='DRS', hashed_output=false, num_buckets=0, hash_key=1, out_values_type=DT_STRING, out_row_splits_type=DT_INT64}
         h = RaggedCross([rv], [rs], [si], [sv], [ss], [d]) {input_order='RSD', hashed_output=true, num_buckets=100, hash_key=956, out_values_type=DT_INT64, out_row_splits_type=DT_INT64}
         few = RaggedCross([rv], [rs], [si], [sv], [ss], [d]) {input_order='RS', hashed_output=true, num_buckets=100, hash_key=956, out_values_type=DT_INT64, out_row_splits_type=DT_INT64}
         twice = RaggedCross([rv], [rs], [si], [sv], [ss], [d]) {input_order='RRD', hashed_output=true, num_buckets=100, hash_key=956, out_values_type=DT_INT64, out_row_splits_type=DT_INT64}
         long = int64[5]{0, 1, 2, 3, 4}
         rows = RaggedCross([rv], [long], [si], [sv], [ss], [d]) {input_order='RSD', hashed_output=true, num_buckets=100, hash_key=956, out_values_type=DT_INT64, out_row_splits_type=DT_INT64}",
        &[
            "fetch t:0, t:1 => string[8]{u_X_a_X_10, u_X_b_X_10, v_X_a_X_10, v_X_b_X_10, w_X_c_X_20, w_X_c_X_30, x_X_c_X_20, x_X_c_X_30}; int64[4]{0, 4, 8, 8}",
            "fetch h:0, h:1 => ?",
            "fetch few:0 fails INVALID_ARGUMENT Invalid length for input_order",
            "fetch twice:0 fails INVALID_ARGUMENT",
            "fetch rows:0 fails INVALID_ARGUMENT inputs must all have the same batch dimension size.",
        ],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let order = attrs.str("input_order")?.to_owned();
    let ragged = attrs.dtypes("ragged_values_types")?.len();
    let sparse = attrs.dtypes("sparse_values_types")?.len();
    let dense = attrs.dtypes("dense_types")?.len();
    ensure!(
        ragged == attrs.dtypes("ragged_splits_types")?.len(),
        invalid_argument,
        "ragged values and splits must have the same length"
    );
    ensure!(
        sparse as i64 == attrs.int("Nsparse")?,
        invalid_argument,
        "sparse indices and values must have the same length"
    );
    ensure!(
        ragged + sparse + dense == order.len(),
        invalid_argument,
        "Invalid length for input_order"
    );
    let joining = match attrs.dtype("out_values_type")? {
        DType::String => Joining::Text(TString::from_static(b"_X_")),
        _ => Joining::Hash {
            hashing: Hashing::Plain,
            key: Some(attrs.int("hash_key")? as u64),
            buckets: attrs.int("num_buckets")?,
        },
    };
    let split_type = attrs.dtype("out_row_splits_type")?;
    let layout = Layout {
        ragged,
        sparse,
        dense,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let batch = layout.check(ctx)?;
        let columns = layout.columns(ctx, &order)?;
        let found = crossed(&columns, batch, &joining)?;
        let mut splits = Tensor::new(DType::I64, Shape::new(&[batch.saturating_add(1)])?)?;
        let slots = splits.slice_mut::<i64>()?;
        slots.fill(0);
        for (row, count) in &found.counts {
            slots[*row as usize + 1] = *count as i64;
        }
        let mut end = 0;
        for slot in slots.iter_mut() {
            end += *slot;
            *slot = end;
        }
        let shape = splits.shape().clone();
        let splits = from_integers(splits.slice::<i64>()?, split_type, shape)?;
        ctx.set(0, found.values);
        ctx.set(1, splits);
        Ok(())
    })
}

/// How many columns of each kind there are, and so where their inputs stand.
#[derive(Clone, Copy)]
struct Layout {
    ragged: usize,
    sparse: usize,
    dense: usize,
}

impl Layout {
    /// Values and splits of a ragged column.
    fn ragged<'a>(&self, ctx: &'a KernelCtx<'_>, at: usize) -> Result<[&'a Tensor; 2]> {
        Ok([ctx.input(at)?, ctx.input(self.ragged + at)?])
    }

    /// Indices, values and shape of a sparse column.
    fn sparse<'a>(&self, ctx: &'a KernelCtx<'_>, at: usize) -> Result<[&'a Tensor; 3]> {
        let first = 2 * self.ragged + at;
        let inputs = [first, first + self.sparse, first + 2 * self.sparse];
        let [indices, values, shape] = inputs.map(|index| ctx.input(index));
        Ok([indices?, values?, shape?])
    }

    fn dense<'a>(&self, ctx: &'a KernelCtx<'_>, at: usize) -> Result<&'a Tensor> {
        ctx.input(2 * self.ragged + 3 * self.sparse + at)
    }

    /// The number of rows, on which all columns agree.
    fn check(&self, ctx: &KernelCtx<'_>) -> Result<i64> {
        let mut batches = Vec::new();
        for at in 0..self.ragged {
            let [values, splits] = self.ragged(ctx, at)?;
            check_matrix(values.rank() == 1 && splits.rank() == 1)?;
            let splits = ctx.ints(self.ragged + at)?;
            check_splits(&splits, 1, Some(values.elements()))?;
            batches.push(rows(&splits) as i64);
        }
        for at in 0..self.sparse {
            let [indices, values, shape] = self.sparse(ctx, at)?;
            ensure!(
                indices.rank() == 2
                    && values.rank() == 1
                    && shape.rank() == 1
                    && indices.shape().dim(0) == values.elements(),
                invalid_argument,
                "Invalid SparseTensor {at}"
            );
            let dims = shape.slice::<i64>()?;
            check_matrix(dims.len() == 2 && indices.shape().dim(1) == 2)?;
            batches.push(dims[0]);
        }
        for at in 0..self.dense {
            let matrix = self.dense(ctx, at)?.shape();
            check_matrix(matrix.rank() == 2)?;
            batches.push(matrix[0]);
        }
        ensure!(
            batches.windows(2).all(|pair| pair[0] == pair[1]),
            invalid_argument,
            "inputs must all have the same batch dimension size."
        );
        Ok(batches.first().copied().unwrap_or(0).max(0))
    }

    /// The columns in the order of these letters.
    fn columns<'a>(&self, ctx: &'a KernelCtx<'_>, order: &str) -> Result<Vec<Column<'a>>> {
        let (mut ragged, mut sparse, mut dense) = (0..self.ragged, 0..self.sparse, 0..self.dense);
        let missing = |what: &str, count: usize| {
            invalid_argument!(
                "input_order \"{order}\" specifies reading a {what} at index {count} from a list of {count} values."
            )
        };
        let mut columns = Vec::with_capacity(order.len());
        for letter in order.chars() {
            columns.push(match letter {
                'R' => {
                    let at = ragged.next();
                    let at = at.ok_or_else(|| missing("ragged tensor value", self.ragged))?;
                    let splits = ctx.ints(self.ragged + at)?;
                    let [values, _] = self.ragged(ctx, at)?;
                    let rows = splits
                        .windows(2)
                        .enumerate()
                        .flat_map(|(row, bounds)| (bounds[0]..bounds[1]).map(move |_| row as i64));
                    Column::by_row(values, rows)?
                }
                'S' => {
                    let at = sparse.next();
                    let at = at.ok_or_else(|| missing("sparse tensor value", self.sparse))?;
                    let [indices, values, _] = self.sparse(ctx, at)?;
                    let rows = indices
                        .slice::<i64>()?
                        .chunks_exact(2)
                        .map(|index| index[0]);
                    Column::by_row(values, rows)?
                }
                'D' => {
                    let at = dense.next();
                    let at = at.ok_or_else(|| missing("dense tensor", self.dense))?;
                    Column::dense(self.dense(ctx, at)?)?
                }
                _ => return Err(invalid_argument!("Unexpected input_order value.")),
            });
        }
        Ok(columns)
    }
}

fn check_matrix(is_matrix: bool) -> Result<()> {
    ensure!(
        is_matrix,
        invalid_argument,
        "tf.ragged.cross only supports inputs with rank=2."
    );
    Ok(())
}
