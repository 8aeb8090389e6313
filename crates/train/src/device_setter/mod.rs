//! [`ReplicaDeviceSetter`]: variables go to parameter servers, everything else to the worker.

mod strategy;

use tensorfleet_client::{DeviceFunction, NodeUnderPlacement};
use tensorfleet_cluster::ClusterSpec;
use tensorfleet_kernel::DeviceName;
use tensorfleet_status::{Result, invalid_argument};

pub use strategy::{GreedyLoadBalancing, PsStrategy, RandomByName, RoundRobin, byte_size};

/// The ops that live on parameter servers unless told otherwise.
pub const STANDARD_PS_OPS: &[&str] = &[
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
    "DecisionTreeResource",
];

/// What TensorFlow calls `replica_device_setter`, in the making.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::ReplicaDeviceSetter;
///
/// let g = Graph::new();
/// let setter = ReplicaDeviceSetter::new().ps_tasks(2).worker_device("/job:worker/task:3");
/// let _scope = g.device_function(setter.build()?);
/// let w = g.variable("w", &[2]).build();
/// let b = g.variable("b", &[2]).build();
/// let sum = &w + &b;
/// assert_eq!((w.device(), b.device()), ("/job:ps/task:0".into(), "/job:ps/task:1".into()));
/// assert_eq!(sum.op().device(), "/job:worker/task:3");
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[must_use = "it is a device function only after `build`"]
pub struct ReplicaDeviceSetter {
    ps_tasks: usize,
    ps_device: String,
    worker_device: String,
    cluster: Option<ClusterSpec>,
    merge_devices: bool,
    ps_ops: Vec<String>,
    strategy: Option<Box<dyn PsStrategy>>,
}

impl Default for ReplicaDeviceSetter {
    fn default() -> Self {
        ReplicaDeviceSetter::new()
    }
}

impl ReplicaDeviceSetter {
    /// `/job:ps` and `/job:worker`, without parameter servers so far.
    pub fn new() -> ReplicaDeviceSetter {
        ReplicaDeviceSetter {
            ps_tasks: 0,
            ps_device: "/job:ps".to_owned(),
            worker_device: "/job:worker".to_owned(),
            cluster: None,
            merge_devices: true,
            ps_ops: STANDARD_PS_OPS.iter().map(|op| (*op).to_owned()).collect(),
            strategy: None,
        }
    }

    /// How many parameter servers there are. Without any the setter changes nothing.
    pub fn ps_tasks(mut self, tasks: usize) -> Self {
        self.ps_tasks = tasks;
        self
    }

    /// Where parameter servers are: `/job:ps` by default; empty for none.
    pub fn ps_device(mut self, device: &str) -> Self {
        device.clone_into(&mut self.ps_device);
        self
    }

    /// Where everything else goes: `/job:worker` by default; `/job:worker/task:3` for one worker's graph.
    pub fn worker_device(mut self, device: &str) -> Self {
        device.clone_into(&mut self.worker_device);
        self
    }

    /// Counts the parameter servers in this cluster, in the job of `ps_device`.
    pub fn cluster(mut self, cluster: &ClusterSpec) -> Self {
        self.cluster = Some(cluster.clone());
        self
    }

    /// Whether nodes that have part of a device get the rest (the default) or stay as they are.
    pub fn merge_devices(mut self, merge: bool) -> Self {
        self.merge_devices = merge;
        self
    }

    /// These op types go to parameter servers, instead of [`STANDARD_PS_OPS`].
    pub fn ps_ops(mut self, ops: &[&str]) -> Self {
        self.ps_ops = ops.iter().map(|op| (*op).to_owned()).collect();
        self
    }

    /// Which parameter server gets the next node; [`RoundRobin`] by default.
    pub fn ps_strategy(mut self, strategy: impl PsStrategy + 'static) -> Self {
        self.strategy = Some(Box::new(strategy));
        self
    }

    /// The device function. Fails if a device cannot be read.
    pub fn build(self) -> Result<ReplicaDevices> {
        let ps_device = DeviceName::parse(&self.ps_device)?;
        let worker_device = DeviceName::parse(&self.worker_device)?;
        let ps_tasks = match (&self.cluster, &ps_device.job) {
            (Some(cluster), Some(job)) if cluster.jobs().any(|known| known == &**job) => {
                cluster.num_tasks(job)?
            }
            (Some(_), _) => 0,
            (None, _) => self.ps_tasks,
        };
        let tasks = u32::try_from(ps_tasks)
            .map_err(|_| invalid_argument!("{ps_tasks} parameter servers are too many"))?;
        let strategy = match self.strategy {
            Some(strategy) => strategy,
            None => Box::new(RoundRobin::new(tasks)),
        };
        Ok(ReplicaDevices {
            active: ps_tasks > 0,
            ps_device,
            worker_device,
            merge_devices: self.merge_devices,
            ps_ops: self.ps_ops,
            strategy,
        })
    }
}

/// The device function that [`ReplicaDeviceSetter`] makes.
pub struct ReplicaDevices {
    active: bool,
    ps_device: DeviceName,
    worker_device: DeviceName,
    merge_devices: bool,
    ps_ops: Vec<String>,
    strategy: Box<dyn PsStrategy>,
}

impl ReplicaDevices {
    fn choose(&self, node: &NodeUnderPlacement<'_>, current: &DeviceName) -> DeviceName {
        let on_ps = !self.ps_device.is_any() && self.ps_ops.iter().any(|op| op == node.op);
        let mut device = if on_ps {
            self.ps_device.clone()
        } else {
            self.worker_device.clone()
        };
        // A job that the node names already, and that is another, keeps the strategy from choosing a task of it.
        let same_job = current.job.is_none() || current.job == device.job;
        if on_ps && device.job.is_some() && same_job {
            device.task = Some(self.strategy.task(node));
        }
        device.override_with(current);
        device
    }
}

impl DeviceFunction for ReplicaDevices {
    fn device(&self, node: &NodeUnderPlacement<'_>) -> String {
        let keep = !self.active || (!self.merge_devices && !node.device.is_empty());
        match DeviceName::parse(node.device) {
            Ok(current) if !keep => self.choose(node, &current).to_string(),
            _ => node.device.to_owned(),
        }
    }
}
