//! After the storm: every task is up and works, every step that happened is there, and nothing is left of anything.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_proto as pb;
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;
use tokio::time::sleep;

use super::process::Process;
use super::setup::SESSION_IDLE;
use super::world::World;

/// By then every retry and every wait has ended.
const SETTLED: Duration = Duration::from_secs(300);

impl World {
    /// Ends the storm and checks what is left.
    pub(super) async fn end(self: &Arc<World>) {
        self.calm_down();
        // Time for restarts, and for abandoned sessions to be closed.
        sleep(SESSION_IDLE * 2).await;
        for task in 0..self.setup.tasks.len() {
            let Some(process) = self.process(task) else {
                self.violated(format!("{} did not come back", self.setup.tasks[task]));
                continue;
            };
            if let Err(status) = self.probe(&process).await {
                self.violated(format!("{} does not work again: {status}", process.life));
            }
        }
        sleep(SETTLED).await;
        for task in 0..self.setup.tasks.len() {
            if let Some(process) = self.process(task) {
                self.check_unused(&process);
            }
            self.crash(task);
        }
        // What belonged to the processes ends with them.
        sleep(SETTLED).await;
        for left in self.undead() {
            self.violated(format!("still in memory: {left}"));
        }
        let tasks = self.runtime().metrics().num_alive_tasks();
        if tasks > 0 {
            self.violated(format!("{tasks} asynchronous tasks never end"));
        }
    }

    /// A session over the whole cluster that reads all counters.
    async fn probe(self: &Arc<World>, process: &Process) -> Result<()> {
        let master = &process.master;
        let opened = master
            .create_session(pb::CreateSessionRequest {
                graph_def: Some(self.graphs.base.clone()),
                ..pb::CreateSessionRequest::default()
            })
            .await?;
        let session_handle = opened.session_handle;
        let began = self.history().moment();
        let answer = master
            .run_step(pb::RunStepRequest {
                session_handle: session_handle.clone(),
                fetch: (0..self.setup.ps).map(|i| format!("echo{i}:0")).collect(),
                ..pb::RunStepRequest::default()
            })
            .await?;
        for (counter, named) in answer.tensor.iter().enumerate() {
            let tensor = Tensor::from_proto(&named.tensor.clone().unwrap_or_default())?;
            let values = tensor.slice::<i32>()?;
            let seen = self.history().see(&session_handle, counter, values, began);
            if let Err(what) = seen {
                self.violated(what);
            }
        }
        let close = pb::CloseSessionRequest { session_handle };
        master.close_session(close).await.map(drop)
    }

    fn check_unused(&self, process: &Process) {
        let masters = process.master.session_count();
        let (workers, steps) = process.worker.usage();
        let holders = process.more_holders();
        if (masters, workers, steps, holders) != (0, 0, 0, 0) {
            self.violated(format!(
                "{} has {masters} sessions, {workers} worker sessions, {steps} steps and {holders} holders of its device left",
                process.life
            ));
        }
    }

    /// How long it all took.
    pub(super) fn lasted(&self) -> Duration {
        self.began().elapsed()
    }
}
