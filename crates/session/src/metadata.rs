//! What a traced run tells: one timing per node run.

use std::time::Duration;

use tensorfleet_exec::{Plan, StepReport};
use tensorfleet_proto::{
    AllocationDescription, DeviceStepStats, NodeExecStats, NodeOutput, StepStats, TensorDescription,
};
use tensorfleet_tensor::{DType, Shape};

/// One run of one node.
#[derive(Clone, Debug)]
pub struct NodeTiming {
    /// The node's name.
    pub node: String,
    /// The op type.
    pub op: String,
    /// When its inputs were there, since the step began.
    pub scheduled: Duration,
    /// When its kernel started, since the step began.
    pub start: Duration,
    /// When its kernel ended, since the step began.
    pub end: Duration,
    /// A small number for the thread that ran it.
    pub thread: u32,
    /// Port, dtype, shape and bytes of each output.
    pub outputs: Vec<(u32, DType, Shape, usize)>,
}

/// What a traced run tells.
#[derive(Clone, Debug, Default)]
pub struct RunMetadata {
    /// The device.
    pub device: String,
    /// When the step began, since 1970.
    pub began: Duration,
    /// In order of completion; empty if the run was not traced.
    pub nodes: Vec<NodeTiming>,
}

impl RunMetadata {
    /// What a step reports, by the names of its plan.
    pub fn new(
        device: &str,
        plan: &Plan,
        report: StepReport,
        began_wall: Duration,
        began: Duration,
    ) -> RunMetadata {
        let since = |moment: Duration| moment.saturating_sub(began);
        let nodes = report.nodes.into_iter().filter_map(|stat| {
            let info = plan.node(stat.node)?;
            Some(NodeTiming {
                node: info.name.clone(),
                op: info.op.clone(),
                scheduled: since(stat.scheduled),
                start: since(stat.start),
                end: since(stat.end),
                thread: stat.thread,
                outputs: stat.outputs,
            })
        });
        RunMetadata {
            device: device.to_owned(),
            began: began_wall,
            nodes: nodes.collect(),
        }
    }

    /// The same as TensorFlow's `StepStats`, from which its tools draw timelines.
    pub fn to_step_stats(&self) -> StepStats {
        // TensorFlow's steps begin with a node of their own; tools take its time for the step's.
        let began = NodeTiming {
            node: "_SOURCE".to_owned(),
            op: "NoOp".to_owned(),
            scheduled: Duration::ZERO,
            start: Duration::ZERO,
            end: Duration::ZERO,
            thread: 0,
            outputs: Vec::new(),
        };
        // Transfers between devices are left out, as TensorFlow's executor does.
        let is_transfer = |timing: &&NodeTiming| {
            matches!(
                timing.op.as_str(),
                "_Send" | "_Recv" | "_HostSend" | "_HostRecv"
            )
        };
        let nodes = self.nodes.iter().filter(|timing| !is_transfer(timing));
        let all = std::iter::once(&began).chain(nodes);
        let node_stats = all.map(|timing| self.node_stats(timing)).collect();
        StepStats {
            dev_stats: vec![DeviceStepStats {
                device: self.device.clone(),
                node_stats,
                ..DeviceStepStats::default()
            }],
        }
    }

    fn node_stats(&self, timing: &NodeTiming) -> NodeExecStats {
        let micros = |duration: Duration| duration.as_micros() as i64;
        let nanos = |duration: Duration| duration.as_nanos() as i64;
        let output = timing
            .outputs
            .iter()
            .map(|(port, dtype, shape, bytes)| NodeOutput {
                slot: *port as i32,
                tensor_description: Some(TensorDescription {
                    dtype: dtype.number(),
                    shape: Some(shape.to_proto()),
                    allocation_description: Some(AllocationDescription {
                        requested_bytes: *bytes as i64,
                        allocator_name: "cpu".to_owned(),
                        ..AllocationDescription::default()
                    }),
                }),
            });
        let took = timing.end.saturating_sub(timing.start);
        NodeExecStats {
            node_name: timing.node.clone(),
            all_start_micros: micros(self.began + timing.start),
            op_end_rel_micros: micros(took),
            all_end_rel_micros: micros(took),
            all_start_nanos: nanos(self.began + timing.start),
            op_end_rel_nanos: nanos(took),
            all_end_rel_nanos: nanos(took),
            scheduled_micros: micros(self.began + timing.scheduled),
            scheduled_nanos: nanos(self.began + timing.scheduled),
            thread_id: timing.thread,
            timeline_label: format!("{} = {}()", timing.node, timing.op),
            output: output.collect(),
            ..NodeExecStats::default()
        }
    }
}
