//! Every op: signature, shape rule, gradient, kernels and examples, one place each.
//!
//! One file is one op or one table-driven family of ops that differ by a scalar function. A file holds
//! the `static` [`OpDef`](tensorfleet_graph::OpDef), the functions it names, and nothing else. Registration is one line in the
//! family's table. There is no mutable static here: all state lives in resources.

mod array;
mod call;
mod control_flow;
mod data_flow;
mod dataset;
mod image;
mod io;
mod linalg;
mod logging;
mod lookup;
mod math;
mod nn;
mod ragged;
mod random;
mod refused;
mod room;
mod signal;
mod sparse;
mod state;
mod string;
mod summary;
mod training;
pub mod types;

use std::sync::Arc;

use tensorfleet_graph::{OpDef, Registry};
use tensorfleet_status::Result;

/// The ops of one folder: single definitions, and tables of alike ones.
pub struct Family {
    /// The folder's name.
    pub name: &'static str,
    /// One definition each.
    pub ops: &'static [&'static OpDef],
    /// Tables of definitions.
    pub tables: &'static [&'static [OpDef]],
}

/// All families.
pub static FAMILIES: &[&Family] = &[
    &array::FAMILY,
    &call::FAMILY,
    &control_flow::FAMILY,
    &data_flow::FAMILY,
    &dataset::FAMILY,
    &image::FAMILY,
    &io::FAMILY,
    &linalg::FAMILY,
    &logging::FAMILY,
    &lookup::FAMILY,
    &math::FAMILY,
    &nn::FAMILY,
    &ragged::FAMILY,
    &random::FAMILY,
    &signal::FAMILY,
    &sparse::FAMILY,
    &state::FAMILY,
    &string::FAMILY,
    &summary::FAMILY,
    &training::FAMILY,
];

/// Every op.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().flat_map(|family| {
        family
            .ops
            .iter()
            .copied()
            .chain(family.tables.iter().flat_map(|table| table.iter()))
    })
}

/// Ops that graphs may hold but no step may run; each says why when one tries.
pub fn refused() -> impl Iterator<Item = &'static OpDef> {
    refused::OPS.iter().chain(dataset::REFUSED)
}

/// A registry of every op, the refused ones too.
///
/// ```
/// let registry = tensorfleet_ops::registry()?;
/// assert!(registry.get("MatMul").is_some() && registry.get("PyFunc").is_some());
/// assert!(!tensorfleet_ops::all().any(|def| def.name == "PyFunc"));
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
pub fn registry() -> Result<Arc<Registry>> {
    Registry::new(all().chain(refused())).map(Arc::new)
}
