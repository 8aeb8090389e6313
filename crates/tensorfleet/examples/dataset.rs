//! An input pipeline: files on disk, read, shuffled, batched and fetched ahead while the model trains.
//!
//! ```sh
//! cargo run --example dataset                       # from a CSV file that it writes first
//! cargo run --example dataset -- --format tfrecord  # from a TFRecord file
//! ```

#![allow(clippy::print_stdout)]

mod data;

use std::fmt::Write as _;
use std::path::Path;

use clap::{Parser, ValueEnum};
use tensorfleet::input::{Csv, Dataset, Element, ExampleSpec, write_examples};
use tensorfleet::train::{Adam, Optimizer, export_meta_graph};
use tensorfleet::{Code, DType, Graph, Result, Session, Status, Tensor, init};

/// The columns of the files.
const COLUMNS: [&str; 5] = ["a", "b", "c", "d", "y"];

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Csv,
    Tfrecord,
}

#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Args {
    /// What to read.
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
    /// How often to go over the data.
    #[arg(long, default_value_t = 8)]
    epochs: u64,
    /// How many steps lie between two lines.
    #[arg(long, default_value_t = 20)]
    log_steps: usize,
    /// A server to train on; in this process by default.
    #[arg(long, default_value = "")]
    target: String,
    /// Writes the graph into this file first, for TensorFlow's `import_meta_graph`.
    #[arg(long)]
    graph: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let path = std::env::temp_dir().join(format!("tensorfleet-dataset-{}", std::process::id()));
    let trained = read(&args, &path).and_then(|dataset| train(&args, dataset));
    // It may not be there if it could not be written.
    let _ = std::fs::remove_file(&path);
    trained
}

/// Writes the file; the pipeline that reads it.
fn read(args: &Args, path: &Path) -> Result<Dataset> {
    let file = path.to_string_lossy().into_owned();
    let rows = (0..512).map(row).collect::<Result<Vec<_>>>()?;
    let dataset = match args.format {
        Format::Csv => {
            let mut text = COLUMNS.join(",");
            for row in &rows {
                let fields: Vec<String> = row.iter().map(f32::to_string).collect();
                let _ = write!(text, "\n{}", fields.join(","));
            }
            std::fs::write(path, text + "\n")
                .map_err(|error| Status::new(Code::Unavailable, format!("{file}: {error}")))?;
            let csv = COLUMNS.iter();
            let csv = csv.fold(Csv::new(), |csv, name| csv.column(*name, DType::F32));
            Dataset::from_csv(file, csv)?
        }
        Format::Tfrecord => {
            let examples = rows.iter().map(|row| {
                let values = row.iter().map(|value| Tensor::scalar(*value));
                Ok(Element::named(COLUMNS.into_iter().zip(values)))
            });
            write_examples(&file, examples)?;
            let spec = COLUMNS.iter();
            let spec = spec.fold(ExampleSpec::new(), |spec, name| {
                spec.fixed(*name, DType::F32, &[])
            });
            Dataset::from_examples(file, spec)?
        }
    };
    Ok(dataset
        .shuffle(128, 7)
        .repeat(args.epochs)
        .batch(32, true)
        .prefetch(2))
}

/// One record: a point and its value.
fn row(index: u64) -> Result<Vec<f32>> {
    let (x, y) = data::line(index, 1)?;
    Ok([x.slice::<f32>()?, y.slice::<f32>()?].concat())
}

fn train(args: &Args, dataset: Dataset) -> Result<()> {
    let g = Graph::new();
    let columns = COLUMNS.map(|name| g.named_placeholder(name, DType::F32, &[-1]));
    let [features @ .., y] = &columns;
    let x = tensorfleet::ops::pack(features).axis(1).output();
    let w = g.variable("w", &[4, 1]).initializer(init::zeros()).build();
    let b = g.variable("b", &[1]).initializer(init::zeros()).build();
    let loss = (x.matmul(&w) + &b - y.expand_dims(1)).square().mean(&[]);
    let train = Adam::new(0.1).minimize(&loss)?;
    if let Some(path) = &args.graph {
        export_meta_graph(&g, path)?;
    }

    let session = Session::connect(&g, &args.target)?;
    session.run(&g.global_variables_initializer())?;
    for (step, batch) in dataset.iter().enumerate() {
        let feeds = batch?.feeds(COLUMNS.into_iter().zip(&columns))?;
        let (loss, ()) = session.run_fed(&feeds, (&loss, &train))?;
        let step = step + 1;
        if step % args.log_steps == 0 {
            println!("step {step} loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    Ok(())
}
