//! [`WorkerEnv`]: what all sessions of a worker share.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_graph::Registry;
use tensorfleet_kernel::{Clock, Device};
use tensorfleet_math::par::Pool;
use tensorfleet_proto::{DeviceAttributes, DeviceLocality};

use crate::ids::Ids;
use crate::task::TaskName;

/// The CPU memory limit TensorFlow reports; it means nothing.
const MEMORY_LIMIT: i64 = 256 << 20;

/// A task's devices, ops, threads, clock and names.
pub struct WorkerEnv {
    /// Who we are.
    pub task: TaskName,
    /// Our devices, CPU:0 first.
    pub devices: Vec<Arc<Device>>,
    /// The ops.
    pub registry: Arc<Registry>,
    /// Threads for kernels.
    pub pool: Arc<Pool>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The names of sessions, steps and requests.
    pub ids: Ids,
    /// Where receives from other tasks wait.
    pub runtime: tokio::runtime::Handle,
}

impl WorkerEnv {
    /// Our devices as they are told to others.
    pub fn device_attributes(&self) -> Vec<DeviceAttributes> {
        let attributes = self.devices.iter().map(|device| DeviceAttributes {
            name: device.name.clone(),
            device_type: device.device_type.name().to_owned(),
            memory_limit: MEMORY_LIMIT,
            locality: Some(DeviceLocality::default()),
            incarnation: device.incarnation,
            xla_global_id: -1,
            ..DeviceAttributes::default()
        });
        attributes.collect()
    }

    /// Runs `work` on a kernel thread, so that calls keep being answered meanwhile.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> tensorfleet_status::Result<T> + Send + 'static,
    ) -> tensorfleet_status::Result<T> {
        let (tell, told) = tokio::sync::oneshot::channel();
        self.pool.spawn(Box::new(move || {
            // The caller may have given up.
            let _ = tell.send(work());
        }));
        told.await.unwrap_or_else(|_| {
            Err(tensorfleet_status::internal!(
                "the work on a graph ended by a panic; the server's log has it"
            ))
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }
}
