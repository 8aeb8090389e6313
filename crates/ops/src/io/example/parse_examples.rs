//! Examples of [`parse`](super::parse): what comes of two serialized Examples.

use tensorfleet_graph::example::{Example, Lit, ex_attrs, ex_err, f32s, i32s, i64s, strs};
use tensorfleet_status::Code;

/// f: [2, 3], i: [7], s: ["x", "yz"].
const A: &str = "\n/\n\x11\n\x01f\x12\x0c\x12\n\n\x08\x00\x00\x00@\x00\x00@@\n\n\n\x01i\x12\x05\x1a\x03\n\x01\x07\n\x0e\n\x01s\x12\t\n\x07\n\x01x\n\x02yz";

/// f: [0.5, 2], i: [8, 9, 10].
const B: &str = "\n!\n\x11\n\x01f\x12\x0c\x12\n\n\x08\x00\x00\x00?\x00\x00\x00@\n\x0c\n\x01i\x12\x07\x1a\x05\n\x03\x08\t\n";

/// f without values.
const NONE: &str = "\n\x07\n\x05\n\x01f\x12\x00";

const BOTH: Lit = strs(&[2], &[A, B]);
const NO_NAMES: Lit = strs(&[0], &[]);
const NO_TEXTS: Lit = strs(&[0], &[]);
const NO_FLOATS: Lit = f32s(&[0], &[]);
const F: Lit = strs(&[], &["f"]);

/// One dense feature of floats and nothing else.
const fn dense(shapes: &'static str) -> [(&'static str, &'static str); 5] {
    [
        ("Nsparse", "0"),
        ("Ndense", "1"),
        ("sparse_types", "[]"),
        ("Tdense", "[DT_FLOAT]"),
        ("dense_shapes", shapes),
    ]
}

pub(super) const EXAMPLES: &[Example] = &[
    ex_attrs(
        "a sparse, a fixed and a padded feature",
        &[
            ("Nsparse", "1"),
            ("Ndense", "2"),
            ("sparse_types", "[DT_STRING]"),
            ("Tdense", "[DT_FLOAT, DT_INT64]"),
            ("dense_shapes", "[[2], [?]]"),
        ],
        &[
            BOTH,
            NO_NAMES,
            strs(&[], &["s"]),
            F,
            strs(&[], &["i"]),
            NO_FLOATS,
            i64s(&[1], &[-1]),
        ],
        &[
            i64s(&[2, 2], &[0, 0, 0, 1]),
            strs(&[2], &["x", "yz"]),
            i64s(&[2], &[2, 2]),
            f32s(&[2, 2], &[2.0, 3.0, 0.5, 2.0]),
            i64s(&[2, 3], &[7, -1, -1, 8, 9, 10]),
        ],
    ),
    ex_attrs(
        "no Examples",
        &[
            ("Nsparse", "1"),
            ("Ndense", "1"),
            ("sparse_types", "[DT_INT64]"),
            ("Tdense", "[DT_FLOAT]"),
            ("dense_shapes", "[[2]]"),
        ],
        &[NO_TEXTS, NO_NAMES, strs(&[], &["i"]), F, NO_FLOATS],
        &[
            i64s(&[0, 2], &[]),
            i64s(&[0], &[]),
            i64s(&[2], &[0, 0]),
            f32s(&[0, 2], &[]),
        ],
    ),
    ex_attrs(
        "a default for what is missing",
        &dense("[[2]]"),
        &[
            strs(&[3], &[NONE, B, ""]),
            strs(&[3], &["a", "b", "c"]),
            F,
            f32s(&[2], &[5.0, 6.0]),
        ],
        &[f32s(&[3, 2], &[5.0, 6.0, 0.5, 2.0, 5.0, 6.0])],
    ),
    ex_attrs(
        "steps of a padded feature",
        &dense("[[?, 2, 1]]"),
        &[BOTH, NO_NAMES, F, f32s(&[], &[0.0])],
        &[f32s(&[2, 1, 2, 1], &[2.0, 3.0, 0.5, 2.0])],
    ),
    ex_err(
        "required",
        &dense("[[2]]"),
        &[strs(&[1], &[NONE]), strs(&[1], &["n"]), F, NO_FLOATS],
        Code::InvalidArgument,
        "Name: n, Feature: f (data type: float) is required but could not be found.",
    ),
    ex_err(
        "other values than expected",
        &dense("[[3]]"),
        &[BOTH, NO_NAMES, F, NO_FLOATS],
        Code::InvalidArgument,
        "Name: <unknown>, Key: f, Index: 0.  Number of float values != expected.  Values size: 2 but output shape: [3]",
    ),
    ex_err(
        "no whole steps",
        &dense("[[?, 3]]"),
        &[BOTH, NO_NAMES, F, f32s(&[], &[0.0])],
        Code::InvalidArgument,
        "Name: <unknown>, Key: f, Index: 0.  Number of float values is not a multiple of stride length. Saw 2 values but output shape is: [?,3]",
    ),
    ex_err(
        "another type",
        &dense("[[1]]"),
        &[BOTH, NO_NAMES, strs(&[], &["i"]), NO_FLOATS],
        Code::InvalidArgument,
        "Name: <unknown>, Key: i, Index: 0.  Data types don't match. Data type: int64 but expected type: float",
    ),
    ex_err(
        "no Example",
        &dense("[[1]]"),
        &[strs(&[1], &["bogus"]), NO_NAMES, F, NO_FLOATS],
        Code::InvalidArgument,
        "Could not parse example input, value: 'bogus'",
    ),
    ex_err(
        "a default of another shape",
        &dense("[[2]]"),
        &[BOTH, NO_NAMES, F, f32s(&[3], &[1.0, 2.0, 3.0])],
        Code::InvalidArgument,
        "def_value[0].shape() == [3] is not compatible with dense_shapes_[0] == [2]",
    ),
    ex_err(
        "unknown dimensions inside",
        &dense("[[2, ?]]"),
        &[BOTH, NO_NAMES, F, NO_FLOATS],
        Code::InvalidArgument,
        "dense_shapes[0] has unknown rank or unknown inner dimensions: [2,?]",
    ),
    ex_err(
        "names of others",
        &dense("[[2]]"),
        &[BOTH, strs(&[1], &["n"]), F, NO_FLOATS],
        Code::InvalidArgument,
        "Expected names have the same shape as serialized: name.shape=[1], serialized.shape=[2]",
    ),
];

