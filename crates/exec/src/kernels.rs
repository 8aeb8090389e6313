//! [`KernelCache`]: kernels of stateful ops live as long as their session, by node name.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Node, Registry};
use tensorfleet_kernel::{AnyKernel, DeviceType, NodeInfo};
use tensorfleet_status::Result;

/// Kernels of stateful ops by the scope they are in and their node's name.
///
/// A random op goes on with its sequence and a queue without a shared name stays the same queue
/// whichever of the session's plans runs it.
#[derive(Default)]
pub struct KernelCache {
    stateful: Mutex<FxHashMap<(String, String), Arc<AnyKernel>>>,
}

impl KernelCache {
    /// An empty cache.
    pub fn new() -> KernelCache {
        KernelCache::default()
    }

    /// The kernel of a node: the cached one if its op is stateful, else a new one.
    pub fn kernel(
        &self,
        registry: &Registry,
        scope: &str,
        node: &Node,
        info: &NodeInfo,
        device: DeviceType,
    ) -> Result<Arc<AnyKernel>> {
        // Ops of the runtime itself (`_Arg`, `_Send`, …) are marked stateful to keep rewrites away from
        // them, but hold nothing; their names need not be unique among a session's plans.
        if !node.is_stateful() || info.op.starts_with('_') {
            return registry.build_kernel(info, device).map(Arc::new);
        }
        let key = (scope.to_owned(), info.name.clone());
        let mut stateful = self.stateful.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = stateful.get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(registry.build_kernel(info, device)?);
        stateful.insert(key, kernel.clone());
        Ok(kernel)
    }
}
