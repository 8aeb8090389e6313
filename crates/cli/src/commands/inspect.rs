//! `tensorfleet inspect`: what is in a graph, and what of it cannot run here.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use tensorfleet_graph::{Graph, Registry};
use tensorfleet_proto::{GraphDef, NodeDef};

use crate::args::InspectArgs;
use crate::{graph_file, output};

/// What a graph holds.
struct Report {
    nodes: usize,
    /// Ops that are not known or do not run here, and how many nodes have them.
    unsupported: BTreeMap<String, usize>,
    ops: BTreeMap<String, usize>,
    devices: BTreeMap<String, usize>,
    /// Functions with their number of nodes.
    functions: BTreeMap<String, usize>,
    /// Why the graph would be refused, if it would.
    problem: Option<String>,
}

pub(crate) fn run(args: &InspectArgs, out: &mut dyn Write) -> Result<()> {
    let def = graph_file::read(&args.graph)?;
    let registry = tensorfleet_ops::registry()?;
    let mut report = examine(&def, &registry);
    if report.unsupported.is_empty() {
        report.problem = Graph::import(registry, &def)
            .err()
            .map(|status| status.to_string());
    }
    if args.json {
        print_json(args, &def, &report, out)
    } else {
        print_text(args, &def, &report, out)
    }
}

fn examine(def: &GraphDef, registry: &Registry) -> Report {
    let library = def.library.clone().unwrap_or_default();
    let functions: BTreeMap<String, usize> = library
        .function
        .iter()
        .map(|function| {
            (
                function
                    .signature
                    .as_ref()
                    .map_or_else(String::new, |signature| signature.name.clone()),
                function.node_def.len(),
            )
        })
        .collect();
    let mut report = Report {
        nodes: def.node.len(),
        unsupported: BTreeMap::new(),
        ops: BTreeMap::new(),
        devices: BTreeMap::new(),
        functions,
        problem: None,
    };
    let bodies = library
        .function
        .iter()
        .flat_map(|function| &function.node_def);
    for node in def.node.iter().chain(bodies) {
        *report.ops.entry(node.op.clone()).or_default() += 1;
        *report.devices.entry(node.device.clone()).or_default() += 1;
        let known = registry.get(&node.op).is_some() || report.functions.contains_key(&node.op);
        if !known || tensorfleet_ops::refused().any(|def| def.name == node.op) {
            *report.unsupported.entry(node.op.clone()).or_default() += 1;
        }
    }
    report
}

fn print_text(
    args: &InspectArgs,
    def: &GraphDef,
    report: &Report,
    out: &mut dyn Write,
) -> Result<()> {
    let versions = def.versions.clone().unwrap_or_default();
    writeln!(
        out,
        "{}: {} nodes, {} functions, producer version {}",
        args.graph.display(),
        report.nodes,
        report.functions.len(),
        versions.producer
    )?;
    if report.unsupported.is_empty() {
        writeln!(out, "all ops are supported")?;
    } else {
        writeln!(out, "\nunsupported ops:")?;
        print_counts(out, &report.unsupported)?;
    }
    if let Some(problem) = &report.problem {
        writeln!(out, "\nthe graph would be refused: {problem}")?;
    }
    writeln!(out, "\nops (nodes, function bodies included):")?;
    print_counts(out, &report.ops)?;
    if !report.functions.is_empty() {
        writeln!(out, "\nfunctions (nodes):")?;
        print_counts(out, &report.functions)?;
    }
    writeln!(out, "\ndevices (nodes):")?;
    let devices = report
        .devices
        .iter()
        .map(|(name, count)| {
            (
                if name.is_empty() {
                    "(any)".to_owned()
                } else {
                    name.clone()
                },
                *count,
            )
        })
        .collect();
    print_counts(out, &devices)?;
    if args.nodes {
        writeln!(out, "\nnodes:")?;
        let rows: Vec<Vec<String>> = def
            .node
            .iter()
            .map(|node| vec![node.name.clone(), node.op.clone(), node.input.join(", ")])
            .collect();
        output::table(out, &rows)?;
    }
    Ok(())
}

fn print_counts(out: &mut dyn Write, counts: &BTreeMap<String, usize>) -> Result<()> {
    let rows: Vec<Vec<String>> = counts
        .iter()
        .map(|(name, count)| vec![format!("  {name}"), count.to_string()])
        .collect();
    Ok(output::table(out, &rows)?)
}

fn print_json(
    args: &InspectArgs,
    def: &GraphDef,
    report: &Report,
    out: &mut dyn Write,
) -> Result<()> {
    let mut all = json!({
        "nodes": report.nodes,
        "producer": def.versions.as_ref().map_or(0, |versions| versions.producer),
        "unsupported": report.unsupported,
        "problem": report.problem,
        "ops": report.ops,
        "functions": report.functions,
        "devices": report.devices,
    });
    if args.nodes {
        let node = |node: &NodeDef| json!({"name": node.name, "op": node.op, "inputs": node.input, "device": node.device});
        all["node_list"] = Value::Array(def.node.iter().map(node).collect());
    }
    output::json(out, &all)
}
