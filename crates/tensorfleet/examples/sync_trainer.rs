//! The synchronous trainer: a step is made when all workers have given their gradients for it, or all but the
//! backup workers, so that the slowest holds nobody up.
//!
//! ```sh
//! cargo run --example sync_trainer                             # one ps, two workers and a backup, one process
//! cargo run --example sync_trainer -- --backups 0
//!
//! # or in four terminals:
//! hosts="--ps_hosts=localhost:2222 --worker_hosts=localhost:2223,localhost:2224,localhost:2225"
//! cargo run --example sync_trainer -- $hosts --job_name=ps --task_index=0
//! cargo run --example sync_trainer -- $hosts --job_name=worker --task_index=0   # and 1, and 2
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod data;

use clap::Parser;
use tensorfleet::flags::{ClusterFlags, Role};
use tensorfleet::train::{
    GradientDescent, Minimize, MonitoredTrainingSession, Optimizer, ReplicaDeviceSetter,
    StopAtStepHook, SyncReplicas, export_meta_graph, get_or_create_global_step,
};
use tensorfleet::{ClusterSpec, Code, DType, Graph, LocalCluster, Result, init};
use tracing_subscriber::filter::LevelFilter;

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Ends at this global step.
    #[arg(long, default_value_t = 100)]
    steps: i64,
    /// For how many of the workers a step does not wait.
    #[arg(long, default_value_t = 1)]
    backups: usize,
    /// Where checkpoints and events go; nowhere by default.
    #[arg(long)]
    dir: Option<String>,
    /// How many steps lie between two checkpoints.
    #[arg(long, default_value_t = 50)]
    save_steps: i64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
    log_steps: i64,
    /// The server of this task if it is not to start one: a TensorFlow server, for one.
    #[arg(long)]
    target: Option<String>,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    // Says who is awaited, and what was lost.
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let Some(task) = args.cluster.find()? else {
        return alone(&args);
    };
    if let Some(target) = &args.target {
        return train(&args, &task.cluster, &task.role, target);
    }
    let server = task.start_server()?;
    if task.role.is_ps {
        server.join(); // serves variables until it is stopped
        return Ok(());
    }
    train(&args, &task.cluster, &task.role, server.target())
}

/// Everything in this process, each worker in a thread.
fn alone(args: &Args) -> Result<()> {
    let workers = 2 + args.backups;
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", workers)])?;
    let worker = |task: u32| {
        let role = Role::new(cluster.spec(), "worker", task);
        train(args, cluster.spec(), &role, cluster.target("worker", task)?)
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let others = (1..workers as u32).map(|task| scope.spawn(move || worker(task)));
        let others: Vec<_> = others.collect();
        if let Err(status) = worker(0) {
            // The others would wait for their chief for hours.
            eprintln!("Error: {status}");
            std::process::exit(1);
        }
        others
            .into_iter()
            .try_for_each(|other| other.join().unwrap_or(Ok(())))
    })
}

/// What each worker does.
fn train(args: &Args, cluster: &ClusterSpec, role: &Role, target: &str) -> Result<()> {
    let g = Graph::new();
    let devices = ReplicaDeviceSetter::new()
        .cluster(cluster)
        .worker_device(&role.device())
        .build()?;
    let _devices = g.device_function(devices);
    let step = get_or_create_global_step(&g)?;
    let x = g.named_placeholder("x", DType::F32, &[-1, 4]);
    let y = g.named_placeholder("y", DType::F32, &[-1, 1]);
    let w = g.variable("w", &[4, 1]).initializer(init::zeros()).build();
    let b = g.variable("b", &[1]).initializer(init::zeros()).build();
    let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);

    let workers = cluster.num_tasks("worker")?;
    let wanted = workers.saturating_sub(args.backups).max(1);
    let optimizer = SyncReplicas::new(GradientDescent::new(0.2), wanted as u32)
        .total_num_replicas(workers as u32);
    let train = optimizer.minimize_with(&loss, &Minimize::step(&step))?;
    let at = g.control_dependencies([&train]).run(|| step.read());
    if let Some(path) = args.graph.as_deref().filter(|_| role.is_chief) {
        export_meta_graph(&g, path)?;
    }

    // No tokens in advance: whoever gets one has seen the step it waited for.
    let mut session = MonitoredTrainingSession::new(&g)
        .target(target)
        .is_chief(role.is_chief)
        .save_checkpoint_steps(args.save_steps)
        .hook(StopAtStepHook::at(args.steps))
        .hook(optimizer.make_session_run_hook(role.is_chief, Some(0))?);
    if let Some(dir) = &args.dir {
        session = session.checkpoint_dir(dir);
    }
    let mut session = session.start()?;
    let mut batch = u64::from(role.task_index) << 32;
    while !session.should_stop() {
        let (xs, ys) = data::line(batch, 32)?;
        batch += 1;
        let (loss, at) = match session.run_fed(&[(&x, xs), (&y, ys)], (&loss, &at)) {
            Ok(values) => values,
            // The chief is done and hands out no more tokens.
            Err(status) if status.code() == Code::OutOfRange => break,
            Err(status) => return Err(status),
        };
        let (loss, at) = (loss.to_scalar::<f32>()?, at.to_scalar::<i64>()?);
        if at % args.log_steps == 0 {
            println!("{role} step {at} loss {loss:.6}");
        }
    }
    session.close()
}
