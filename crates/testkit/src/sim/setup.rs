//! [`Setup`]: what a seed decides before anything runs: the cluster, its clients, and how bad the weather is.

use std::time::Duration;

use tensorfleet_cluster::TaskName;

use super::rng::Rng;

/// One simulated world.
pub(super) struct Setup {
    /// Parameter servers first, then workers.
    pub(super) tasks: Vec<TaskName>,
    /// How many of the tasks are parameter servers.
    pub(super) ps: usize,
    /// Which counters are resource variables; the others are reference variables.
    pub(super) resource: Vec<bool>,
    pub(super) clients: usize,
    pub(super) faults: Faults,
}

/// How often what goes wrong, in a thousand.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// A message takes long.
    pub(super) slow: u32,
    /// A request never arrives.
    pub(super) lose_request: u32,
    /// An answer never arrives.
    pub(super) lose_answer: u32,
    /// A request arrives twice.
    pub(super) duplicate: u32,
    /// With a message, all connections between two tasks break.
    pub(super) cut: u32,
    /// With a message, some task crashes.
    pub(super) crash: u32,
    /// With a message, some task stands still for a while.
    pub(super) pause: u32,
}

impl Faults {
    /// Whether anything but time can go wrong.
    pub(super) fn can_fail(&self) -> bool {
        self.lose_request + self.lose_answer + self.duplicate + self.cut + self.crash > 0
    }
}

/// Sessions whose client does nothing for so long are closed.
pub(super) const SESSION_IDLE: Duration = Duration::from_secs(60);

impl Setup {
    pub(super) fn draw(rng: &mut Rng) -> Setup {
        let (ps, workers) = (rng.between(1, 2), rng.between(0, 2));
        let of_job = |job: &'static str, count| (0..count).map(move |i| TaskName::new(job, i));
        let resource = (0..ps).map(|_| rng.chance(500)).collect();
        Setup {
            tasks: of_job("ps", ps).chain(of_job("worker", workers)).collect(),
            ps,
            resource,
            clients: rng.between(1, 4),
            faults: draw_faults(rng),
        }
    }
}

fn draw_faults(rng: &mut Rng) -> Faults {
    let mut faults = Faults {
        slow: [0, 20, 150][rng.below(3)],
        pause: [0, 0, 4][rng.below(3)],
        ..Faults::default()
    };
    // Some worlds are calm: there, nothing may fail.
    if rng.chance(150) {
        return faults;
    }
    let mut some = |most: u32| {
        if rng.chance(500) {
            0
        } else {
            1 + rng.below(most as usize) as u32
        }
    };
    faults.lose_request = some(60);
    faults.lose_answer = some(60);
    faults.duplicate = some(60);
    faults.cut = some(10);
    faults.crash = some(10);
    faults
}
