//! Drives a TensorFlow server: its devices, a variable in its memory, a model trained on it.
//!
//! ```sh
//! python -c "import tensorflow as tf; tf.distribute.Server({'local': ['localhost:2222']}).join()" &
//! cargo run --example drive_tensorflow -- --target grpc://localhost:2222
//! ```
//!
//! Without a target it drives a server of its own: they speak the same language.

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::train::{Momentum, Optimizer, export_meta_graph};
use tensorfleet::{DType, Graph, Result, RunOptions, Server, Session, init};

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// A server to drive.
    #[arg(long)]
    target: Option<String>,
    /// How many steps to make.
    #[arg(long, default_value_t = 50)]
    steps: u64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
    log_steps: u64,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (_own, target) = match args.target {
        Some(target) => (None, target),
        None => {
            let server = Server::create_local(Default::default())?;
            let target = server.target().to_owned();
            (Some(server), target)
        }
    };

    let g = Graph::new();
    g.set_random_seed(7);
    let x = g.placeholder(DType::F32, &[-1, 4]);
    let y = g.placeholder(DType::F32, &[-1, 1]);
    let w = g
        .variable("w", &[4, 1])
        .initializer(init::glorot_uniform())
        .build();
    let b = g.variable("b", &[1]).initializer(init::zeros()).build();
    let loss = (x.matmul(&w) + &b - &y).square().mean(&[]);
    let train = Momentum::new(0.05, 0.9).minimize(&loss)?;
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = Session::connect(&g, &target)?;
    for device in session.list_devices()? {
        println!("{target} has {}", device.name);
    }
    session.run(&g.global_variables_initializer())?;
    for step in 1..=args.steps {
        let (xs, ys) = data::line(step, 32)?;
        let (loss, ()) = session.run_fed(&[(&x, xs), (&y, ys)], (&loss, &train))?;
        if step % args.log_steps == 0 {
            println!("step {step} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }

    // What the server did in one step, as its own tools would show it.
    let (xs, ys) = data::line(0, 32)?;
    let traced = RunOptions {
        trace: true,
        ..RunOptions::default()
    };
    let ((w, b), told) = session.run_with(&traced, &[(&x, xs), (&y, ys)], (&w, &b))?;
    let devices = told.step_stats.unwrap_or_default().dev_stats;
    let nodes: usize = devices.iter().map(|device| device.node_stats.len()).sum();
    println!("the last step ran {nodes} nodes");
    println!(
        "w = {:.3?}, b = {:.3?}",
        w.slice::<f32>()?,
        b.slice::<f32>()?
    );
    Ok(())
}
