//! `tensorfleet run`: a graph in this process.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use tensorfleet_session::{RunMetadata, RunOptions, Session, SessionOptions};
use tensorfleet_tensor::Tensor;

use crate::args::RunArgs;
use crate::output::{self, Misuse};
use crate::{graph_file, npy, values};

/// How many elements of a fetched tensor are printed; `--json` and `--out` give all.
const SHOWN_ELEMENTS: usize = 64;

/// How many nodes `--trace` shows.
const SHOWN_NODES: usize = 15;

pub(crate) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<()> {
    if args.fetches.is_empty() && args.targets.is_empty() && args.inits.is_empty() {
        bail!(Misuse(
            "nothing to do: name tensors with --fetch NODE:PORT or nodes with --target NODE"
                .to_owned()
        ));
    }
    let session = Session::new(SessionOptions {
        threads: args.threads,
        optimize: !args.no_optimize,
        ..SessionOptions::default()
    })?;
    session
        .extend(&graph_file::read(&args.graph)?)
        .with_context(|| args.graph.display().to_string())?;
    let feeds = parse_feeds(&session, &args.feeds)?;
    let feeds: Vec<(&str, Tensor)> = feeds
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.clone()))
        .collect();
    let options = options(args)?;
    for init in &args.inits {
        session
            .run_with(&options, &feeds, &[], &[init.as_str()])
            .with_context(|| format!("--init {init}"))?;
    }
    let fetches: Vec<&str> = args.fetches.iter().map(String::as_str).collect();
    let targets: Vec<&str> = args.targets.iter().map(String::as_str).collect();
    if fetches.is_empty() && targets.is_empty() {
        return Ok(());
    }
    let mut last = (Vec::new(), RunMetadata::default());
    for _ in 0..args.repeat {
        last = session.run_with(&options, &feeds, &fetches, &targets)?;
    }
    let (tensors, metadata) = last;
    if let Some(dir) = &args.out {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        for (name, tensor) in fetches.iter().zip(&tensors) {
            npy::write(
                &dir.join(format!("{}.npy", name.replace(['/', ':'], "_"))),
                tensor,
            )?;
        }
    }
    if args.json {
        print_json(out, &fetches, &tensors, &metadata)
    } else {
        print_text(out, &fetches, &tensors, &metadata)
    }
}

fn options(args: &RunArgs) -> Result<RunOptions> {
    let timeout = match args.timeout {
        None => None,
        Some(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) if !timeout.is_zero() => Some(timeout),
            _ => bail!(Misuse(format!(
                "--timeout {seconds}: a positive number of seconds was expected"
            ))),
        },
    };
    Ok(RunOptions {
        timeout,
        trace: args.trace,
    })
}

fn parse_feeds(session: &Session, texts: &[String]) -> Result<Vec<(String, Tensor)>> {
    let graph = session.graph();
    let mut feeds = Vec::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=') else {
            bail!(Misuse(format!("--feed {text}: NAME=VALUE was expected")));
        };
        let output = graph
            .find_output(name)
            .with_context(|| format!("--feed {name}: the graph has no such tensor"))?;
        let dtype = graph.output_type(output).context("no type")?.dtype;
        let tensor = values::parse_feed(value, dtype).with_context(|| format!("--feed {name}"))?;
        feeds.push((name.to_owned(), tensor));
    }
    Ok(feeds)
}

fn print_text(
    out: &mut dyn Write,
    fetches: &[&str],
    tensors: &[Tensor],
    metadata: &RunMetadata,
) -> Result<()> {
    for (name, tensor) in fetches.iter().zip(tensors) {
        writeln!(out, "{name} = {}", output::line(tensor, SHOWN_ELEMENTS))?;
    }
    if !metadata.nodes.is_empty() {
        let mut nodes: Vec<_> = metadata.nodes.iter().collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.end.saturating_sub(node.start)));
        writeln!(out, "\n{} node runs, the slowest:", nodes.len())?;
        let rows: Vec<Vec<String>> = nodes
            .iter()
            .take(SHOWN_NODES)
            .map(|node| {
                vec![
                    format!("{:?}", node.end.saturating_sub(node.start)),
                    node.op.clone(),
                    node.node.clone(),
                ]
            })
            .collect();
        output::table(out, &rows)?;
    }
    Ok(())
}

fn print_json(
    out: &mut dyn Write,
    fetches: &[&str],
    tensors: &[Tensor],
    metadata: &RunMetadata,
) -> Result<()> {
    let mut fetched = Map::new();
    for (name, tensor) in fetches.iter().zip(tensors) {
        let shape: Vec<i64> = tensor.shape().to_vec();
        fetched.insert((*name).to_owned(), json!({"dtype": tensor.dtype().name(), "shape": shape, "value": values::to_json(tensor)?}));
    }
    let nodes: Vec<Value> = metadata
        .nodes
        .iter()
        .map(|node| json!({"node": node.node, "op": node.op, "start_ns": node.start.as_nanos() as u64, "end_ns": node.end.as_nanos() as u64, "thread": node.thread}))
        .collect();
    let mut all = json!({"fetches": fetched});
    if !nodes.is_empty() {
        all["trace"] = Value::Array(nodes);
    }
    output::json(out, &all)
}
