//! [`Server`]: one task of a cluster on one port.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorfleet_cluster::{
    ClusterSpec, Master, MasterOptions, ServerSpec, TaskName, Worker, WorkerEnv, ids,
};
use tensorfleet_kernel::{Clock, Device, SystemClock};
use tensorfleet_math::par::Pool;
use tensorfleet_passes::PassOptions;
use tensorfleet_proto::services::worker as path;
use tensorfleet_proto::{ClusterDef, ConfigProto, ServerDef};
use tensorfleet_session::optimizer;
use tensorfleet_status::{Result, failed_precondition, internal, invalid_argument, unavailable};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admin::Admin;
use crate::direct::Leases;
use crate::grpc::{KeepAlive, Limits, serve};
use crate::idle::{collect, trim};
use crate::line::Lines;
use crate::listen::listen;
use crate::peers::{GrpcPeers, addresses};
use crate::services::Services;
use crate::stop::StopOrders;

/// How long a cancelled step may take to answer before its connection is cut.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// Longer than any machine is busy with something else, shorter than anybody's patience.
const PEER_TIMEOUT: Duration = Duration::from_secs(60);

/// What a server is made with besides its place in the cluster.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Listen on this host instead of the one in the own address, such as `0.0.0.0`.
    pub bind: Option<String>,
    /// How long running steps may go on when the server stops.
    pub grace: Duration,
    /// Message sizes and windows.
    pub limits: Limits,
    /// Sessions that did nothing for this long are closed; by default they stay.
    pub session_idle: Option<Duration>,
    /// Who has it may stop the server; without one only this machine may.
    pub admin_token: Option<String>,
    /// Whether tasks on the same machine read large tensors out of each other's memory and talk about their steps on a
    /// Unix socket.
    pub direct_transfers: bool,
    /// Another task that says nothing for this long, though a call waits for it and it is asked, is taken
    /// for gone: the call fails with UNAVAILABLE. `None` waits for ever.
    pub peer_timeout: Option<Duration>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            bind: None,
            grace: Duration::from_secs(10),
            limits: Limits::default(),
            session_idle: None,
            admin_token: None,
            direct_transfers: true,
            peer_timeout: Some(PEER_TIMEOUT),
        }
    }
}

/// One task of a cluster: a master and a worker behind one port.
///
/// ```
/// use tensorfleet_rpc::Server;
///
/// let server = Server::create_local(Default::default())?;
/// assert!(server.target().starts_with("grpc://localhost:"));
/// server.stop();
/// server.join();
/// # Ok::<(), tensorfleet_status::Status>(())
/// ```
pub struct Server {
    spec: ServerSpec,
    target: String,
    options: ServerOptions,
    services: Arc<Services>,
    stop: StopOrders,
    state: Arc<(Mutex<State>, Condvar)>,
    /// Taken when the server is dropped, which must not wait for its threads.
    runtime: Option<Runtime>,
}

enum State {
    /// The port is ours, nobody is answered yet.
    Bound(std::net::TcpListener),
    Serving,
    Stopped,
}

