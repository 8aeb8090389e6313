//! Towers: one model on several devices of one task, each with its part of the batch, and one update by the mean
//! of their gradients.
//!
//! ```sh
//! cargo run --example towers                                   # four towers on a server in this process
//! cargo run --example towers -- --towers 1                     # the same losses, one tower
//! cargo run --example towers -- --target grpc://localhost:2222 # a server that has CPU:0 … CPU:3
//! ```

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::proto::ConfigProto;
use tensorfleet::train::{
    Minimize, Momentum, Optimizer, average_gradients, export_meta_graph, towers,
};
use tensorfleet::{DType, Graph, Output, Result, Server, Session, layers, losses};

/// Points in one step, whatever the number of towers.
const BATCH: usize = 64;

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// On how many devices.
    #[arg(long, default_value_t = 4)]
    towers: usize,
    /// How many steps to make.
    #[arg(long, default_value_t = 120)]
    steps: u64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 20)]
    log_steps: u64,
    /// A server to train on; one in this process by default.
    #[arg(long)]
    target: Option<String>,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (_server, target) = match args.target {
        Some(target) => (None, target),
        None => {
            let mut config = ConfigProto::default();
            config.device_count.insert("CPU".to_owned(), 4);
            let server = Server::create_local(config)?;
            let target = server.target().to_owned();
            (Some(server), target)
        }
    };

    let g = Graph::new();
    g.set_random_seed(7);
    let points = g.placeholder(DType::F32, &[BATCH as i64, 2]);
    let classes = g.placeholder(DType::I64, &[BATCH as i64]);
    let optimizer = Momentum::new(0.1, 0.9);
    let devices: Vec<String> = (0..args.towers).map(|i| format!("/cpu:{i}")).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    let built = towers(&g, &devices, |tower| {
        let size = (BATCH / args.towers) as i32;
        let begin = tower as i32 * size;
        let points = points.slice(&[begin, 0], &[size, -1]);
        let classes = classes.slice(&[begin], &[size]);
        let loss = loss(&points, &classes);
        let gradients = optimizer.compute_gradients(&loss, &Minimize::default())?;
        Ok((loss, gradients))
    })?;
    let (losses, gradients): (Vec<Output>, Vec<_>) = built.into_iter().unzip();
    let train = optimizer.apply_gradients(&average_gradients(&gradients)?, &Minimize::default())?;
    let loss = tensorfleet::ops::add_n(&losses).output() / args.towers as f64;
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = Session::connect(&g, &target)?;
    session.run(&g.global_variables_initializer())?;
    for step in 1..=args.steps {
        let (xs, ys) = data::circle(step, BATCH)?;
        let (loss, ()) = session.run_fed(&[(&points, xs), (&classes, ys)], (&loss, &train))?;
        if step % args.log_steps == 0 {
            println!("step {step} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    Ok(())
}

/// Is a point inside of the circle? Layers find their variables by name: all towers have the same.
fn loss(points: &Output, classes: &Output) -> Output {
    let hidden = layers::dense(points, 32)
        .activation(Output::relu)
        .name("hidden")
        .output();
    let logits = layers::dense(&hidden, 2).name("logits").output();
    losses::sparse_softmax_cross_entropy(classes, &logits).output()
}