const RAGGED: &[(&str, &str)] = &[
    ("Tdense", "[]"),
    ("num_sparse", "1"),
    ("sparse_types", "[DT_INT64]"),
    ("ragged_value_types", "[DT_STRING, DT_FLOAT]"),
    ("ragged_split_types", "[DT_INT32, DT_INT64]"),
    ("dense_shapes", "[]"),
];

const RAGGED_KEYS: Lit = strs(&[2], &["s", "f"]);

pub(super) const EXAMPLES_V2: &[Example] = &[
    ex_attrs(
        "sparse and ragged features",
        RAGGED,
        &[BOTH, NO_NAMES, strs(&[1], &["i"]), NO_TEXTS, RAGGED_KEYS],
        &[
            i64s(&[4, 2], &[0, 0, 1, 0, 1, 1, 1, 2]),
            i64s(&[4], &[7, 8, 9, 10]),
            i64s(&[2], &[2, 3]),
            strs(&[2], &["x", "yz"]),
            f32s(&[4], &[2.0, 3.0, 0.5, 2.0]),
            i32s(&[3], &[0, 2, 2]),
            i64s(&[3], &[0, 2, 4]),
        ],
    ),
    ex_attrs(
        "one Example",
        RAGGED,
        &[
            strs(&[], &[B]),
            NO_NAMES,
            strs(&[1], &["i"]),
            NO_TEXTS,
            RAGGED_KEYS,
        ],
        &[
            i64s(&[3, 1], &[0, 1, 2]),
            i64s(&[3], &[8, 9, 10]),
            i64s(&[1], &[3]),
            strs(&[0], &[]),
            f32s(&[2], &[0.5, 2.0]),
            i32s(&[0], &[]),
            i64s(&[0], &[]),
        ],
    ),
    ex_err(
        "another type",
        RAGGED,
        &[
            BOTH,
            NO_NAMES,
            strs(&[1], &["s"]),
            NO_TEXTS,
            strs(&[2], &["i", "f"]),
        ],
        Code::InvalidArgument,
        "Data types don't match. Expected type: ",
    ),
    ex_err(
        "too few keys",
        RAGGED,
        &[BOTH, NO_NAMES, NO_TEXTS, NO_TEXTS, RAGGED_KEYS],
        Code::InvalidArgument,
        "Expected len(sparse_keys) == num_sparse but got: 0 vs. 1",
    ),
    ex_err(
        "a matrix",
        RAGGED,
        &[
            strs(&[1, 1], &[A]),
            NO_NAMES,
            strs(&[1], &["i"]),
            NO_TEXTS,
            RAGGED_KEYS,
        ],
        Code::InvalidArgument,
        "",
    ),
];

/// One dense feature of floats and a sparse one.
const fn single(shapes: &'static str) -> [(&'static str, &'static str); 6] {
    [
        ("num_sparse", "1"),
        ("sparse_keys", "['s']"),
        ("dense_keys", "['f']"),
        ("sparse_types", "[DT_STRING]"),
        ("Tdense", "[DT_FLOAT]"),
        ("dense_shapes", shapes),
    ]
}

pub(super) const EXAMPLES_SINGLE: &[Example] = &[
    ex_attrs(
        "a sparse and a fixed feature",
        &single("[[2]]"),
        &[strs(&[], &[A]), NO_FLOATS],
        &[
            i64s(&[2, 1], &[0, 1]),
            strs(&[2], &["x", "yz"]),
            i64s(&[1], &[2]),
            f32s(&[2], &[2.0, 3.0]),
        ],
    ),
    ex_attrs(
        "a variable feature, and one that is missing",
        &single("[[?, 1]]"),
        &[strs(&[], &[B]), f32s(&[], &[0.0])],
        &[
            i64s(&[0, 1], &[]),
            strs(&[0], &[]),
            i64s(&[1], &[0]),
            f32s(&[2, 1], &[0.5, 2.0]),
        ],
    ),
    ex_err(
        "required",
        &single("[[2]]"),
        &[strs(&[], &[NONE]), NO_FLOATS],
        Code::InvalidArgument,
        "Feature: f (data type: float) is required but could not be found.",
    ),
    ex_err(
        "other values than expected",
        &single("[[3]]"),
        &[strs(&[], &[A]), NO_FLOATS],
        Code::InvalidArgument,
        "Key: f.  Can't parse serialized Example",
    ),
    ex_err(
        "no whole steps",
        &single("[[?, 3]]"),
        &[strs(&[], &[A]), f32s(&[], &[0.0])],
        Code::InvalidArgument,
        "Error while parsing feature with key f: number of elements should be divisible by 3, found 2 instead",
    ),
    ex_err(
        "a vector",
        &single("[[2]]"),
        &[BOTH, NO_FLOATS],
        Code::InvalidArgument,
        "",
    ),
];