impl Server {
    /// Binds the port of a task; [`start`](Self::start) begins to answer.
    pub fn new(spec: ServerSpec, options: ServerOptions) -> Result<Server> {
        let config = spec.default_session_config.clone().unwrap_or_default();
        let listener = listen(&spec, options.bind.as_deref())?;
        let port = listener
            .local_addr()
            .map_err(|error| unavailable!("the bound port is not known: {error}"))?
            .port();
        let target = spec.target(port)?;
        let runtime = Builder::new_multi_thread()
            // They only pass messages on: more of them wake each other more often than they help each other.
            .worker_threads((cores() / 2).max(1))
            .thread_name("rpc")
            .enable_all()
            .build()
            .map_err(|error| internal!("the server's threads cannot start: {error}"))?;

        let task = TaskName::new(spec.job.clone(), spec.task as usize);
        let env = Arc::new(worker_env(task.clone(), &config, &runtime)?);
        let mut addresses = addresses(&spec.cluster);
        addresses.insert(
            task.clone(),
            target.trim_start_matches("grpc://").to_owned(),
        );
        let lines = options.direct_transfers.then(|| {
            let most = options.limits.max_message_bytes;
            Arc::new(Lines::new(&task, most, options.peer_timeout))
        });
        let peers = Arc::new(GrpcPeers::new(
            task,
            addresses,
            options.limits.clone(),
            env.pool.clone(),
            options.direct_transfers,
            lines.clone(),
            options.peer_timeout.map(|timeout| KeepAlive {
                timeout,
                path: path::GET_STATUS,
            }),
        ));
        let client = env
            .devices
            .first()
            .ok_or_else(|| invalid_argument!("device_count leaves the server no CPU"))?;
        // Graphs that other masters register are rewritten by them already, but for calls.
        let inline = PassOptions {
            inline: true,
            lower: true,
            ..PassOptions::NONE
        };
        let optimize = optimizer(inline, client, &env.pool, &env.clock);
        let worker = Arc::new(Worker::new(env.clone(), peers.clone(), optimize));
        peers.set_local(&worker);
        let master = Arc::new(Master::new(
            worker.clone(),
            peers,
            MasterOptions {
                default_config: config,
                session_idle: options.session_idle,
            },
        ));
        let stop = StopOrders::new(options.grace);
        let admin = Admin {
            token: options.admin_token.clone(),
            stop: stop.clone(),
            started: Instant::now(),
            cluster: bound_cluster(&spec, &target),
        };
        let services = Arc::new(Services {
            master,
            worker,
            admin,
            leases: Leases::new(options.direct_transfers),
            lines,
            max_message_bytes: options.limits.max_message_bytes,
            calls: AtomicU64::new(0),
        });
        if let Some(lines) = &services.lines {
            lines.set_services(&services);
        }
        Ok(Server {
            spec,
            target,
            options,
            services,
            stop,
            state: Arc::new((Mutex::new(State::Bound(listener)), Condvar::new())),
            runtime: Some(runtime),
        })
    }

    /// The server that a message describes, not started.
    pub fn from_server_def(def: &ServerDef, options: ServerOptions) -> Result<Server> {
        Server::new(ServerSpec::from_server_def(def)?, options)
    }

    /// A started server of a task of a cluster; job and index may be left out where there is one choice.
    pub fn from_cluster(
        cluster: ClusterSpec,
        job: Option<&str>,
        task: Option<u32>,
        config: Option<ConfigProto>,
    ) -> Result<Server> {
        let mut spec = ServerSpec::new(cluster, job, task)?;
        spec.default_session_config = config;
        let server = Server::new(spec, ServerOptions::default())?;
        server.start()?;
        Ok(server)
    }

    /// A started server that is a cluster of its own: job `local`, one task, any free port.
    pub fn create_local(config: ConfigProto) -> Result<Server> {
        let cluster = ClusterSpec::from_jobs([("local", ["localhost:0"])])?;
        Server::from_cluster(cluster, None, None, Some(config))
    }

