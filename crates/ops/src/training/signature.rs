//! Pieces of the signatures and scripts of optimizer ops: each comes by reference and by handle, dense and sparse.

use tensorfleet_graph::{OpDef, infer};

use crate::state::NO_GRADIENT;

/// The type attribute of all optimizer ops.
pub(super) const T: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
/// Without exclusive access an update would race with others: the locks are taken whatever this says.
pub(super) const USE_LOCKING: &str = "use_locking: bool = false";

/// An op on variables by reference; the reference to the first is the output.
pub(super) const BY_REFERENCE: OpDef = OpDef {
    outputs: &["out: Ref(T)"],
    infer: infer::same_as_first,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

/// An op on variables by handle.
pub(super) const BY_HANDLE: OpDef = OpDef {
    stateful: true,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

/// `refs!["var", "accum"; "lr: T", "grad: T"]`: inputs of an op on variables by reference.
macro_rules! refs {
    [$($var:literal),*; $($other:literal),*] => {
        &[$(concat!($var, ": Ref(T)"),)* $($other),*]
    };
}

/// As [`refs!`] for variables by handle.
macro_rules! handles {
    [$($var:literal),*; $($other:literal),*] => {
        &[$(concat!($var, ": resource"),)* $($other),*]
    };
}

/// The attributes of a dense op, and some of its own.
macro_rules! dense_attrs {
    [$($own:literal),*] => {
        &[$crate::training::signature::T, $crate::training::signature::USE_LOCKING, $($own),*]
    };
}

/// The attributes of a sparse op, and some of its own.
macro_rules! sparse_attrs {
    [$($own:literal),*] => {
        &[
            $crate::training::signature::T,
            "Tindices: {int32, int64}",
            $crate::training::signature::USE_LOCKING,
            $($own),*
        ]
    };
}

/// `with_refs!("float[2]", v = "1, 2", a = "0"; "…")`: a script's graph with variables by reference, targets
/// `set_v` and `set_a` that give them these values, and what follows.
macro_rules! with_refs {
    ($type:literal $dims:literal, $($var:ident = $value:literal),*; $rest:literal) => {
        concat!(
            $(
                stringify!($var), " = VariableV2() {dtype=", $type, ", shape=", $dims, "}\n",
                stringify!($var), "_0 = ", $type, $dims, "{", $value, "}\n",
                "set_", stringify!($var), " = Assign(", stringify!($var), ", ", stringify!($var), "_0)\n",
            )*
            $rest
        )
    };
}

/// As [`with_refs!`] with variables by handle; after `apply`, which must follow, `now_v` reads `v`.
macro_rules! with_handles {
    ($type:literal $dims:literal, $($var:ident = $value:literal),*; $rest:literal) => {
        concat!(
            $(
                stringify!($var), " = VarHandleOp() {dtype=", $type, ", shape=", $dims, ", shared_name='", stringify!($var), "'}\n",
                stringify!($var), "_0 = ", $type, $dims, "{", $value, "}\n",
                "set_", stringify!($var), " = AssignVariableOp(", stringify!($var), ", ", stringify!($var), "_0)\n",
            )*
            $rest,
            $("\nnow_", stringify!($var), " = ReadVariableOp(", stringify!($var), ", ^apply) {dtype=", $type, "}",)*
        )
    };
}

pub(super) use {dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs};
