//! `ParseSingleSequenceExample`: one serialized SequenceExample as tensors.
//!
//! TensorFlow: ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty: string,
//! context_sparse_keys, context_dense_keys, feature_list_sparse_keys, feature_list_dense_keys: N * string,
//! context_dense_defaults: Tcontext_dense, debug_name: string) -> sparse and dense features of the context, then sparse and
//! dense lists.

use tensorfleet_graph::example::{Example, Lit, ex_attrs, ex_err, f32s, i64s, strs};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::TString;

use super::PARSE;
use super::batch::Input;
use super::parse_sequence::{Keys, Spec};
use super::sequence::{Words, parse};
use super::sequence_examples::LONG;

pub(crate) static OP: OpDef = OpDef {
    name: "ParseSingleSequenceExample",
    inputs: &[
        "serialized: string",
        "feature_list_dense_missing_assumed_empty: string",
        "context_sparse_keys: Ncontext_sparse * string",
        "context_dense_keys: Ncontext_dense * string",
        "feature_list_sparse_keys: Nfeature_list_sparse * string",
        "feature_list_dense_keys: Nfeature_list_dense * string",
        "context_dense_defaults: Tcontext_dense",
        "debug_name: string",
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
    ],
    attrs: &[
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
    kernels: &[cpu(&[], build)],
    examples: EXAMPLES,
    ..PARSE
};

const NO_TEXTS: Lit = strs(&[0], &[]);
const NAME: Lit = strs(&[], &["n"]);

const ATTRS: &[(&str, &str)] = &[
    ("Ncontext_sparse", "1"),
    ("Ncontext_dense", "1"),
    ("Nfeature_list_sparse", "1"),
    ("Nfeature_list_dense", "1"),
    ("context_sparse_types", "[DT_STRING]"),
    ("Tcontext_dense", "[DT_INT64]"),
    ("feature_list_dense_types", "[DT_FLOAT]"),
    ("context_dense_shapes", "[[]]"),
    ("feature_list_sparse_types", "[DT_INT64]"),
    ("feature_list_dense_shapes", "[[2]]"),
];

const fn key(name: &'static [&'static str]) -> Lit {
    strs(&[], name)
}

const EXAMPLES: &[Example] = &[
    ex_attrs(
        "features and lists",
        ATTRS,
        &[
            key(&[LONG]),
            NO_TEXTS,
            key(&["t"]),
            key(&["c"]),
            key(&["w"]),
            key(&["f"]),
            i64s(&[0], &[]),
            NAME,
        ],
        &[
            i64s(&[2, 1], &[0, 1]),
            strs(&[2], &["x", "y"]),
            i64s(&[1], &[2]),
            i64s(&[], &[5]),
            i64s(&[3, 2], &[0, 0, 1, 0, 1, 1]),
            i64s(&[3], &[1, 2, 3]),
            i64s(&[2], &[2, 2]),
            f32s(&[2, 2], &[2.0, 3.0, 0.5, 2.0]),
        ],
    ),
    ex_attrs(
        "what may be missing",
        ATTRS,
        &[
            key(&[""]),
            strs(&[1], &["f"]),
            key(&["t"]),
            key(&["c"]),
            key(&["w"]),
            key(&["f"]),
            i64s(&[], &[9]),
            NAME,
        ],
        &[
            i64s(&[0, 1], &[]),
            strs(&[0], &[]),
            i64s(&[1], &[0]),
            i64s(&[], &[9]),
            i64s(&[0, 2], &[]),
            i64s(&[0], &[]),
            i64s(&[2], &[0, 0]),
            f32s(&[0, 2], &[]),
        ],
    ),
    ex_err(
        "a feature is missing",
        ATTRS,
        &[
            key(&[LONG]),
            NO_TEXTS,
            key(&["t"]),
            key(&["q"]),
            key(&["w"]),
            key(&["f"]),
            i64s(&[0], &[]),
            NAME,
        ],
        Code::InvalidArgument,
        "Name: n, Context feature 'q' is required but could not be found.",
    ),
    ex_err(
        "a list is missing",
        ATTRS,
        &[
            key(&[LONG]),
            NO_TEXTS,
            key(&["t"]),
            key(&["c"]),
            key(&["w"]),
            key(&["q"]),
            i64s(&[0], &[]),
            NAME,
        ],
        Code::InvalidArgument,
        "Name: n, Feature list 'q' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
    ),
    ex_err(
        "another type",
        ATTRS,
        &[
            key(&[LONG]),
            NO_TEXTS,
            key(&["t"]),
            key(&["t"]),
            key(&["w"]),
            key(&["f"]),
            i64s(&[0], &[]),
            NAME,
        ],
        Code::InvalidArgument,
        "",
    ),
    ex_err(
        "no SequenceExample",
        ATTRS,
        &[
            key(&["bogus"]),
            NO_TEXTS,
            key(&["t"]),
            key(&["c"]),
            key(&["w"]),
            key(&["f"]),
            i64s(&[0], &[]),
            NAME,
        ],
        Code::InvalidArgument,
        "Could not parse example input, value: 'bogus'",
    ),
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Spec::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            invalid_argument,
            "Expected serialized to be a scalar, got shape: {}",
            serialized.shape()
        );
        let missing = ctx.input(1)?.slice::<TString>()?;
        let mut next = 2;
        let mut keys = |name: &str, count: usize| {
            let first = next;
            next += count;
            let keys = (0..count).map(|index| {
                let key = ctx.input(first + index)?;
                ensure!(
                    key.rank() == 0,
                    invalid_argument,
                    "Expected {name}[{index}] to be a scalar, got shape: {}",
                    key.shape()
                );
                key.to_scalar::<TString>()
            });
            keys.collect::<Result<Vec<TString>>>()
        };
        let keys = Keys {
            context_sparse: keys("context_sparse_keys", spec.context_sparse.len())?,
            context_dense: keys("context_dense_keys", spec.context_dense.len())?,
            list_sparse: keys("feature_list_sparse_keys", spec.list_sparse.len())?,
            list_dense: keys("feature_list_dense_keys", spec.list_dense.len())?
                .into_iter()
                .map(|key| (key.clone(), missing.contains(&key)))
                .collect(),
            ..Keys::default()
        };
        let (context, lists) = spec.columns(ctx, keys, next)?;
        let names = ctx.input(next + spec.context_dense.len())?;
        let input = Input {
            examples: serialized.slice::<TString>()?,
            names: names.slice::<TString>()?,
            is_single: true,
        };
        let parsed = parse(ctx.par(), &context, &lists, input, Words::OfSingle)?;
        let [of_context, mut of_lists] = parsed;
        for (column, tensors) in lists.all().iter().zip(&mut of_lists) {
            if column.is_dense() {
                // This op does not tell lengths.
                tensors.truncate(1);
            }
        }
        let tensors = context.in_order(of_context).into_iter();
        for (index, tensor) in tensors.chain(lists.in_order(of_lists)).enumerate() {
            ctx.set(index, tensor);
        }
        Ok(())
    })
}