    /// Begins to answer. Starting twice is no error; a stopped server does not start again.
    pub fn start(&self) -> Result<()> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Serving) {
            State::Bound(listener) => {
                self.spawn(listener)?;
                tracing::info!("Started server with target: {}", self.target);
                Ok(())
            }
            State::Serving => Ok(()),
            State::Stopped => {
                *state = State::Stopped;
                Err(failed_precondition!(
                    "the server {} was stopped; make a new one",
                    self.target
                ))
            }
        }
    }

    /// Blocks until the server has stopped.
    pub fn join(&self) {
        let (_, changed) = &*self.state;
        let mut state = self.lock();
        while !matches!(*state, State::Stopped) {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops: no new calls, running steps get the grace period, then they are cancelled.
    pub fn stop(&self) {
        self.stop_within(self.options.grace);
    }

    /// Like [`stop`](Self::stop) with another grace period.
    pub fn stop_within(&self, grace: Duration) {
        let mut state = self.lock();
        if matches!(*state, State::Bound(_)) {
            *state = State::Stopped;
            self.state.1.notify_all();
            return;
        }
        drop(state);
        self.stop.stop(Some(grace));
    }

    /// What clients pass to a session: `grpc://host:port`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The message that describes the server.
    pub fn server_def(&self) -> ServerDef {
        self.spec.to_server_def()
    }

    /// How many sessions its master has open.
    pub fn session_count(&self) -> usize {
        self.services.master.session_count()
    }

    fn spawn(&self, listener: std::net::TcpListener) -> Result<()> {
        let Some(runtime) = &self.runtime else {
            return Err(internal!("the server's threads are gone"));
        };
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)
                .map_err(|error| internal!("the port cannot be served: {error}"))?
        };
        let (services, limits) = (self.services.clone(), self.options.limits.clone());
        let stop = self.stop.clone();
        let stopped = TellStopped(self.state.clone());
        let idle = self.options.session_idle;
        runtime.spawn(async move {
            let mut meanwhile = JoinSet::new();
            meanwhile.spawn(collect(services.clone(), idle));
            meanwhile.spawn(trim(services.clone()));
            if let Some(lines) = &services.lines {
                meanwhile.spawn(lines.clone().listen());
            }
            run(listener, services, limits, stop).await;
            drop(meanwhile);
            drop(stopped);
        });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Steps may still run on the pool; they end by themselves once their sessions are gone.
            runtime.shutdown_background();
        }
    }
}

/// Whatever ends the serving, who joins must hear of it.
struct TellStopped(Arc<(Mutex<State>, Condvar)>);

impl Drop for TellStopped {
    fn drop(&mut self) {
        let (state, changed) = &*self.0;
        *state.lock().unwrap_or_else(PoisonError::into_inner) = State::Stopped;
        changed.notify_all();
    }
}

/// Serves until told to stop, then for the grace period.
async fn run(listener: TcpListener, services: Arc<Services>, limits: Limits, stop: StopOrders) {
    let (tell, stopping) = watch::channel(false);
    let lines_end = async {
        let mut stopping = stopping.clone();
        // Fails only if nobody can say it any more.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        if let Some(lines) = &services.lines {
            lines.drain().await;
        }
    };
    let calls_end = serve(listener, services.clone(), limits, stopping.clone());
    let serving = async { tokio::join!(calls_end, lines_end) };
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = &mut serving => return,
        () = stop.told() => {}
    }
    tell.send_replace(true);
    let drained = tokio::select! {
        biased;
        _ = &mut serving => true,
        () = stop.end_of_grace() => false,
    };
    if !drained {
        tracing::info!("steps still run after the grace period and are cancelled");
    }
    services.master.stop().await;
    if !drained {
        // What was cancelled answers; whatever does not is cut off with its connection.
        let _ = tokio::time::timeout(CANCEL_GRACE, serving).await;
    }
}

/// The server's cluster, with the port that was bound in its own address.
fn bound_cluster(spec: &ServerSpec, target: &str) -> ClusterDef {
    let mut cluster = spec.cluster.as_cluster_def();
    let address = target.trim_start_matches("grpc://");
    for job in cluster.job.iter_mut().filter(|job| job.name == spec.job) {
        job.tasks.insert(spec.task as i32, address.to_owned());
    }
    cluster
}

fn worker_env(task: TaskName, config: &ConfigProto, runtime: &Runtime) -> Result<WorkerEnv> {
    let positive = |count: i32| usize::try_from(count).ok().filter(|count| *count > 0);
    let threads = positive(config.intra_op_parallelism_threads).unwrap_or_else(cores);
    let cpus = match config.device_count.get("CPU") {
        Some(count) => positive(*count)
            .ok_or_else(|| invalid_argument!("device_count asks for {count} CPUs"))?,
        None => 1,
    };
    let devices = (0..cpus)
        .map(|index| Arc::new(Device::cpu(&task.job, task.index, index, ids::random())))
        .collect();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    Ok(WorkerEnv {
        devices,
        registry: tensorfleet_ops::registry()?,
        pool: Arc::new(Pool::new(threads)),
        clock,
        ids: ids::Ids::system(),
        runtime: runtime.handle().clone(),
        task,
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
