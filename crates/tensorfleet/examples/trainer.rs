//! The full distributed trainer: parameter servers and workers in one binary, each worker with a graph of
//! its own, all of them updating the same variables.
//!
//! ```sh
//! cargo run --example trainer                                  # one ps, two workers in this process
//!
//! # the same on three machines (or in three terminals):
//! hosts="--ps_hosts=localhost:2222 --worker_hosts=localhost:2223,localhost:2224 --dir=/tmp/trainer"
//! cargo run --example trainer -- $hosts --job_name=ps --task_index=0
//! cargo run --example trainer -- $hosts --job_name=worker --task_index=0     # the chief
//! cargo run --example trainer -- $hosts --job_name=worker --task_index=1
//! ```
//!
//! Kill any of them and start it again: the others go on from the newest checkpoint.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod data;

use clap::Parser;
use tensorfleet::flags::{ClusterFlags, Role};
use tensorfleet::train::{
    GradientDescent, Minimize, MonitoredTrainingSession, Optimizer, ReplicaDeviceSetter,
    StopAtStepHook, export_meta_graph, get_or_create_global_step,
};
use tensorfleet::{ClusterSpec, DType, Graph, LocalCluster, Result, init};
use tracing_subscriber::filter::LevelFilter;

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Ends at this global step.
    #[arg(long, default_value_t = 300)]
    steps: i64,
    /// Where checkpoints and events go; nowhere by default.
    #[arg(long)]
    dir: Option<String>,
    /// How many steps lie between two checkpoints.
    #[arg(long, default_value_t = 50)]
    save_steps: i64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 50)]
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
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)])?;
    let worker = |task: u32| {
        let role = Role::new(cluster.spec(), "worker", task);
        train(args, cluster.spec(), &role, cluster.target("worker", task)?)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| worker(1));
        if let Err(status) = worker(0) {
            // The other would wait for its chief for hours.
            eprintln!("Error: {status}");
            std::process::exit(1);
        }
        other.join().unwrap_or(Ok(()))
    })
}

/// What each worker does.
fn train(args: &Args, cluster: &ClusterSpec, role: &Role, target: &str) -> Result<()> {
    let g = Graph::new();
    // Variables go to the parameter servers in turns, everything else to this worker.
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
    let train = GradientDescent::new(0.1).minimize_with(&loss, &Minimize::step(&step))?;
    let at = g.control_dependencies([&train]).run(|| step.read());
    if let Some(path) = args.graph.as_deref().filter(|_| role.is_chief) {
        export_meta_graph(&g, path)?;
    }

    let mut session = MonitoredTrainingSession::new(&g)
        .target(target)
        .is_chief(role.is_chief)
        .save_checkpoint_steps(args.save_steps)
        .hook(StopAtStepHook::at(args.steps));
    if let Some(dir) = &args.dir {
        session = session.checkpoint_dir(dir);
    }
    let mut session = session.start()?;
    // Each worker sees other batches.
    let mut batch = u64::from(role.task_index) << 32;
    while !session.should_stop() {
        let (xs, ys) = data::line(batch, 32)?;
        batch += 1;
        let (loss, at) = session.run_fed(&[(&x, xs), (&y, ys)], (&loss, &at))?;
        let (loss, at) = (loss.to_scalar::<f32>()?, at.to_scalar::<i64>()?);
        if at % args.log_steps == 0 || session.should_stop() {
            println!("{role} step {at} loss {loss:.6}");
        }
    }
    println!("{role} recovered {} times", session.recoveries());
    session.close()
}
