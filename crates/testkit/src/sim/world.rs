//! [`World`]: the cluster of one seed: who lives, what is under way, and the faults that befall them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tensorfleet_cluster::{Master, Worker};
use tensorfleet_graph::Registry;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};

use super::graphs::Graphs;
use super::history::History;
use super::net::{Fate, Flight, Party};
use super::process::{Life, Process};
use super::rng::Rng;
use super::setup::Setup;
use super::trace::Trace;

/// Everything of one run.
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) graphs: Graphs,
    registry: Arc<Registry>,
    runtime: Handle,
    began: Instant,
    state: Mutex<State>,
    flights: Mutex<BTreeMap<u64, Arc<Flight>>>,
    history: Mutex<History>,
    trace: Mutex<Trace>,
    violations: Mutex<Vec<String>>,
}

struct State {
    rng: Rng,
    /// Whether faults happen.
    stormy: bool,
    places: Vec<Place>,
    next_call: u64,
}

/// A task and its lives.
struct Place {
    process: Option<Arc<Process>>,
    lives: u32,
    paused_until: Instant,
    /// Whether anything ever befell it: others may not be blamed.
    troubled: bool,
    /// What must be gone from memory with its life.
    past: Vec<(Weak<Master>, Weak<Worker>)>,
}

impl World {
    pub(super) fn new(
        setup: Setup,
        graphs: Graphs,
        registry: Arc<Registry>,
        rng: Rng,
        whole_trace: bool,
    ) -> Arc<World> {
        let began = Instant::now();
        let place = |_| Place {
            process: None,
            lives: 0,
            paused_until: began,
            troubled: false,
            past: Vec::new(),
        };
        let places = setup.tasks.iter().map(place).collect();
        Arc::new(World {
            history: Mutex::new(History::new(setup.ps)),
            setup,
            graphs,
            registry,
            runtime: Handle::current(),
            began,
            state: Mutex::new(State {
                rng,
                stormy: true,
                places,
                next_call: 0,
            }),
            flights: Mutex::default(),
            trace: Mutex::new(Trace::new(whole_trace)),
            violations: Mutex::default(),
        })
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn note(&self, what: &str) {
        lock(&self.trace).note(self.began.elapsed(), what);
    }

    pub(super) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    pub(super) fn flights(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Flight>>> {
        lock(&self.flights)
    }

    /// Something that must never be.
    pub(super) fn violated(&self, what: String) {
        self.note(&format!("VIOLATION {what}"));
        lock(&self.violations).push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    pub(super) fn process(&self, task: usize) -> Option<Arc<Process>> {
        lock(&self.state).places[task].process.clone()
    }

    /// Whether anything ever befell a task.
    pub(super) fn is_troubled(&self, task: usize) -> bool {
        lock(&self.state).places[task].troubled
    }

    /// A worker answered OK for its part of a step: a session, and a step, must see one life of a task.
    pub(super) fn took_part(&self, life: &Life, session: &str, step: i64) {
        let mixed = self.history().took_part(life, session, step);
        if let Err(what) = mixed {
            self.violated(what);
        }
    }

    /// From now on nothing goes wrong any more.
    pub(super) fn calm_down(&self) {
        lock(&self.state).stormy = false;
        self.note("the storm is over");
    }

    /// Starts a task with counters at zero.
    pub(super) async fn start(self: &Arc<World>, task: usize) {
        let (number, rng) = {
            let mut state = lock(&self.state);
            state.places[task].lives += 1;
            (state.places[task].lives, state.rng.fork())
        };
        let life = Arc::new(Life::new(task, self.setup.tasks[task].clone(), number));
        let process = Arc::new(Process::new(self, life, rng));
        if let Err(status) = self.graphs.initialize(&process, self.setup.ps).await {
            self.violated(format!("{} does not start: {status}", process.life));
        }
        process.more_holders();
        process.own(
            self.runtime
                .spawn(collect_idle(process.master.clone()))
                .abort_handle(),
        );
        self.note(&format!("{} is up", process.life));
        lock(&self.state).places[task].process = Some(process);
    }

    /// Ends a task at once; nothing of it is left.
    pub(super) fn crash(&self, task: usize) -> bool {
        let process = {
            let mut state = lock(&self.state);
            let place = &mut state.places[task];
            place.troubled = true;
            let Some(process) = place.process.take() else {
                return false;
            };
            place.past.push((
                Arc::downgrade(&process.master),
                Arc::downgrade(&process.worker),
            ));
            process
        };
        self.note(&format!("{} crashes", process.life));
        process.crash();
        true
    }

    /// Which past lives are still in memory.
    pub(super) fn undead(&self) -> Vec<String> {
        let state = lock(&self.state);
        let mut found = Vec::new();
        for (place, name) in state.places.iter().zip(&self.setup.tasks) {
            for (number, (master, worker)) in place.past.iter().enumerate() {
                let left = (master.strong_count(), worker.strong_count());
                if left != (0, 0) {
                    let number = number + 1;
                    found.push(format!(
                        "life {number} of {name}: {left:?} of master, worker"
                    ));
                }
            }
        }
        found
    }

    /// Draws what becomes of a call.
    pub(super) fn draw_fate(&self, from: &Party, to: usize) -> (u64, Fate) {
        let state = &mut *lock(&self.state);
        state.next_call += 1;
        let (rng, faults, stormy) = (&mut state.rng, &self.setup.faults, state.stormy);
        let takes = |rng: &mut Rng| {
            if stormy && rng.chance(faults.slow) {
                rng.millis(50, 3000)
            } else {
                rng.millis(0, 4)
            }
        };
        let mut fate = Fate {
            arrivals: vec![takes(rng)],
            answer_is_lost: false,
            answer_takes: takes(rng),
            notice_takes: takes(rng),
            cancel_takes: takes(rng),
        };
        let twice = takes(rng);
        let mut troubled = false;
        if stormy && rng.chance(faults.lose_request) {
            (fate.arrivals, troubled) = (Vec::new(), true);
        } else if stormy && rng.chance(faults.lose_answer) {
            (fate.answer_is_lost, troubled) = (true, true);
        } else if stormy && rng.chance(faults.duplicate) {
            fate.arrivals.push(twice);
            troubled = true;
        }
        if troubled {
            state.places[to].troubled = true;
            if let Party::Task(life) = from {
                state.places[life.task].troubled = true;
            }
        }
        (state.next_call, fate)
    }

    /// Between two messages, anything may happen.
    pub(super) fn disturb(self: &Arc<World>) {
        let faults = &self.setup.faults;
        let (crash, cut, takes) = {
            let state = &mut *lock(&self.state);
            if !state.stormy {
                return;
            }
            let (rng, count) = (&mut state.rng, state.places.len());
            let crash = rng.chance(faults.crash).then(|| rng.below(count));
            let cut = rng
                .chance(faults.cut)
                .then(|| (rng.below(count), rng.below(count)));
            if rng.chance(faults.pause) {
                let until = Instant::now() + rng.millis(10, 5000);
                state.places[rng.below(count)].paused_until = until;
            }
            if let Some((a, b)) = cut {
                state.places[a].troubled = true;
                state.places[b].troubled = true;
            }
            (crash, cut, rng.millis(0, 3000))
        };
        if let Some((a, b)) = cut {
            self.cut(a, b, takes);
        }
        if let Some(task) = crash
            && self.crash(task)
        {
            let world = self.clone();
            self.runtime.spawn(async move {
                sleep(takes).await;
                world.start(task).await;
            });
        }
    }

    /// Breaks all connections between two tasks; each end notices in its own time.
    fn cut(self: &Arc<World>, a: usize, b: usize, notice: Duration) {
        let flights: Vec<Arc<Flight>> = self
            .flights()
            .values()
            .filter(|flight| flight.is_between(a, b))
            .cloned()
            .collect();
        if flights.is_empty() {
            return;
        }
        let tasks = &self.setup.tasks;
        self.note(&format!(
            "{} and {} lose {} calls",
            tasks[a],
            tasks[b],
            flights.len()
        ));
        flights.iter().for_each(|flight| flight.cut());
        self.runtime.spawn(async move {
            sleep(notice).await;
            flights.iter().for_each(|flight| flight.stop_serving());
        });
    }

    /// Waits while a task stands still.
    pub(super) async fn while_paused(&self, task: usize) {
        let until = lock(&self.state).places[task].paused_until;
        if until > Instant::now() {
            sleep_until(until).await;
        }
    }
}

/// As a server does.
async fn collect_idle(master: Arc<Master>) {
    loop {
        sleep(Duration::from_secs(10)).await;
        master.collect_idle().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
