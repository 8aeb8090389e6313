//! `ParseExample`, `ParseExampleV2`, `ParseSingleExample`: serialized Examples as tensors.
//!
//! TensorFlow: ParseExampleV2(serialized: string, names: string, sparse_keys, dense_keys, ragged_keys: string, dense_defaults:
//! Tdense) -> (sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64,
//! dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types), with attr dense_shapes; a
//! default without elements means that the feature must be there. ParseExample has scalar keys and nothing ragged,
//! ParseSingleExample has keys as attributes and takes one Example.

use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, PartialShape, TString, Tensor, UNKNOWN_DIM};

use super::PARSE;
use super::batch::{Input, parse};
use super::columns::{Column, Columns, Form, Look};
use super::parse_examples as examples;

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "ParseExample",
        inputs: &[
            "serialized: string",
            "names: string",
            "sparse_keys: Nsparse * string",
            "dense_keys: Ndense * string",
            "dense_defaults: Tdense",
        ],
        outputs: &[
            "sparse_indices: Nsparse * int64",
            "sparse_values: sparse_types",
            "sparse_shapes: Nsparse * int64",
            "dense_values: Tdense",
        ],
        attrs: &[
            "Nsparse: int >= 0",
            "Ndense: int >= 0",
            "sparse_types: list({float, int64, string}) >= 0",
            "Tdense: list({float, int64, string}) >= 0",
            "dense_shapes: list(shape) >= 0",
        ],
        infer: infer_batch,
        kernels: &[cpu(&[], build_scalar_keys)],
        examples: examples::EXAMPLES,
        ..PARSE
    },
    OpDef {
        name: "ParseExampleV2",
        inputs: &[
            "serialized: string",
            "names: string",
            "sparse_keys: string",
            "dense_keys: string",
            "ragged_keys: string",
            "dense_defaults: Tdense",
        ],
        outputs: &[
            "sparse_indices: num_sparse * int64",
            "sparse_values: sparse_types",
            "sparse_shapes: num_sparse * int64",
            "dense_values: Tdense",
            "ragged_values: ragged_value_types",
            "ragged_row_splits: ragged_split_types",
        ],
        attrs: &[
            "Tdense: list({float, int64, string}) >= 0",
            "num_sparse: int >= 0",
            "sparse_types: list({float, int64, string}) >= 0",
            "ragged_value_types: list({float, int64, string}) >= 0",
            "ragged_split_types: list({int32, int64}) >= 0",
            "dense_shapes: list(shape) >= 0",
        ],
        infer: infer_batch,
        kernels: &[cpu(&[], build_vector_keys)],
        examples: examples::EXAMPLES_V2,
        ..PARSE
    },
    OpDef {
        name: "ParseSingleExample",
        inputs: &["serialized: string", "dense_defaults: Tdense"],
        outputs: &[
            "sparse_indices: num_sparse * int64",
            "sparse_values: sparse_types",
            "sparse_shapes: num_sparse * int64",
            "dense_values: Tdense",
        ],
        attrs: &[
            "num_sparse: int >= 0",
            "sparse_keys: list(string) >= 0",
            "dense_keys: list(string) >= 0",
            "sparse_types: list({float, int64, string}) >= 0",
            "Tdense: list({float, int64, string}) >= 0",
            "dense_shapes: list(shape) >= 0",
        ],
        infer: infer_batch,
        kernels: &[cpu(&[], build_single)],
        examples: examples::EXAMPLES_SINGLE,
        ..PARSE
    },
];

/// What the attributes of all three ops say.
struct Spec {
    dense_types: Vec<DType>,
    looks: Vec<Look>,
    sparse_types: Vec<DType>,
    ragged_types: Vec<DType>,
    split_types: Vec<DType>,
}

impl Spec {
    fn of(attrs: &Attrs) -> Result<Spec> {
        let count = |name: &str, or: usize| match attrs.int(name) {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(_) => or,
        };
        // Only one of the ops has ragged features.
        let spec = Spec {
            dense_types: attrs.dtypes("Tdense")?,
            looks: Look::all(attrs.shapes("dense_shapes")?)?,
            sparse_types: attrs.dtypes("sparse_types")?,
            ragged_types: attrs.dtypes("ragged_value_types").unwrap_or_default(),
            split_types: attrs.dtypes("ragged_split_types").unwrap_or_default(),
        };
        let (dense, sparse) = (spec.dense_types.len(), spec.sparse_types.len());
        let counted = count("Nsparse", count("num_sparse", sparse));
        ensure!(
            counted == sparse,
            invalid_argument,
            "len(sparse_keys) != len(sparse_types)"
        );
        ensure!(
            count("Ndense", dense) == dense,
            invalid_argument,
            "len(dense_keys) != len(dense_types)"
        );
        ensure!(
            dense == spec.looks.len(),
            invalid_argument,
            "len(dense_keys) != len(dense_shapes)"
        );
        ensure!(
            spec.ragged_types.len() == spec.split_types.len(),
            invalid_argument,
            "len(ragged_keys) != len(ragged_split_types)"
        );
        Ok(spec)
    }

    /// The features that are wanted; the defaults are the inputs from `first` on.
    fn columns(&self, ctx: &KernelCtx<'_>, first: usize, keys: Keys) -> Result<Columns> {
        let mut columns = Vec::with_capacity(keys.dense.len() + keys.sparse.len());
        let looks = self.looks.iter().zip(&self.dense_types);
        for (index, (key, (look, dtype))) in keys.dense.into_iter().zip(looks).enumerate() {
            let default = ctx.input(first + index)?;
            look.check_default(index, default, *dtype)?;
            columns.push(Column::dense(key, *dtype, look, default));
        }
        for (key, dtype) in keys.sparse.into_iter().zip(&self.sparse_types) {
            columns.push(Column::of(key, *dtype, Form::Sparse));
        }
        let types = self.ragged_types.iter().zip(&self.split_types);
        for (key, (dtype, splits)) in keys.ragged.into_iter().zip(types) {
            columns.push(Column::of(key, *dtype, Form::Ragged(*splits)));
        }
        Columns::distinct(columns)
    }

