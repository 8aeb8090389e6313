//! Embeddings too large for one machine: tables cut into parts over two parameter servers, of which each step
//! fetches and updates only the rows it needs.
//!
//! ```sh
//! cargo run --example embeddings                                   # a cluster in this process
//! cargo run --example embeddings -- --target grpc://localhost:2224 # a worker of a cluster with 2 ps
//! ```

#![allow(clippy::print_stdout)]

mod data;

use clap::Parser;
use tensorfleet::train::{Adagrad, Minimize, Optimizer, ReplicaDeviceSetter, export_meta_graph};
use tensorfleet::{
    DType, Graph, LocalCluster, Output, PartitionedVariable, Result, Session, Strategy,
    embedding_lookup, fixed_size_partitioner, init, losses,
};

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// How many steps to make.
    #[arg(long, default_value_t = 120)]
    steps: u64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 10)]
    log_steps: u64,
    /// A worker to train on; one in this process by default.
    #[arg(long)]
    target: Option<String>,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (_cluster, target) = match args.target {
        Some(target) => (None, target),
        None => {
            let cluster = LocalCluster::start(&[("ps", 2), ("worker", 1)])?;
            let target = cluster.target("worker", 0)?.to_owned();
            (Some(cluster), target)
        }
    };

    let g = Graph::new();
    g.set_random_seed(7);
    let _devices = g.device_function(ReplicaDeviceSetter::new().ps_tasks(2).build()?);
    let users = g.placeholder(DType::I64, &[-1]);
    let items = g.placeholder(DType::I64, &[-1]);
    let clicked = g.placeholder(DType::F32, &[-1, 1]);
    let user_table = table(&g, "users", data::USERS);
    let item_table = table(&g, "items", data::ITEMS);
    // How alike user and item are says whether they click.
    let alike = rows(&user_table, &users) * rows(&item_table, &items);
    let logits = alike.sum(&[1]).expand_dims(1);
    let loss = losses::sigmoid_cross_entropy(&clicked, &logits).output();
    let train = Adagrad::new(1.0).minimize_with(&loss, &Minimize::default())?;
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    for part in [&user_table, &item_table]
        .iter()
        .flat_map(|table| table.parts())
    {
        println!("{} {:?} on {}", part.name(), part.dims(), part.device());
    }
    let session = Session::connect(&g, &target)?;
    session.run(&g.global_variables_initializer())?;
    for step in 1..=args.steps {
        let batch = data::clicks(step, 128)?;
        let feeds = [
            (&users, batch.users),
            (&items, batch.items),
            (&clicked, batch.clicked),
        ];
        let (loss, ()) = session.run_fed(&feeds, (&loss, &train))?;
        if step % args.log_steps == 0 {
            println!("step {step} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    Ok(())
}

/// A table in two parts, one for each parameter server.
fn table(g: &Graph, name: &str, rows: i64) -> PartitionedVariable {
    g.get_variable(name, &[rows, 8])
        .initializer(init::normal(0.0, 0.5))
        .partitioner(fixed_size_partitioner(2, 0))
        .build()
}

fn rows(table: &PartitionedVariable, ids: &Output) -> Output {
    embedding_lookup(table, ids)
        .strategy(Strategy::Div)
        .output()
}
