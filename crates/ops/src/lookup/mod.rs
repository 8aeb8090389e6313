//! Lookup tables: from keys to values, filled once or changed at any time.
//!
//! All kinds are one resource, [`table::Table`], so that the ops on tables need not know which one a handle names. Every
//! op but the newer ones exists twice: by resource handle, and in the older form by reference to a container and a name.

mod access;
mod create;
mod dense;
mod examples;
mod hashed;
mod initialize;
mod scalars;
mod store;
mod table;
mod text_file;
mod vocabulary;

use std::sync::Arc;

use tensorfleet_graph::{Exactness, Gradient, OpDef};
use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, PortType};

use self::table::Table;
use crate::Family;
use crate::data_flow::keeper;

pub(crate) static FAMILY: Family = Family {
    name: "lookup",
    ops: &[],
    tables: &[
        &access::OPS,
        &create::OPS,
        &initialize::OPS,
        &text_file::OPS,
    ],
};

/// What ops on tables by handle have in common.
const BY_HANDLE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("what a table holds is no function of the keys"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// What ops on tables by reference have in common.
const BY_REF: OpDef = OpDef {
    stateful: false,
    ..BY_HANDLE
};

/// The table that input 0 names.
fn table(ctx: &KernelCtx<'_>) -> Result<Arc<Table>> {
    keeper::resource(ctx)
}

/// An error in TensorFlow's words unless the node's types beside the handle are these.
fn check_signature(node: &NodeInfo, inputs: &[DType], outputs: &[DType]) -> Result<()> {
    let (handle, rest) = node.input_types.split_at(node.input_types.len().min(1));
    let is = |ports: &[PortType], dtypes: &[DType]| {
        ports.len() == dtypes.len()
            && ports
                .iter()
                .zip(dtypes)
                .all(|(port, dtype)| port.dtype == *dtype)
    };
    let names = |ports: &mut dyn Iterator<Item = PortType>| {
        let names: Vec<String> = ports.map(|port| port.to_string()).collect();
        names.join(",")
    };
    let plain = |dtype: &DType| PortType::from(*dtype);
    ensure!(
        is(rest, inputs) && is(&node.output_types, outputs),
        invalid_argument,
        "Signature mismatch, have: {}->{} expected: {}->{}",
        names(&mut node.input_types.iter().copied()),
        names(&mut node.output_types.iter().copied()),
        names(&mut handle.iter().copied().chain(inputs.iter().map(plain))),
        names(&mut outputs.iter().map(plain))
    );
    Ok(())
}
