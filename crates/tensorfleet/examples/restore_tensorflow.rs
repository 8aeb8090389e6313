//! Goes on training where TensorFlow stopped: restores its checkpoint, and writes one that it restores.
//!
//! ```sh
//! cargo run --example restore_tensorflow                       # the checkpoint beside it, by TensorFlow
//! python crates/tensorfleet/examples/data/tensorflow/save.py DIR
//! cargo run --example restore_tensorflow -- --dir DIR          # goes on from DIR, saves in DIR
//! ```
//!
//! `save.py` is the same model, y = x · w + b by Momentum, in Python: variables and slots have the same names.

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::train::{
    Minimize, Momentum, MonitoredTrainingSession, Optimizer, StopAtStepHook, export_meta_graph,
    get_or_create_global_step,
};
use tensorfleet::{DType, Graph, Result, init, summary};

/// Written by `save.py`.
const BY_TENSORFLOW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/data/tensorflow/model.ckpt-5"
);

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// Restores the newest checkpoint of this directory and saves there.
    #[arg(long)]
    dir: Option<String>,
    /// How many more steps to make.
    #[arg(long, default_value_t = 60)]
    steps: i64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
    log_steps: i64,
    /// A server to train on; in this process by default.
    #[arg(long, default_value = "")]
    target: String,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let g = Graph::new();
    let step = get_or_create_global_step(&g)?;
    let x = g.named_placeholder("x", DType::F32, &[-1, 4]);
    let y = g.named_placeholder("y", DType::F32, &[-1, 1]);
    let w = g.variable("w", &[4, 1]).initializer(init::zeros()).build();
    let b = g.variable("b", &[1]).initializer(init::zeros()).build();
    let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
    summary::scalar("loss", &loss);
    let train = Momentum::new(0.02, 0.9).minimize_with(&loss, &Minimize::step(&step))?;
    let at = g.control_dependencies([&train]).run(|| step.read());
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = MonitoredTrainingSession::new(&g)
        .target(&args.target)
        .save_summaries_steps(5)
        .log_step_count_steps(5)
        .hook(StopAtStepHook::after(args.steps));
    let session = match &args.dir {
        Some(dir) => session.checkpoint_dir(dir),
        None => session.checkpoint_path(BY_TENSORFLOW),
    };
    let mut session = session.start()?;
    let began = session.raw_session()?.run(&step)?.to_scalar::<i64>()?;
    println!("TensorFlow stopped at step {began}");
    while !session.should_stop() {
        let batch = session.raw_session()?.run(&step)?.to_scalar::<i64>()?;
        let (xs, ys) = data::line(batch as u64, 32)?;
        let (loss, at) = session.run_fed(&[(&x, xs), (&y, ys)], (&loss, &at))?;
        let at = at.to_scalar::<i64>()?;
        if at % args.log_steps == 0 || session.should_stop() {
            println!("step {at} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    session.close()
}
