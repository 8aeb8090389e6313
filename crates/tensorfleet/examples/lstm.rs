//! An LSTM by `while_loop`: one iteration for each step of time, and gradients through all of them.
//!
//! ```sh
//! cargo run --example lstm                                    # on a server in this process
//! cargo run --example lstm -- --target grpc://localhost:2222  # on any other
//! ```

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::train::{Adam, Minimize, Optimizer, clip_by_global_norm, export_meta_graph};
use tensorfleet::{
    DType, Graph, Output, Result, Server, Session, Variable, init, layers, ops, while_loop,
};

/// How long the sequences are, how many are in a batch, how much the cell remembers.
const TIME: usize = 10;
const BATCH: usize = 32;
const UNITS: i64 = 12;

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// How many steps to make.
    #[arg(long, default_value_t = 100)]
    steps: u64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
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
    let waves = g.placeholder(DType::F32, &[TIME as i64, BATCH as i64, 1]);
    let next = g.placeholder(DType::F32, &[BATCH as i64, 1]);
    let remembered = lstm(&g, &waves);
    let guess = layers::dense(&remembered, 1).output();
    let loss = (guess - &next).square().mean(&[]);
    let optimizer = Adam::new(0.02);
    let gradients = optimizer.compute_gradients(&loss, &Minimize::default())?;
    let (gradients, _) = clip_by_global_norm(&gradients, 1.0)?;
    let train = optimizer.apply_gradients(&gradients, &Minimize::default())?;
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = Session::connect(&g, &target)?;
    session.run(&g.global_variables_initializer())?;
    for step in 1..=args.steps {
        let (seen, after) = data::waves(step, BATCH, TIME)?;
        let (loss, ()) = session.run_fed(&[(&waves, seen), (&next, after)], (&loss, &train))?;
        if step % args.log_steps == 0 {
            println!("step {step} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    Ok(())
}

/// What the cell outputs after the last of `inputs`, `[time, batch, features]`.
fn lstm(g: &Graph, inputs: &Output) -> Output {
    let kernel = g
        .variable("lstm/kernel", &[1 + UNITS, 4 * UNITS])
        .initializer(init::glorot_uniform())
        .build();
    let bias = g
        .variable("lstm/bias", &[4 * UNITS])
        .initializer(init::zeros())
        .build();
    let nothing = g.constant(vec![vec![0.0f32; UNITS as usize]; BATCH]);
    let start = (g.constant(0i32), nothing.clone(), nothing);
    let (_, _, output) = while_loop(
        start,
        |(time, _, _)| time.less(g.constant(TIME as i32)),
        |(time, state, output)| {
            let input = inputs.gather(time);
            let (state, output) = cell(&kernel, &bias, &input, state, output);
            (time + 1, state, output)
        },
    );
    output
}

/// One step of time: what is forgotten, what is new, what is shown.
fn cell(
    kernel: &Variable,
    bias: &Variable,
    input: &Output,
    state: &Output,
    output: &Output,
) -> (Output, Output) {
    let axis = input.graph().constant(1i32);
    let seen = ops::concat_v2(&[input, output], &axis).output();
    let gates = seen.matmul(kernel) + bias;
    let gate = |index: i64| gates.slice(&[0, (index * UNITS) as i32], &[-1, UNITS as i32]);
    let (new, fresh, keep, show) = (gate(0), gate(1), gate(2), gate(3));
    let state = state * (keep + 1.0).sigmoid() + new.sigmoid() * fresh.tanh();
    let output = state.tanh() * show.sigmoid();
    (state, output)
}
