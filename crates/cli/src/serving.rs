//! Servers in this process: made as the flags say, serving until somebody says stop.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use prost::Message;
use tensorfleet_cluster::ServerSpec;
use tensorfleet_proto::ConfigProto;
use tensorfleet_rpc::{Server, ServerOptions};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tracing_subscriber::EnvFilter;

use crate::args::ServerArgs;
use crate::cluster;
use crate::commands::seconds;
use crate::output::Misuse;

/// What the flags say about a server, checked.
pub(crate) struct Settings {
    config: ConfigProto,
    options: ServerOptions,
    log: EnvFilter,
}

impl Settings {
    pub(crate) fn new(args: &ServerArgs) -> Result<Settings> {
        let idle = seconds("--session_idle", args.session_idle)?;
        let peer_timeout = seconds("--peer_timeout", args.peer_timeout)?;
        Ok(Settings {
            config: config(args)?,
            options: ServerOptions {
                bind: args.bind.clone(),
                grace: seconds("--grace", args.grace)?,
                session_idle: (!idle.is_zero()).then_some(idle),
                admin_token: args.admin_token.clone(),
                direct_transfers: !args.no_direct_transfers,
                peer_timeout: (!peer_timeout.is_zero()).then_some(peer_timeout),
                limits: tensorfleet_rpc::grpc::Limits {
                    max_message_bytes: args.max_message_bytes as usize,
                    ..Default::default()
                },
            },
            log: EnvFilter::try_new(&args.log)
                .map_err(|error| Misuse(format!("--log {}: {error}", args.log)))?,
        })
    }

    /// How long running steps may go on when the server stops.
    pub(crate) fn grace(&self) -> Duration {
        self.options.grace
    }

    /// Binds the servers of some tasks and begins to log.
    pub(crate) fn bind(self, specs: impl IntoIterator<Item = ServerSpec>) -> Result<Vec<Server>> {
        tensorfleet_tensor::keep_freed_memory();
        tracing_subscriber::fmt()
            .with_env_filter(self.log)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        let bind = |mut spec: ServerSpec| {
            let mut config = spec.default_session_config.take().unwrap_or_default();
            config.merge(self.config.encode_to_vec().as_slice())?;
            spec.default_session_config = Some(config);
            Ok(Server::new(spec, self.options.clone())?)
        };
        specs.into_iter().map(bind).collect()
    }
}

/// The config of the file, and the flags over it.
fn config(args: &ServerArgs) -> Result<ConfigProto> {
    let mut config: ConfigProto = match args.config.as_str() {
        "" => ConfigProto::default(),
        given => cluster::message(given, "--config")?,
    };
    if let Some(cpus) = args.cpus {
        config
            .device_count
            .insert("CPU".to_owned(), i32::try_from(cpus)?);
    }
    if let Some(threads) = args.intra_op_threads {
        config.intra_op_parallelism_threads = i32::try_from(threads)?;
    }
    config.allow_soft_placement |= args.allow_soft_placement;
    config.log_device_placement |= args.log_device_placement;
    Ok(config)
}

/// SIGTERM and SIGINT. Made before anything starts, so that none is missed.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Must be made inside a runtime.
    pub(crate) fn new() -> Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Either signal: a wish to stop in good order.
    pub(crate) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// SIGINT: after a wish to stop, somebody is in a hurry.
    pub(crate) async fn hurry(&mut self) {
        // It ends only with the runtime.
        let _ = self.interrupt.recv().await;
    }

    /// The first signal, or the one that says it shall be quick.
    pub(crate) async fn wish(&mut self, stopping: bool) {
        if stopping {
            self.hurry().await;
        } else {
            self.stop().await;
        }
    }
}

/// The exit code of a program that SIGINT ended.
pub(crate) const INTERRUPTED: i32 = 130;

/// Waits until all servers have stopped, by themselves or because a signal or stdin says so.
pub(crate) fn until_stopped(
    runtime: &Runtime,
    signals: &mut Signals,
    servers: &[Server],
    stdin: Option<oneshot::Receiver<StdinSays>>,
) {
    let stopped = Notify::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            servers.iter().for_each(Server::join);
            stopped.notify_one();
        });
        runtime.block_on(async {
            tokio::select! {
                () = stopped.notified() => return,
                () = signals.stop() => servers.iter().for_each(Server::stop),
                says = said(stdin) => match says {
                    StdinSays::Stop => servers.iter().for_each(Server::stop),
                    StdinSays::End => {
                        servers.iter().for_each(|server| server.stop_within(Duration::ZERO));
                    }
                },
            }
            tokio::select! {
                () = stopped.notified() => {}
                () = signals.hurry() => std::process::exit(INTERRUPTED),
            }
        });
    });
}

/// What the process that started this one tells through stdin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum StdinSays {
    /// A line: stop in good order.
    Stop,
    /// The end of the pipe: that process is gone, however it died.
    End,
}

/// Listens to stdin.
pub(crate) fn listen_to_stdin() -> oneshot::Receiver<StdinSays> {
    let (sender, receiver) = oneshot::channel();
    // It blocks in a read that nothing can end, so nobody waits for it.
    std::thread::spawn(move || {
        let says = match std::io::stdin().read_line(&mut String::new()) {
            Ok(1..) => StdinSays::Stop,
            Ok(0) | Err(_) => StdinSays::End,
        };
        // Nobody listens to a server that has stopped.
        let _ = sender.send(says);
    });
    receiver
}

async fn said(stdin: Option<oneshot::Receiver<StdinSays>>) -> StdinSays {
    match stdin {
        Some(stdin) => stdin.await.unwrap_or(StdinSays::End),
        None => std::future::pending().await,
    }
}
