//! `tensorfleet ops`: what is supported.

use std::io::Write;

use anyhow::Result;
use serde_json::{Map, Value, json};
use tensorfleet_graph::OpDef;

use crate::args::OpsArgs;
use crate::output;

pub(crate) fn run(args: &OpsArgs, out: &mut dyn Write) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let mut ops: Vec<&OpDef> = tensorfleet_ops::all()
        .filter(|def| def.name.to_lowercase().contains(&filter))
        .collect();
    ops.sort_by_key(|def| def.name);
    if args.json {
        return output::json(
            out,
            &json!({"ops": ops.iter().map(|def| describe(def)).collect::<Vec<_>>()}),
        );
    }
    let rows: Vec<Vec<String>> = ops
        .iter()
        .map(|def| {
            let gradient = if def.gradient.is_rule() {
                "gradient"
            } else {
                ""
            };
            vec![def.name.to_owned(), gradient.to_owned(), types(def)]
        })
        .collect();
    output::table(out, &rows)?;
    writeln!(out, "\n{} ops", ops.len())?;
    Ok(())
}

/// `T: float, double; Tidx: int32` for the CPU kernels.
fn types(def: &OpDef) -> String {
    let lists = def
        .kernels
        .iter()
        .flat_map(|kernel| kernel.types)
        .map(|(attr, dtypes)| {
            let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
            format!("{attr}: {}", names.join(", "))
        });
    lists.collect::<Vec<_>>().join("; ")
}

fn describe(def: &OpDef) -> Value {
    let kernels: Vec<Value> = def
        .kernels
        .iter()
        .map(|kernel| {
            let types: Map<String, Value> = kernel
                .types
                .iter()
                .map(|(attr, dtypes)| {
                    (
                        (*attr).to_owned(),
                        json!(dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>()),
                    )
                })
                .collect();
            json!({"device": kernel.device.name(), "types": types})
        })
        .collect();
    json!({
        "name": def.name,
        "inputs": def.inputs,
        "outputs": def.outputs,
        "attrs": def.attrs,
        "stateful": def.stateful,
        "gradient": def.gradient.is_rule(),
        "kernels": kernels,
    })
}
