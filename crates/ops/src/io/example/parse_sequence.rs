//! `ParseSequenceExample`, `ParseSequenceExampleV2`: serialized SequenceExamples as tensors.
//!
//! TensorFlow: ParseSequenceExampleV2(serialized: string, debug_name: string, context_sparse_keys, context_dense_keys,
//! context_ragged_keys, feature_list_sparse_keys, feature_list_dense_keys, feature_list_ragged_keys: string,
//! feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense) -> what the context has, as
//! ParseExampleV2 gives it, then of the lists: indices, values and shapes of sparse ones, values and lengths of dense ones,
//! values, outer and inner splits of ragged ones. ParseSequenceExample has keys as attributes and nothing ragged.

use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString};

use super::PARSE;
use super::batch::Input;
use super::columns::{Column, Columns, Form, Look};
use super::sequence::{Words, parse};
use super::sequence_examples as examples;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ParseSequenceExample",
        inputs: &[
            "serialized: string",
            "debug_name: string",
            "context_dense_defaults: Tcontext_dense",
        ],
        outputs: &[
            "context_sparse_indices: Ncontext_sparse * int64",
            "context_sparse_values: context_sparse_types",
            "context_sparse_shapes: Ncontext_sparse * int64",
            "context_dense_values: Tcontext_dense",
            "feature_list_sparse_indices: Nfeature_list_sparse * int64",
            "feature_list_sparse_values: feature_list_sparse_types",
            "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
            "feature_list_dense_values: feature_list_dense_types",
            "feature_list_dense_lengths: Nfeature_list_dense * int64",
        ],
        attrs: &[
            "feature_list_dense_missing_assumed_empty: list(string) >= 0",
            "context_sparse_keys: list(string) >= 0",
            "context_dense_keys: list(string) >= 0",
            "feature_list_sparse_keys: list(string) >= 0",
            "feature_list_dense_keys: list(string) >= 0",
            "Ncontext_sparse: int >= 0 = 0",
            "Ncontext_dense: int >= 0 = 0",
            "Nfeature_list_sparse: int >= 0 = 0",
            "Nfeature_list_dense: int >= 0 = 0",
            "context_sparse_types: list({float, int64, string}) >= 0 = []",
            "Tcontext_dense: list({float, int64, string}) >= 0 = []",
            "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
            "context_dense_shapes: list(shape) >= 0 = []",
            "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
            "feature_list_dense_shapes: list(shape) >= 0 = []",
        ],
        kernels: &[cpu(&[], build_by_attrs)],
        examples: examples::EXAMPLES,
        ..PARSE
    },
    OpDef {
        name: "ParseSequenceExampleV2",
        inputs: &[
            "serialized: string",
            "debug_name: string",
            "context_sparse_keys: string",
            "context_dense_keys: string",
            "context_ragged_keys: string",
            "feature_list_sparse_keys: string",
            "feature_list_dense_keys: string",
            "feature_list_ragged_keys: string",
            "feature_list_dense_missing_assumed_empty: bool",
            "context_dense_defaults: Tcontext_dense",
        ],
        outputs: &[
            "context_sparse_indices: Ncontext_sparse * int64",
            "context_sparse_values: context_sparse_types",
            "context_sparse_shapes: Ncontext_sparse * int64",
            "context_dense_values: Tcontext_dense",
            "context_ragged_values: context_ragged_value_types",
            "context_ragged_row_splits: context_ragged_split_types",
            "feature_list_sparse_indices: Nfeature_list_sparse * int64",
            "feature_list_sparse_values: feature_list_sparse_types",
            "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
            "feature_list_dense_values: feature_list_dense_types",
            "feature_list_dense_lengths: Nfeature_list_dense * int64",
            "feature_list_ragged_values: feature_list_ragged_value_types",
            "feature_list_ragged_outer_splits: feature_list_ragged_split_types",
            "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
        ],
        attrs: &[
            "Ncontext_sparse: int >= 0 = 0",
            "Tcontext_dense: list({float, int64, string}) >= 0 = []",
            "context_sparse_types: list({float, int64, string}) >= 0 = []",
            "context_ragged_value_types: list({float, int64, string}) >= 0 = []",
            "context_ragged_split_types: list({int32, int64}) >= 0 = []",
            "context_dense_shapes: list(shape) >= 0 = []",
            "Nfeature_list_sparse: int >= 0 = 0",
            "Nfeature_list_dense: int >= 0 = 0",
            "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
            "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
            "feature_list_ragged_value_types: list({float, int64, string}) >= 0 = []",
            "feature_list_ragged_split_types: list({int32, int64}) >= 0 = []",
            "feature_list_dense_shapes: list(shape) >= 0 = []",
        ],
        kernels: &[cpu(&[], build_by_inputs)],
        examples: examples::EXAMPLES_V2,
        ..PARSE
    },
];

