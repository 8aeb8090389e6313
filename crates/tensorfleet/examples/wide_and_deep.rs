//! Wide & deep: a linear model over crossed features, which remembers, trained by FTRL, and a network over
//! embeddings, which generalises, trained by Adagrad; one loss.
//!
//! ```sh
//! cargo run --example wide_and_deep                                   # a cluster in this process
//! cargo run --example wide_and_deep -- --target grpc://localhost:2223 # a worker of a cluster with 1 ps
//! ```

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::train::{
    Adagrad, Ftrl, Minimize, Optimizer, ReplicaDeviceSetter, export_meta_graph,
    get_or_create_global_step,
};
use tensorfleet::{
    DType, Graph, LocalCluster, Output, Result, Reuse, Session, Variable, init, layers, losses,
};

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// How many steps to make.
    #[arg(long, default_value_t = 100)]
    steps: i64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
    log_steps: i64,
    /// A worker to train on; one in this process by default.
    #[arg(long)]
    target: Option<String>,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

/// What is known of who was shown what.
struct Features {
    users: Output,
    items: Output,
    ages: Output,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (_cluster, target) = match args.target {
        Some(target) => (None, target),
        None => {
            let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)])?;
            let target = cluster.target("worker", 0)?.to_owned();
            (Some(cluster), target)
        }
    };

    let g = Graph::new();
    g.set_random_seed(7);
    let _devices = g.device_function(ReplicaDeviceSetter::new().ps_tasks(1).build()?);
    let step = get_or_create_global_step(&g)?;
    let features = Features {
        users: g.placeholder(DType::I64, &[-1]),
        items: g.placeholder(DType::I64, &[-1]),
        ages: g.placeholder(DType::F32, &[-1, 1]),
    };
    let clicked = g.placeholder(DType::F32, &[-1, 1]);
    let wide_logits = g
        .variable_scope("wide", Reuse::Never)
        .run(|| wide(&g, &features));
    let deep_logits = g
        .variable_scope("deep", Reuse::Never)
        .run(|| deep(&g, &features));
    let logits = wide_logits + deep_logits;
    let loss = losses::sigmoid_cross_entropy(&clicked, &logits).output();

    // Each part has its own optimizer; the step counts once for both.
    let wide = Minimize::default().variables(&variables_in(&g, "wide/"));
    let deep = Minimize::default().variables(&variables_in(&g, "deep/"));
    let wide = Ftrl::new(5.0)
        .regularization(0.001, 0.0)
        .minimize_with(&loss, &wide)?;
    let deep = Adagrad::new(0.5).minimize_with(&loss, &deep)?;
    let train = g
        .control_dependencies([&wide, &deep])
        .run(|| step.assign_add(g.constant(1i64)));
    let at = g.control_dependencies([&train]).run(|| step.read());
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = Session::connect(&g, &target)?;
    session.run(&g.global_variables_initializer())?;
    for batch in 1..=args.steps {
        let batch = data::clicks(batch as u64, 128)?;
        let feeds = [
            (&features.users, batch.users),
            (&features.items, batch.items),
            (&features.ages, batch.ages),
            (&clicked, batch.clicked),
        ];
        let (loss, at) = session.run_fed(&feeds, (&loss, &at))?;
        let at = at.to_scalar::<i64>()?;
        if at % args.log_steps == 0 {
            println!("step {at} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    Ok(())
}

/// A weight for each user with each item, and a bias.
fn wide(g: &Graph, features: &Features) -> Output {
    let crossed = &features.users * data::ITEMS as i32 + &features.items;
    let weights = g
        .get_variable("crossed", &[data::USERS * data::ITEMS, 1])
        .initializer(init::zeros())
        .build();
    let bias = g
        .get_variable("bias", &[1])
        .initializer(init::zeros())
        .build();
    weights.gather(&crossed) + &bias
}

/// A network over embeddings and the age.
fn deep(g: &Graph, features: &Features) -> Output {
    let table = |name: &str, rows: i64| {
        let table = g.get_variable(name, &[rows, 4]);
        table.initializer(init::normal(0.0, 0.5)).build()
    };
    let inputs = [
        table("users", data::USERS).gather(&features.users),
        table("items", data::ITEMS).gather(&features.items),
        features.ages.clone(),
    ];
    let joined = tensorfleet::ops::concat_v2(&inputs, g.constant(1i32)).output();
    let hidden = layers::dense(&joined, 16).activation(Output::relu).output();
    layers::dense(&hidden, 1).output()
}

fn variables_in(g: &Graph, scope: &str) -> Vec<Variable> {
    let all = g.trainable_variables().into_iter();
    all.filter(|variable| variable.name().starts_with(scope))
        .collect()
}