    fn run(&self, ctx: &mut KernelCtx<'_>, columns: &Columns) -> Result<()> {
        let serialized = ctx.input(0)?;
        let names: &[TString] = match ctx.node().op.as_str() {
            "ParseSingleExample" => &[],
            _ => names_of(ctx.input(1)?, serialized)?,
        };
        let input = Input {
            examples: serialized.slice::<TString>()?,
            names,
            is_single: serialized.rank() == 0,
        };
        let parsed = parse(ctx.par(), columns, input)?;
        for (index, tensor) in columns.in_order(parsed).into_iter().enumerate() {
            ctx.set(index, tensor);
        }
        Ok(())
    }
}

/// The names of Examples: none, or one for each.
fn names_of<'a>(names: &'a Tensor, serialized: &Tensor) -> Result<&'a [TString]> {
    ensure!(
        names.is_empty() || names.shape() == serialized.shape(),
        invalid_argument,
        "Expected names have the same shape as serialized: name.shape={}, serialized.shape={}",
        names.shape(),
        serialized.shape()
    );
    names.slice::<TString>()
}

struct Keys {
    dense: Vec<TString>,
    sparse: Vec<TString>,
    ragged: Vec<TString>,
}

fn build_scalar_keys(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 1,
            invalid_argument,
            "Expected serialized to be a vector, got shape: {}",
            serialized.shape()
        );
        let (sparse, dense) = (spec.sparse_types.len(), spec.dense_types.len());
        let keys = |from: usize, count: usize| {
            let keys = (from..from + count).map(|index| ctx.scalar::<TString>(index));
            keys.collect::<Result<Vec<TString>>>()
        };
        let keys = Keys {
            sparse: keys(2, sparse)?,
            dense: keys(2 + sparse, dense)?,
            ragged: Vec::new(),
        };
        let columns = spec.columns(ctx, 2 + sparse + dense, keys)?;
        spec.run(ctx, &columns)
    })
}

fn build_vector_keys(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() <= 1,
            invalid_argument,
            "Expected serialized to be a scalar or vector, got shape: {}",
            serialized.shape()
        );
        names_of(ctx.input(1)?, serialized)?;
        let keys = |index: usize, texts: [&str; 2], count: usize| {
            let keys = ctx.input(index)?.slice::<TString>()?.to_vec();
            let [keys_name, count_name] = texts;
            ensure!(
                keys.len() == count,
                invalid_argument,
                "Expected len({keys_name}) == {count_name} but got: {} vs. {count}",
                keys.len()
            );
            Ok(keys)
        };
        let keys = Keys {
            dense: keys(
                3,
                ["dense_keys", "len(dense_types)"],
                spec.dense_types.len(),
            )?,
            sparse: keys(2, ["sparse_keys", "num_sparse"], spec.sparse_types.len())?,
            ragged: keys(
                4,
                ["ragged_keys", "len(ragged_value_types)"],
                spec.ragged_types.len(),
            )?,
        };
        let columns = spec.columns(ctx, 5, keys)?;
        spec.run(ctx, &columns)
    })
}

fn build_single(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    let keys = |name: &str| -> Result<Vec<TString>> {
        let keys = node.attrs.bytes_list(name)?.iter();
        Ok(keys.map(TString::from).collect())
    };
    let (sparse, dense) = (keys("sparse_keys")?, keys("dense_keys")?);
    ensure!(
        sparse.len() == spec.sparse_types.len(),
        invalid_argument,
        "len(sparse_keys) != len(sparse_types)"
    );
    ensure!(
        dense.len() == spec.dense_types.len(),
        invalid_argument,
        "len(dense_keys) != len(dense_types)"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            invalid_argument,
            "Expected serialized to be a scalar, got shape: {}",
            serialized.shape()
        );
        let keys = Keys {
            dense: dense.clone(),
            sparse: sparse.clone(),
            ragged: Vec::new(),
        };
        let columns = spec.columns(ctx, 1, keys)?;
        spec.run(ctx, &columns)
    })
}

/// Dense features have the dimensions of the batch before their own, sparse ones as many more as the batch has.
fn infer_batch(ctx: &mut InferCtx<'_>) -> Result<()> {
    let spec = Spec::of(ctx.attrs())?;
    let batch = ctx.input(0).dims();
    let rank = batch.map_or(UNKNOWN_DIM, |dims| dims.len() as i64 + 1);
    let vector = PartialShape::of_rank(1);
    let sparse = spec.sparse_types.len();
    for index in 0..sparse {
        ctx.set(index, PartialShape::new(&[UNKNOWN_DIM, rank]));
        ctx.set(sparse + index, vector.clone());
        ctx.set(2 * sparse + index, PartialShape::new(&[rank]));
    }
    for (index, look) in spec.looks.iter().enumerate() {
        if let (Some(batch), Some(dims)) = (batch, look.shape.dims()) {
            ctx.set(
                3 * sparse + index,
                PartialShape::new(&[batch, dims].concat()),
            );
        }
    }
    for index in 3 * sparse + spec.looks.len()..ctx.num_outputs() {
        ctx.set(index, vector.clone());
    }
    Ok(())
}
