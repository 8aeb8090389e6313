//! Examples of [`parse_sequence`](super::parse_sequence): what comes of two serialized SequenceExamples.

use tensorfleet_graph::example::{Example, Lit, bools, ex_attrs, ex_err, f32s, i32s, i64s, strs};
use tensorfleet_status::Code;

/// Context c: 5, t: ["x", "y"]; lists f: [[2, 3], [0.5, 2]], w: [[1], [2, 3]].
pub(super) const LONG: &str = "\n\x1b\n\n\n\x01c\x12\x05\x1a\x03\n\x01\x05\n\r\n\x01t\x12\x08\n\x06\n\x01x\n\x01y\x129\n!\n\x01f\x12\x1c\n\x0c\x12\n\n\x08\x00\x00\x00@\x00\x00@@\n\x0c\x12\n\n\x08\x00\x00\x00?\x00\x00\x00@\n\x14\n\x01w\x12\x0f\n\x05\x1a\x03\n\x01\x01\n\x06\x1a\x04\n\x02\x02\x03";

/// Context c: 6; lists f: [[3, 2]], w: [[], [4], nothing].
const SHORT: &str = "\n\x0c\n\n\n\x01c\x12\x05\x1a\x03\n\x01\x06\x12)\n\x13\n\x01f\x12\x0e\n\x0c\x12\n\n\x08\x00\x00@@\x00\x00\x00@\n\x12\n\x01w\x12\r\n\x02\x1a\x00\n\x05\x1a\x03\n\x01\x04\n\x00";

const NO_TEXTS: Lit = strs(&[0], &[]);
const NO_INTS: Lit = i64s(&[0], &[]);
const BOTH: Lit = strs(&[2], &[LONG, SHORT]);

/// Context c and a list of each kind.
const fn all(key: &'static str, missing: &'static str) -> [(&'static str, &'static str); 15] {
    [
        ("feature_list_dense_missing_assumed_empty", missing),
        ("context_sparse_keys", "['t']"),
        ("context_dense_keys", "['c']"),
        ("feature_list_sparse_keys", "['w']"),
        ("feature_list_dense_keys", key),
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
    ]
}

pub(super) const EXAMPLES: &[Example] = &[
    ex_attrs(
        "features and lists",
        &all("['f']", "[]"),
        &[BOTH, NO_TEXTS, NO_INTS],
        &[
            i64s(&[2, 2], &[0, 0, 0, 1]),
            strs(&[2], &["x", "y"]),
            i64s(&[2], &[2, 2]),
            i64s(&[2], &[5, 6]),
            i64s(&[4, 3], &[0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 0]),
            i64s(&[4], &[1, 2, 3, 4]),
            i64s(&[3], &[2, 3, 2]),
            f32s(&[2, 2, 2], &[2.0, 3.0, 0.5, 2.0, 3.0, 2.0, 0.0, 0.0]),
            i64s(&[2], &[2, 1]),
        ],
    ),
    ex_attrs(
        "one Example",
        &all("['f']", "[]"),
        &[strs(&[], &[SHORT]), NO_TEXTS, NO_INTS],
        &[
            i64s(&[0, 1], &[]),
            strs(&[0], &[]),
            i64s(&[1], &[0]),
            i64s(&[], &[6]),
            i64s(&[1, 2], &[1, 0]),
            i64s(&[1], &[4]),
            i64s(&[2], &[3, 1]),
            f32s(&[1, 2], &[3.0, 2.0]),
            i64s(&[], &[1]),
        ],
    ),
    ex_attrs(
        "what may be missing",
        &all("['q']", "['q']"),
        &[strs(&[1], &[SHORT]), NO_TEXTS, i64s(&[], &[9])],
        &[
            i64s(&[0, 2], &[]),
            strs(&[0], &[]),
            i64s(&[2], &[1, 0]),
            i64s(&[1], &[6]),
            i64s(&[1, 3], &[0, 1, 0]),
            i64s(&[1], &[4]),
            i64s(&[3], &[1, 3, 1]),
            f32s(&[1, 0, 2], &[]),
            i64s(&[1], &[0]),
        ],
    ),
    ex_err(
        "a list is missing",
        &all("['q']", "[]"),
        &[BOTH, strs(&[2], &["a", "b"]), NO_INTS],
        Code::InvalidArgument,
        "Name: a, Feature list 'q' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
    ),
    ex_err(
        "no SequenceExample",
        &all("['f']", "[]"),
        &[strs(&[1], &["bogus"]), NO_TEXTS, NO_INTS],
        Code::InvalidArgument,
        "Invalid protocol message input, example id: <unknown>",
    ),
    ex_err(
        "another type",
        &all("['w']", "[]"),
        &[BOTH, NO_TEXTS, NO_INTS],
        Code::InvalidArgument,
        "",
    ),
];

const RAGGED: &[(&str, &str)] = &[
    ("Tcontext_dense", "[]"),
    ("context_ragged_value_types", "[DT_STRING]"),
    ("context_ragged_split_types", "[DT_INT32]"),
    ("Nfeature_list_dense", "1"),
    ("feature_list_dense_types", "[DT_FLOAT]"),
    ("feature_list_dense_shapes", "[[2]]"),
    ("feature_list_ragged_value_types", "[DT_INT64]"),
    ("feature_list_ragged_split_types", "[DT_INT64]"),
];

pub(super) const EXAMPLES_V2: &[Example] = &[
    ex_attrs(
        "ragged features",
        RAGGED,
        &[
            BOTH,
            NO_TEXTS,
            NO_TEXTS,
            NO_TEXTS,
            strs(&[1], &["t"]),
            NO_TEXTS,
            strs(&[1], &["f"]),
            strs(&[1], &["w"]),
            bools(&[1], &[false]),
        ],
        &[
            strs(&[2], &["x", "y"]),
            i32s(&[3], &[0, 2, 2]),
            f32s(&[2, 2, 2], &[2.0, 3.0, 0.5, 2.0, 3.0, 2.0, 0.0, 0.0]),
            i64s(&[2], &[2, 1]),
            i64s(&[4], &[1, 2, 3, 4]),
            i64s(&[3], &[0, 2, 5]),
            i64s(&[6], &[0, 1, 3, 3, 4, 4]),
        ],
    ),
    ex_err(
        "too few keys",
        RAGGED,
        &[
            BOTH,
            NO_TEXTS,
            NO_TEXTS,
            NO_TEXTS,
            NO_TEXTS,
            NO_TEXTS,
            strs(&[1], &["f"]),
            strs(&[1], &["w"]),
            bools(&[1], &[false]),
        ],
        Code::InvalidArgument,
        "Expected len(context_ragged_keys) to match len(context_ragged_value_types)",
    ),
];
