//! `tensorfleet serve` and `tensorfleet local`: one task of a cluster, until it is told to stop.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use prost::{Message, Name};
use tensorfleet_cluster::{ClusterSpec, ServerSpec, TfConfig};
use tensorfleet_proto::{ConfigProto, ServerDef, text};
use tensorfleet_rpc::{Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::{LocalArgs, ServeArgs, ServerArgs};
use crate::output::Misuse;

pub(crate) fn run(args: &ServeArgs, out: &mut dyn Write) -> Result<()> {
    // A task that cannot be placed was asked for wrongly, whoever noticed.
    let spec = spec(args).map_err(|error| Misuse(format!("{error:#}")))?;
    serve(spec, &args.server, out)
}

pub(crate) fn run_local(args: &LocalArgs, out: &mut dyn Write) -> Result<()> {
    let address = format!("localhost:{}", args.port);
    let cluster = ClusterSpec::from_jobs([("local", [address])])?;
    serve(ServerSpec::new(cluster, None, None)?, &args.server, out)
}

/// Where the flags, or the environment, put this task.
fn spec(args: &ServeArgs) -> Result<ServerSpec> {
    let (job, task) = (args.job_name.as_deref(), args.task_index);
    if let Some(def) = &args.server_def {
        let mut def: ServerDef = message(def, "--server_def")?;
        if let Some(job) = job {
            job.clone_into(&mut def.job_name);
        }
        if let Some(task) = task {
            def.task_index = i32::try_from(task)?;
        }
        return Ok(ServerSpec::from_server_def(&def)?);
    }
    if let Some(cluster) = &args.cluster {
        let text = if cluster.trim_start().starts_with('{') {
            cluster.clone()
        } else {
            std::fs::read_to_string(cluster)
                .with_context(|| format!("--cluster: {cluster} is neither JSON nor a file"))?
        };
        return Ok(ServerSpec::new(ClusterSpec::parse_json(&text)?, job, task)?);
    }
    let hosts = [
        ("ps", &args.ps_hosts),
        ("worker", &args.worker_hosts),
        ("chief", &args.chief_hosts),
    ];
    let jobs = hosts.into_iter().filter(|(_, hosts)| !hosts.is_empty());
    let jobs: Vec<(&str, Vec<String>)> = jobs.map(|(job, hosts)| (job, hosts.clone())).collect();
    if !jobs.is_empty() {
        return Ok(ServerSpec::new(ClusterSpec::from_jobs(jobs)?, job, task)?);
    }
    match std::env::var("TF_CONFIG") {
        Ok(text) if !text.trim().is_empty() => {
            let mut spec = ServerSpec::from_tf_config(&TfConfig::parse(&text)?)?;
            if job.is_some() || task.is_some() {
                let task = task.or(Some(spec.task));
                spec = ServerSpec::new(spec.cluster, job.or(Some(&spec.job)), task)?;
            }
            Ok(spec)
        }
        _ => Err(Misuse(
            "no cluster: give --ps_hosts and --worker_hosts, --cluster, --server_def or TF_CONFIG \
             (or use `tensorfleet local` for a server of its own)"
                .to_owned(),
        )
        .into()),
    }
}

fn serve(mut spec: ServerSpec, args: &ServerArgs, out: &mut dyn Write) -> Result<()> {
    let filter = EnvFilter::try_new(&args.log)
        .map_err(|error| Misuse(format!("--log {}: {error}", args.log)))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let base = spec.default_session_config.take().unwrap_or_default();
    spec.default_session_config = Some(config(base, args)?);
    let idle = seconds("--session_idle", args.session_idle)?;
    let server = Server::new(
        spec,
        ServerOptions {
            bind: args.bind.clone(),
            grace: seconds("--grace", args.grace)?,
            session_idle: (!idle.is_zero()).then_some(idle),
            admin_token: args.admin_token.clone(),
            limits: tensorfleet_rpc::grpc::Limits {
                max_message_bytes: args.max_message_bytes as usize,
                ..Default::default()
            },
        },
    )?;
    let signals = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = signals.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    server.start()?;
    writeln!(
        out,
        "tensorfleet serves {} at {}",
        task(&server),
        server.target()
    )?;
    out.flush()?;
    let stopped = tokio::sync::Notify::new();
    std::thread::scope(|scope| {
        let (server, stopped) = (&server, &stopped);
        scope.spawn(move || {
            server.join();
            stopped.notify_one();
        });
        signals.block_on(async {
            let first = async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            tokio::select! {
                () = stopped.notified() => return,
                () = first => server.stop(),
            }
            tokio::select! {
                () = stopped.notified() => {}
                // Somebody is in a hurry.
                _ = interrupt.recv() => std::process::exit(130),
            }
        });
    });
    Ok(())
}

fn task(server: &Server) -> String {
    let def = server.server_def();
    format!("/job:{}/task:{}", def.job_name, def.task_index)
}

/// The config of the file, and the flags over it.
fn config(base: ConfigProto, args: &ServerArgs) -> Result<ConfigProto> {
    let mut config = base;
    if !args.config.is_empty() {
        let given: ConfigProto = message(&args.config, "--config")?;
        config.merge(given.encode_to_vec().as_slice())?;
    }
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

/// A message from a file, text or binary, or from the argument itself.
fn message<M: Message + Name + Default>(argument: &str, flag: &str) -> Result<M> {
    let path = Path::new(argument);
    let bytes = if path.exists() {
        std::fs::read(path).with_context(|| format!("{flag}: {argument} cannot be read"))?
    } else {
        argument.as_bytes().to_vec()
    };
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(content) => text::parse(content).map_err(|error| error.to_string()),
        Err(_) => Err("it is no text".to_owned()),
    };
    match parsed {
        Ok(message) => Ok(message),
        Err(_) if path.exists() && M::decode(bytes.as_slice()).is_ok() => {
            Ok(M::decode(bytes.as_slice())?)
        }
        Err(error) => Err(Misuse(format!(
            "{flag}: neither a file nor a {} in text form: {error}",
            M::NAME
        ))
        .into()),
    }
}

fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Misuse(format!("{flag} {value} is not a time in seconds")).into())
}
