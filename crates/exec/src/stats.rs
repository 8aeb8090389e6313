//! What a step reports when it ends: real times per node, for RunMetadata and timelines.

use std::time::Duration;

use tensorfleet_tensor::{DType, Shape};

/// One run of one node.
#[derive(Clone, Debug)]
pub struct NodeStat {
    /// The node's position in the plan.
    pub node: u32,
    /// When its inputs were there, on the step's clock.
    pub scheduled: Duration,
    /// When its kernel started.
    pub start: Duration,
    /// When its kernel ended.
    pub end: Duration,
    /// A small number for the thread that ran it.
    pub thread: u32,
    /// What it produced: dtype, shape and bytes per output that has a value.
    pub outputs: Vec<(u32, DType, Shape, usize)>,
}

/// What a step reports.
#[derive(Default)]
pub struct StepReport {
    /// One entry per node run, if the step was asked to record them.
    pub nodes: Vec<NodeStat>,
}
