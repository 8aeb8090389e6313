//! [`Process`]: one life of a task: its master, its worker, and everything that ends when it crashes.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tensorfleet_cluster::ids::Ids;
use tensorfleet_cluster::{Master, MasterOptions, TaskName, Worker, WorkerEnv};
use tensorfleet_kernel::{Clock, Device};
use tensorfleet_math::par::Pool;
use tensorfleet_passes::PassOptions;
use tensorfleet_session::optimizer;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::clock::SimClock;
use super::peers::SimPeers;
use super::rng::Rng;
use super::setup::SESSION_IDLE;
use super::world::World;

/// From a task's start to its crash.
pub(super) struct Life {
    /// The task's place in the cluster.
    pub(super) task: usize,
    pub(super) name: TaskName,
    /// Which life of the task it is, counted from 1.
    pub(super) number: u32,
    dead: AtomicBool,
    died: Notify,
}

impl Life {
    pub(super) fn new(task: usize, name: TaskName, number: u32) -> Life {
        Life {
            task,
            name,
            number,
            dead: AtomicBool::new(false),
            died: Notify::new(),
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Waits for the crash.
    pub(super) async fn died(&self) {
        let mut died = pin!(self.died.notified());
        died.as_mut().enable();
        if !self.is_dead() {
            died.await;
        }
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}'{}", self.name.job, self.name.index, self.number)
    }
}

/// A task that runs.
pub(super) struct Process {
    pub(super) life: Arc<Life>,
    pub(super) master: Arc<Master>,
    pub(super) worker: Arc<Worker>,
    /// Who holds the device when nothing runs.
    holders: OnceLock<usize>,
    /// Calls that are being served, and chores.
    owned: Mutex<Vec<AbortHandle>>,
}

impl Process {
    /// A task's new life, with nothing left of the last one.
    pub(super) fn new(world: &Arc<World>, life: Arc<Life>, mut rng: Rng) -> Process {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new(
            world.began(),
            rng.fork(),
            world.runtime().clone(),
        ));
        let ids = Ids::seeded(rng.next());
        let name = life.name.clone();
        let device = Device::cpu(&name.job, name.index, 0, ids.random());
        let devices = vec![Arc::new(device)];
        let pool = Arc::new(seeded_pool(world, &life, rng));
        let optimize = optimizer(PassOptions::ALL, &devices[0], &pool, &clock);
        let env = Arc::new(WorkerEnv {
            task: name,
            devices,
            registry: world.registry().clone(),
            pool,
            clock,
            ids,
            runtime: world.runtime().clone(),
        });
        let peers = Arc::new(SimPeers::new(world.clone(), life.clone()));
        let worker = Arc::new(Worker::new(env, peers.clone(), optimize));
        peers.set_local(&worker);
        let options = MasterOptions {
            session_idle: Some(SESSION_IDLE),
            ..MasterOptions::default()
        };
        Process {
            life,
            master: Arc::new(Master::new(worker.clone(), peers, options)),
            worker,
            holders: OnceLock::new(),
            owned: Mutex::default(),
        }
    }

    /// How many more hold the device than did when this was asked first: every running step does.
    pub(super) fn more_holders(&self) -> usize {
        let now = Arc::strong_count(&self.worker.env().devices[0]);
        now.saturating_sub(*self.holders.get_or_init(|| now))
    }

    /// Ties something to the life of the process.
    pub(super) fn own(&self, task: AbortHandle) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.retain(|task| !task.is_finished());
        owned.push(task);
    }

    /// Ends it between two messages.
    pub(super) fn crash(&self) {
        self.life.dead.store(true, Ordering::Relaxed);
        self.life.died.notify_waiters();
        let owned = std::mem::take(&mut *self.owned.lock().unwrap_or_else(PoisonError::into_inner));
        owned.iter().for_each(AbortHandle::abort);
    }
}

/// Jobs happen a little later, in any order; a dead process runs none.
fn seeded_pool(world: &Arc<World>, life: &Arc<Life>, rng: Rng) -> Pool {
    let (runtime, life, rng) = (world.runtime().clone(), life.clone(), Mutex::new(rng));
    Pool::elsewhere(move |job| {
        let delay = {
            let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
            rng.millis(0, 3)
        };
        let life = life.clone();
        runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            if !life.is_dead() {
                job();
            }
        });
    })
}
