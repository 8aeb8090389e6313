//! [`Prepared`]: one signature of one graph, compiled once and run many times.

use std::sync::Arc;

use tensorfleet_exec::{Functions, KernelCache, Optimize, Plan, PlanOptions};
use tensorfleet_graph::Graph;
use tensorfleet_kernel::Device;
use tensorfleet_passes::{Boundary, Rewritten, Signature, rewrite};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

/// A compiled signature.
pub(crate) struct Prepared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) functions: Arc<Functions>,
    pub(crate) signature: Signature,
    pub(crate) feed_types: Vec<DType>,
}

/// What compiling needs besides graph and signature.
pub(crate) struct Compiler<'a> {
    pub(crate) device: &'a Device,
    pub(crate) kernels: &'a Arc<KernelCache>,
    pub(crate) optimize: &'a Optimize,
}

impl Compiler<'_> {
    pub(crate) fn prepare(
        &self,
        graph: &Graph,
        signature: Signature,
        boundary: Boundary<'_>,
    ) -> Result<Prepared> {
        let Rewritten {
            graph,
            roots,
            feed_types,
        } = rewrite(graph, &signature, boundary)?;
        let roots = roots.ids(&graph);
        let rewritten = (self.optimize)(graph, &roots)?;
        let options = PlanOptions {
            kernels: self.kernels,
            scope: "",
            device: self.device.device_type,
        };
        let plan = Plan::compile(&rewritten, &options)?;
        let functions = Functions::new(
            rewritten.registry().clone(),
            rewritten.library().clone(),
            self.kernels.clone(),
            self.device.device_type,
            self.optimize.clone(),
        );
        Ok(Prepared {
            plan: Arc::new(plan),
            functions: Arc::new(functions),
            signature,
            feed_types,
        })
    }
}