/// What the attributes of the ops say.
pub(super) struct Spec {
    pub(super) context_dense: Vec<DType>,
    context_looks: Vec<Look>,
    pub(super) context_sparse: Vec<DType>,
    context_ragged: Vec<(DType, DType)>,
    pub(super) list_dense: Vec<DType>,
    list_rows: Vec<Shape>,
    pub(super) list_sparse: Vec<DType>,
    list_ragged: Vec<(DType, DType)>,
}

impl Spec {
    pub(super) fn of(attrs: &Attrs) -> Result<Spec> {
        // Only one of the ops has ragged features.
        let ragged = |values: &str, splits: &str| {
            let values = attrs.dtypes(values).unwrap_or_default();
            let splits = attrs.dtypes(splits).unwrap_or_default();
            ensure!(
                values.len() == splits.len(),
                invalid_argument,
                "there are {} types of ragged values and {} of splits",
                values.len(),
                splits.len()
            );
            Ok(values.into_iter().zip(splits).collect::<Vec<_>>())
        };
        let context_shapes = attrs.shapes("context_dense_shapes")?;
        let list_shapes = attrs.shapes("feature_list_dense_shapes")?;
        let spec = Spec {
            context_dense: attrs.dtypes("Tcontext_dense")?,
            context_looks: fixed_looks(context_shapes)?,
            context_sparse: attrs.dtypes("context_sparse_types")?,
            context_ragged: ragged("context_ragged_value_types", "context_ragged_split_types")?,
            list_dense: attrs.dtypes("feature_list_dense_types")?,
            list_rows: rows(list_shapes)?,
            list_sparse: attrs.dtypes("feature_list_sparse_types")?,
            list_ragged: ragged(
                "feature_list_ragged_value_types",
                "feature_list_ragged_split_types",
            )?,
        };
        for (attr, count, types) in [
            (
                "num_context_sparse",
                "Ncontext_sparse",
                spec.context_sparse.len(),
            ),
            (
                "num_context_dense",
                "Ncontext_dense",
                spec.context_dense.len(),
            ),
            (
                "num_context_dense",
                "Ncontext_dense",
                spec.context_looks.len(),
            ),
            (
                "num_feature_list_sparse",
                "Nfeature_list_sparse",
                spec.list_sparse.len(),
            ),
            (
                "num_feature_list_dense",
                "Nfeature_list_dense",
                spec.list_dense.len(),
            ),
            (
                "num_feature_list_dense",
                "Nfeature_list_dense",
                spec.list_rows.len(),
            ),
        ] {
            let count = match attrs.int(count) {
                Ok(count) => usize::try_from(count).unwrap_or(0),
                Err(_) => spec.context_dense.len(),
            };
            ensure!(
                count == types,
                invalid_argument,
                "{attr} ({count}) must match the number of its types and shapes ({types})"
            );
        }
        Ok(spec)
    }

    fn run(&self, ctx: &mut KernelCtx<'_>, keys: Keys, defaults_from: usize) -> Result<()> {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() <= 1,
            invalid_argument,
            "Expected serialized to be a scalar or vector, got shape: {}",
            serialized.shape()
        );
        let names = ctx.input(1)?.slice::<TString>()?;
        ensure!(
            names.is_empty() || names.len() == serialized.elements(),
            invalid_argument,
            "example_names must be empty or have the correct number of elements"
        );
        let (context, lists) = self.columns(ctx, keys, defaults_from)?;
        let input = Input {
            examples: serialized.slice::<TString>()?,
            names,
            is_single: serialized.rank() == 0,
        };
        let parsed = parse(ctx.par(), &context, &lists, input, Words::OfBatch)?;
        let [of_context, of_lists] = parsed;
        let tensors = context.in_order(of_context).into_iter();
        for (index, tensor) in tensors.chain(lists.in_order(of_lists)).enumerate() {
            ctx.set(index, tensor);
        }
        Ok(())
    }

    /// The columns of the context and of the lists; the defaults are the inputs from `defaults_from` on.
    pub(super) fn columns(
        &self,
        ctx: &KernelCtx<'_>,
        keys: Keys,
        defaults_from: usize,
    ) -> Result<(Columns, Columns)> {
        let mut context = Vec::new();
        let looks = self.context_looks.iter().zip(&self.context_dense);
        for (index, (key, (look, dtype))) in keys.context_dense.into_iter().zip(looks).enumerate() {
            let default = ctx.input(defaults_from + index)?;
            ensure!(
                default.is_empty() || look.shape.admits(default.shape()),
                invalid_argument,
                "default_value[{index}].shape() == {} != context_dense_shapes[{index}] == {}",
                default.shape(),
                look.shape
            );
            context.push(Column::dense(key, *dtype, look, default));
        }
        let mut lists = Vec::new();
        let rows = self.list_rows.iter().zip(&self.list_dense);
        for ((key, may_be_missing), (row, dtype)) in keys.list_dense.into_iter().zip(rows) {
            let row = row.clone();
            let form = Form::Rows {
                row,
                may_be_missing,
            };
            lists.push(Column::of(key, *dtype, form));
        }
        let add = |columns: &mut Vec<Column>, keys: Vec<TString>, types: &[DType]| {
            for (key, dtype) in keys.into_iter().zip(types) {
                columns.push(Column::of(key, *dtype, Form::Sparse));
            }
        };
        add(&mut context, keys.context_sparse, &self.context_sparse);
        add(&mut lists, keys.list_sparse, &self.list_sparse);
        let add = |columns: &mut Vec<Column>, keys: Vec<TString>, types: &[(DType, DType)]| {
            for (key, (dtype, splits)) in keys.into_iter().zip(types) {
                columns.push(Column::of(key, *dtype, Form::Ragged(*splits)));
            }
        };
        add(&mut context, keys.context_ragged, &self.context_ragged);
        add(&mut lists, keys.list_ragged, &self.list_ragged);
        Ok((Columns::new(context), Columns::new(lists)))
    }
}

