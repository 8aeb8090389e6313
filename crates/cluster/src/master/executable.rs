//! [`Executable`]: one signature of a session's graph, ready to run on every task that has a part of it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tensorfleet_graph::Graph;
use tensorfleet_passes::{Boundary, Rewritten, Signature, rewrite};
use tensorfleet_proto as pb;
use tensorfleet_proto::attr_value::Value;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Bytes, DType};

use super::remote_part::{RemotePart, register};
use super::session::MasterSession;
use crate::cancelled::cancelled;
use crate::worker::graph::RegisteredGraph;

/// A prepared signature.
pub(crate) struct Executable {
    pub(super) signature: Signature,
    pub(super) feed_types: Vec<DType>,
    /// The part of the master's own task, run by a direct call.
    pub(super) local: Arc<RegisteredGraph>,
    /// The parts of other tasks.
    pub(super) remote: Vec<RemotePart>,
    /// The graph it was made from.
    pub(super) graph: Arc<Graph>,
    /// What a callable runs with.
    pub(super) run_options: pb::RunOptions,
    /// How often it was run.
    pub(super) runs: AtomicU64,
}

/// What building finds before any other task is asked.
struct Prepared {
    feed_types: Vec<DType>,
    local: Arc<RegisteredGraph>,
    remote: Vec<(usize, pb::GraphDef)>,
}

impl Executable {
    /// Rewrites for feeds and fetches, optimises, splits by task, and registers the parts.
    ///
    /// With `stepwise`, feeds and fetches go through the rendezvous one by one.
    pub(super) async fn build(
        session: &MasterSession,
        signature: Signature,
        stepwise: bool,
    ) -> Result<Arc<Executable>> {
        if signature.fetches.is_empty() && signature.targets.is_empty() {
            return Err(invalid_argument!(
                "Must specify at least one target to fetch or execute."
            ));
        }
        let graph = session.graph();
        let (devices, config) = (session.devices.clone(), session.config.clone());
        let (optimize, local) = (session.optimize.clone(), session.local.clone());
        let transfers = session.transfers.clone();
        let (source, wanted) = (graph.clone(), signature.clone());
        let prepare = move || {
            let device = devices.client();
            let boundary = if stepwise {
                let incarnation = devices.client_incarnation();
                Boundary::Rendezvous {
                    device,
                    incarnation,
                }
            } else {
                Boundary::Call { device }
            };
            let Rewritten {
                graph,
                roots,
                feed_types,
            } = rewrite(&source, &wanted, boundary)?;
            let roots = roots.ids(&graph);
            let graph = optimize(graph, &roots)?;
            let empty = graph.empty_like();
            let (mut own, mut remote) = (None, Vec::new());
            for part in devices.split(graph, &config, &transfers)? {
                match part.part {
                    0 => own = Some(part.graph),
                    task => remote.push((task as usize, part.graph.export()?)),
                }
            }
            Ok(Prepared {
                feed_types,
                local: Arc::new(RegisteredGraph::build(&local, own.unwrap_or(empty))?),
                remote,
            })
        };
        let prepared = tokio::select! {
            biased;
            prepared = session.worker.env().off_thread(prepare) => prepared?,
            reason = cancelled(&session.cancel) => return Err(reason),
        };
        Ok(Arc::new(Executable {
            feed_types: prepared.feed_types,
            local: prepared.local,
            remote: register(session, prepared.remote).await?,
            signature,
            graph,
            run_options: pb::RunOptions::default(),
            runs: AtomicU64::new(0),
        }))
    }

    /// The graphs of the master's own task as TensorFlow shows them: feeds are received, fetches are sent.
    pub(super) fn local_graphs(&self) -> Result<Vec<pb::GraphDef>> {
        let mut graphs = self.local.partition_graphs()?;
        for node in graphs.iter_mut().flat_map(|graph| &mut graph.node) {
            let (op, dtype, names) = match node.op.as_str() {
                "_Arg" => ("_Recv", "tensor_type", &self.signature.feeds),
                "_Retval" => ("_Send", "T", &self.signature.fetches),
                _ => continue,
            };
            op.clone_into(&mut node.op);
            let index = match node.attr.remove("index").and_then(|attr| attr.value) {
                Some(Value::I(index)) => usize::try_from(index).unwrap_or(usize::MAX),
                _ => continue,
            };
            if let Some(value) = node.attr.remove("T") {
                node.attr.insert(dtype.to_owned(), value);
            }
            let mut set = |name: &str, value| {
                let value = pb::AttrValue { value: Some(value) };
                node.attr.insert(name.to_owned(), value);
            };
            let device = Bytes::from(node.device.clone());
            set("send_device", Value::S(device.clone()));
            set("recv_device", Value::S(device));
            set("client_terminated", Value::B(true));
            if let Some(name) = names.get(index) {
                set("tensor_name", Value::S(Bytes::from(name.clone())));
            }
        }
        Ok(graphs)
    }

    /// Whether tensors may be left over at the end of a step.
    pub(super) fn has_transfers(&self) -> bool {
        !self.remote.is_empty() || self.local.has_transfers()
    }
}
