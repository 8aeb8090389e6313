//! Switch, Merge and the frames of loops.
//!
//! These ops have no kernels of their own: the executor gives them their meaning (see
//! `tensorfleet-exec`), because deadness and frames are its business.

mod frames;
mod switch_merge;
mod trigger;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "control_flow",
    ops: &[&trigger::ABORT, &trigger::CONTROL_TRIGGER],
    tables: &[&frames::OPS, &switch_merge::OPS],
};

use tensorfleet_graph::{KernelDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, internal};

/// Marks an op as one that every CPU executor runs by itself.
pub(crate) static NATIVE: [KernelDef; 1] = [cpu(&[], native)];

fn native(node: &NodeInfo) -> Result<AnyKernel> {
    Err(internal!(
        "{} is run by the executor, it has no kernel",
        node.op
    ))
}
