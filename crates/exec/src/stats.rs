//! What a step reports when it ends: real times per node, for RunMetadata and timelines.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tensorfleet_kernel::Value;
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

impl NodeStat {
    /// A run on the calling thread that ended with these outputs.
    pub(crate) fn of(
        node: u32,
        scheduled: Duration,
        start: Duration,
        end: Duration,
        outputs: &[Value],
    ) -> NodeStat {
        let described = outputs
            .iter()
            .zip(0u32..)
            .filter_map(|(value, port)| match value {
                Value::Tensor(tensor) => Some((
                    port,
                    tensor.dtype(),
                    tensor.shape().clone(),
                    tensor.byte_size(),
                )),
                _ => None,
            });
        NodeStat {
            node,
            scheduled,
            start,
            end,
            thread: thread_number(),
            outputs: described.collect(),
        }
    }
}

/// A small number for the calling thread, for timelines.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