/// Shapes of features that always have as many values.
fn fixed_looks(shapes: &[PartialShape]) -> Result<Vec<Look>> {
    let looks = Look::all(shapes)?;
    match looks.iter().find(|look| look.is_variable) {
        Some(look) => Err(invalid_argument!(
            "context features must have known shapes, got {}",
            look.shape
        )),
        None => Ok(looks),
    }
}

/// Shapes of the rows of lists.
fn rows(shapes: &[PartialShape]) -> Result<Vec<Shape>> {
    let rows = shapes.iter().map(|shape| {
        let row = shape.to_shape();
        row.ok_or_else(|| invalid_argument!("rows of lists must have known shapes, got {shape}"))
    });
    rows.collect()
}

/// The keys of each kind.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) context_sparse: Vec<TString>,
    pub(super) context_dense: Vec<TString>,
    pub(super) context_ragged: Vec<TString>,
    pub(super) list_sparse: Vec<TString>,
    /// And whether the list may be missing.
    pub(super) list_dense: Vec<(TString, bool)>,
    pub(super) list_ragged: Vec<TString>,
}

fn build_by_attrs(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    let keys = |name: &str, count: usize| {
        let keys = node.attrs.bytes_list(name)?.iter();
        let keys: Vec<TString> = keys.map(TString::from).collect();
        ensure!(
            keys.len() == count,
            invalid_argument,
            "num_{} ({count}) must match the size of {name} ({})",
            name.trim_end_matches("_keys"),
            keys.len()
        );
        Ok(keys)
    };
    let context_sparse = keys("context_sparse_keys", spec.context_sparse.len())?;
    let context_dense = keys("context_dense_keys", spec.context_dense.len())?;
    let list_sparse = keys("feature_list_sparse_keys", spec.list_sparse.len())?;
    let list_dense = keys("feature_list_dense_keys", spec.list_dense.len())?;
    let missing = node
        .attrs
        .bytes_list("feature_list_dense_missing_assumed_empty")?;
    let list_dense: Vec<(TString, bool)> = list_dense
        .into_iter()
        .map(|key| (key.clone(), missing.iter().any(|name| key == *name)))
        .collect();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let keys = Keys {
            context_sparse: context_sparse.clone(),
            context_dense: context_dense.clone(),
            list_sparse: list_sparse.clone(),
            list_dense: list_dense.clone(),
            ..Keys::default()
        };
        spec.run(ctx, keys, 2)
    })
}

fn build_by_inputs(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let keys = |index: usize, name: &str, of: &str, count: usize| {
            let keys = ctx.input(index)?.slice::<TString>()?.to_vec();
            ensure!(
                keys.len() == count,
                invalid_argument,
                "Expected len({name}) to match {of}"
            );
            Ok(keys)
        };
        let list_dense = keys(
            6,
            "feature_list_dense_keys",
            "Nfeature_list_dense",
            spec.list_dense.len(),
        )?;
        let missing = ctx.input(8)?.slice::<bool>()?;
        ensure!(
            missing.len() == list_dense.len(),
            invalid_argument,
            "Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense"
        );
        let keys = Keys {
            context_sparse: keys(
                2,
                "context_sparse_keys",
                "Ncontext_sparse",
                spec.context_sparse.len(),
            )?,
            context_dense: keys(
                3,
                "context_dense_keys",
                "len(Tcontext_dense)",
                spec.context_dense.len(),
            )?,
            context_ragged: keys(
                4,
                "context_ragged_keys",
                "len(context_ragged_value_types)",
                spec.context_ragged.len(),
            )?,
            list_sparse: keys(
                5,
                "feature_list_sparse_keys",
                "Nfeature_list_sparse",
                spec.list_sparse.len(),
            )?,
            list_dense: list_dense
                .into_iter()
                .zip(missing.iter().copied())
                .collect(),
            list_ragged: keys(
                7,
                "feature_list_ragged_keys",
                "len(feature_list_ragged_value_types)",
                spec.list_ragged.len(),
            )?,
        };
        spec.run(ctx, keys, 9)
    })
}
