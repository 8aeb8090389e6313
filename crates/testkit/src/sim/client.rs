//! [`Client`]: opens sessions, runs steps, closes, abandons, gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tensorfleet_proto as pb;
use tensorfleet_proto::services::master as path;
use tensorfleet_status::{Result, deadline_exceeded};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::graphs::EXTENSIONS;
use super::judge::{Excuses, Limit};
use super::net::{Call, Party};
use super::process::Process;
use super::rng::Rng;
use super::world::World;

/// Nothing takes so long, whatever the weather.
const HANGS: Duration = Duration::from_secs(300);

/// A method that the master of a process answers.
macro_rules! asked {
    ($method:ident) => {
        |process: Arc<Process>, request| async move { process.master.$method(request).await }
    };
}
pub(super) use asked;

/// One client of the cluster.
pub(super) struct Client {
    pub(super) world: Arc<World>,
    pub(super) number: usize,
    pub(super) rng: Rng,
}

/// A session as its client knows it.
pub(super) struct ClientSession {
    pub(super) world: Arc<World>,
    pub(super) client: usize,
    /// The task that is its master.
    pub(super) master: usize,
    pub(super) handle: String,
    closing: AtomicBool,
}

impl Client {
    /// Lives its life.
    pub(super) async fn run(mut self) {
        for _ in 0..self.rng.between(1, 3) {
            sleep(self.rng.millis(0, 300)).await;
            if let Some(session) = self.open().await {
                self.use_session(&Arc::new(session)).await;
            }
        }
    }

    async fn open(&mut self) -> Option<ClientSession> {
        let master = self.rng.below(self.world.setup.tasks.len());
        let limit = draw_limit(&mut self.rng, 5000);
        let request = pb::CreateSessionRequest {
            graph_def: Some(self.world.graphs.base.clone()),
            ..pb::CreateSessionRequest::default()
        };
        let caller = Caller {
            world: self.world.clone(),
            client: self.number,
            master,
        };
        let opened = caller
            .ask(path::CREATE_SESSION, limit, request, asked!(create_session))
            .await?;
        let excuses = Excuses {
            deadline: limit != Limit::None,
            ..Excuses::default()
        };
        match opened {
            Ok(opened) => Some(ClientSession {
                world: self.world.clone(),
                client: self.number,
                master,
                handle: opened.session_handle,
                closing: AtomicBool::new(false),
            }),
            Err(status) => {
                self.world.judge("CreateSession", excuses, &status);
                None
            }
        }
    }

    async fn use_session(&mut self, session: &Arc<ClientSession>) {
        let mut running = JoinSet::new();
        let mut version = 0;
        // Some sessions are closed before they are used.
        for _ in 0..self.rng.between(0, 6) {
            let at_once = self.rng.between(1, 3);
            for _ in 0..at_once {
                let (session, rng) = (session.clone(), self.rng.fork());
                running.spawn(async move { session.step(rng).await });
            }
            if version < EXTENSIONS && self.rng.chance(200) {
                if !session.extend(version).await {
                    break;
                }
                version += 1;
                let (session, rng) = (session.clone(), self.rng.fork());
                running.spawn(async move { session.run_extension(rng, version - 1).await });
            }
            // Some sessions are closed while steps run.
            if self.rng.chance(50) {
                break;
            }
            while running.join_next().await.is_some() {}
            sleep(self.rng.millis(0, 200)).await;
        }
        if self.rng.chance(700) {
            session.close(draw_limit(&mut self.rng, 2000)).await;
        }
        while running.join_next().await.is_some() {}
    }
}

impl ClientSession {
    pub(super) fn caller(&self) -> Caller {
        Caller {
            world: self.world.clone(),
            client: self.client,
            master: self.master,
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Adds nodes; whether that is certain.
    async fn extend(&self, version: usize) -> bool {
        let request = pb::ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph_def: Some(self.world.graphs.extensions[version].clone()),
            current_graph_version: version as i64,
        };
        let answer = self
            .caller()
            .ask(
                path::EXTEND_SESSION,
                Limit::None,
                request,
                asked!(extend_session),
            )
            .await;
        match answer {
            Some(Ok(_)) => true,
            Some(Err(status)) => {
                self.world
                    .judge("ExtendSession", Excuses::default(), &status);
                false
            }
            None => false,
        }
    }

    async fn close(&self, limit: Limit) {
        self.closing.store(true, Ordering::Relaxed);
        let request = pb::CloseSessionRequest {
            session_handle: self.handle.clone(),
        };
        let answer = self
            .caller()
            .ask(path::CLOSE_SESSION, limit, request, asked!(close_session))
            .await;
        if let Some(Err(status)) = answer {
            let excuses = Excuses {
                deadline: limit != Limit::None,
                ..Excuses::default()
            };
            self.world.judge("CloseSession", excuses, &status);
        }
    }
}

/// Makes calls to one master.
pub(super) struct Caller {
    world: Arc<World>,
    client: usize,
    master: usize,
}

impl Caller {
    /// The answer; `None` if the client went away before.
    pub(super) async fn ask<Q, A, F>(
        &self,
        path: &'static str,
        limit: Limit,
        request: Q,
        serve: impl Fn(Arc<Process>, Q) -> F + Clone + Send + 'static,
    ) -> Option<Result<A>>
    where
        Q: Clone + Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let call = Call {
            path,
            step: 0,
            wait_for_ready: false,
        };
        let from = Party::Client(self.client);
        let answer = self
            .world
            .clone()
            .call(from, self.master, call, request, serve);
        match limit {
            Limit::None => match timeout(HANGS, answer).await {
                Ok(answer) => Some(answer),
                Err(_) => {
                    self.world
                        .violated(format!("client {} waits for {path} for ever", self.client));
                    None
                }
            },
            Limit::Deadline(deadline) => Some(
                timeout(deadline, answer)
                    .await
                    .unwrap_or_else(|_| Err(deadline_exceeded!("Deadline Exceeded"))),
            ),
            Limit::GivesUp(patience) => timeout(patience, answer).await.ok(),
        }
    }
}

/// How patient a client is with a call.
pub(super) fn draw_limit(rng: &mut Rng, most_millis: u64) -> Limit {
    match rng.below(10) {
        0 => Limit::Deadline(rng.millis(1, most_millis)),
        1 => Limit::GivesUp(rng.millis(1, most_millis / 4)),
        _ => Limit::None,
    }
}
