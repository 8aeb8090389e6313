//! Which parameter server gets the next variable.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tensorfleet_client::{DType, NodeUnderPlacement, PartialShape};

/// Chooses a parameter server for each node that goes to one. Every worker builds the graph anew, so the
/// same graph must give the same choices.
pub trait PsStrategy: Send + Sync {
    /// The task.
    fn task(&self, node: &NodeUnderPlacement<'_>) -> u32;
}

/// One after the other.
#[derive(Debug)]
pub struct RoundRobin {
    tasks: u32,
    next: AtomicU32,
}

impl RoundRobin {
    /// Over so many tasks.
    pub fn new(tasks: u32) -> RoundRobin {
        RoundRobin {
            tasks: tasks.max(1),
            next: AtomicU32::new(0),
        }
    }
}

impl PsStrategy for RoundRobin {
    fn task(&self, _: &NodeUnderPlacement<'_>) -> u32 {
        let next = |task| Some((task + 1) % self.tasks);
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.unwrap_or(0)
    }
}

/// The one with the smallest load so far: by bytes, or any other measure.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::{GreedyLoadBalancing, ReplicaDeviceSetter};
///
/// let g = Graph::new();
/// let setter = ReplicaDeviceSetter::new().ps_tasks(2).ps_strategy(GreedyLoadBalancing::by_bytes(2));
/// let _scope = g.device_function(setter.build()?);
/// let tasks: Vec<String> = [1000, 10, 10].iter().map(|n| g.variable("v", &[*n]).build().device()).collect();
/// assert_eq!(tasks, ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct GreedyLoadBalancing {
    load: Box<dyn Fn(&NodeUnderPlacement<'_>) -> f64 + Send + Sync>,
    loads: Mutex<Vec<f64>>,
}

impl GreedyLoadBalancing {
    /// Over so many tasks, by the variables' sizes in bytes.
    pub fn by_bytes(tasks: u32) -> GreedyLoadBalancing {
        GreedyLoadBalancing::new(tasks, byte_size)
    }

    /// Over so many tasks, by this measure of a node.
    pub fn new(
        tasks: u32,
        load: impl Fn(&NodeUnderPlacement<'_>) -> f64 + Send + Sync + 'static,
    ) -> GreedyLoadBalancing {
        GreedyLoadBalancing {
            load: Box::new(load),
            loads: Mutex::new(vec![0.0; tasks.max(1) as usize]),
        }
    }
}

impl PsStrategy for GreedyLoadBalancing {
    fn task(&self, node: &NodeUnderPlacement<'_>) -> u32 {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let least = loads.iter_mut().enumerate();
        let Some((task, load)) = least.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return 0;
        };
        *load += (self.load)(node);
        u32::try_from(task).unwrap_or(0)
    }
}

/// The bytes of the variable that a node will hold; 0 if its shape is not known.
pub fn byte_size(node: &NodeUnderPlacement<'_>) -> f64 {
    let dtype = node.attrs.dtype("dtype").ok();
    let shape = node.attrs.shape("shape").ok();
    let shape = shape.and_then(PartialShape::to_shape);
    match (dtype.and_then(DType::size), shape) {
        (Some(bytes), Some(shape)) => bytes as f64 * shape.elements() as f64,
        _ => 0.0,
    }
}

/// By chance, but the same for the same name and seed: every worker comes to the same choice, whatever
/// else its graph has.
#[derive(Clone, Copy, Debug)]
pub struct RandomByName {
    tasks: u32,
    seed: u64,
}

impl RandomByName {
    /// Over so many tasks.
    pub fn new(tasks: u32, seed: u64) -> RandomByName {
        RandomByName {
            tasks: tasks.max(1),
            seed,
        }
    }
}

impl PsStrategy for RandomByName {
    fn task(&self, node: &NodeUnderPlacement<'_>) -> u32 {
        // FNV-1a over seed and name, mixed so that the low bits depend on all of it.
        let seed = self.seed.to_le_bytes();
        let bytes = seed.iter().chain(node.name.as_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        u32::try_from(mixed % u64::from(self.tasks)).unwrap_or(0)
    }
}
