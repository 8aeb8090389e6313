//! A whole cluster in one thread under a seed: masters, workers and clients, virtual time, a network that fails.
//!
//! [`run`] runs one seed. What a seed decides, in the order of the files:
//!
//! | file | what |
//! |---|---|
//! | `setup` | tasks, clients, and how often what goes wrong |
//! | `graphs` | the graph that clients run: counters on parameter servers, branches and loops across tasks |
//! | `world` | who lives; crashes, restarts, cuts and pauses between any two messages |
//! | `process`, `clock` | one life of a task: its master and worker, its pool, its time |
//! | `net`, `peers` | calls between them: delays, losses, duplicates, cancellation |
//! | `client`, `steps` | sessions and steps, patience and its end |
//! | `history` | what every counter must show |
//! | `judge` | which errors a client may see |
//! | `end` | what must be left when the storm is over: nothing |
//!
//! The code under test is that of `tensorfleet-cluster` as servers run it. What differs is what it is given: peers, clock,
//! pool and names. `docs/simulation.md` has the faults and the invariants.

mod client;
mod clock;
mod end;
mod graphs;
mod history;
mod judge;
mod net;
mod peers;
mod process;
mod rng;
mod setup;
mod steps;
mod trace;
mod world;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tensorfleet_graph::Registry;
use tensorfleet_status::{Result, internal};
use tokio::task::JoinSet;

use client::Client;
use graphs::Graphs;
use rng::Rng;
use setup::Setup;
use world::World;

/// What became of a seed.
pub struct Report {
    /// What was wrong; empty if all is well.
    pub violations: Vec<String>,
    /// What happened, as a number: the same for the same seed.
    pub hash: u64,
    /// The last messages, or all.
    pub trace: Vec<String>,
    /// How many lines the whole trace has.
    pub events: usize,
    /// How many updates were seen to be done.
    pub added: usize,
    /// How long it would have taken.
    pub virtual_time: Duration,
}

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Makes panics violations of the seed that runs on their thread. The runtime would swallow them.
pub fn notice_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
    }));
}

/// Runs one seed to its end.
pub fn run(seed: u64, registry: &Arc<Registry>, whole_trace: bool) -> Result<Report> {
    let mut rng = Rng::new(seed);
    let setup = Setup::draw(&mut rng);
    let graphs = Graphs::build(&setup, registry)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| internal!("no runtime: {error}"))?;
    PANICS.take();
    let world = runtime.block_on(async {
        let clients = rng.fork();
        let world = World::new(setup, graphs, registry.clone(), rng, whole_trace);
        live(&world, clients).await;
        world.end().await;
        world
    });
    for panic in PANICS.take() {
        world.violated(panic);
    }
    let trace = world.trace();
    Ok(Report {
        violations: world.violations(),
        hash: trace.hash(),
        trace: trace.lines(),
        events: trace.count(),
        added: world.history().added,
        virtual_time: world.lasted(),
    })
}

/// Starts all tasks and lets the clients live their lives.
async fn live(world: &Arc<World>, mut rng: Rng) {
    let setup = &world.setup;
    let names: Vec<String> = setup.tasks.iter().map(ToString::to_string).collect();
    world.note(&format!(
        "{} with {} clients, {:?}",
        names.join(" "),
        setup.clients,
        setup.faults
    ));
    for task in 0..setup.tasks.len() {
        world.start(task).await;
    }
    let mut clients = JoinSet::new();
    for number in 0..setup.clients {
        let client = Client {
            world: world.clone(),
            number,
            rng: rng.fork(),
        };
        clients.spawn(client.run());
    }
    while clients.join_next().await.is_some() {}
}
