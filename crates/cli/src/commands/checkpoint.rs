//! `tensorfleet checkpoint`: list, show, verify.

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use tensorfleet_checkpoint::bundle::{BundleReader, ListedTensor, verify};

use crate::args::CheckpointCommand;
use crate::{output, values};

pub(crate) fn run(command: &CheckpointCommand, out: &mut dyn Write) -> Result<()> {
    match command {
        CheckpointCommand::List { prefix, json } => list(prefix, *json, out),
        CheckpointCommand::Show {
            prefix,
            names,
            limit,
            json,
        } => show(prefix, names, *limit, *json, out),
        CheckpointCommand::Verify { prefix, json } => check(prefix, *json, out),
    }
}

fn list(prefix: &str, as_json: bool, out: &mut dyn Write) -> Result<()> {
    let reader = BundleReader::open(prefix)?;
    let tensors = reader.list()?;
    if as_json {
        let tensors: Vec<Value> = tensors.iter().map(describe).collect();
        return output::json(
            out,
            &json!({"prefix": prefix, "shards": reader.num_shards(), "tensors": tensors}),
        );
    }
    let rows: Vec<Vec<String>> = tensors
        .iter()
        .map(|tensor| {
            let slices = if tensor.slices.is_empty() {
                String::new()
            } else {
                format!("{} slices", tensor.slices.len())
            };
            vec![
                tensor.name(),
                format!("{}{}", tensor.dtype, tensor.shape),
                output::bytes(tensor.size),
                format!("shard {}", tensor.shard),
                slices,
            ]
        })
        .collect();
    output::table(out, &rows)?;
    let total: u64 = tensors.iter().map(|tensor| tensor.size).sum();
    writeln!(
        out,
        "\n{} tensors, {} in {} data files",
        tensors.len(),
        output::bytes(total),
        reader.num_shards()
    )?;
    Ok(())
}

fn describe(tensor: &ListedTensor) -> Value {
    let slices: Vec<Value> = tensor
        .slices
        .iter()
        .map(|slice| json!({"slice": slice.slice.to_string(), "shard": slice.shard, "offset": slice.offset, "size": slice.size}))
        .collect();
    json!({
        "name": tensor.name(),
        "dtype": tensor.dtype.name(),
        "shape": tensor.shape.to_vec(),
        "shard": tensor.shard,
        "offset": tensor.offset,
        "size": tensor.size,
        "crc32c": tensor.crc32c,
        "slices": slices,
    })
}

fn show(
    prefix: &str,
    names: &[String],
    limit: usize,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let reader = BundleReader::open(prefix)?;
    let names = if names.is_empty() {
        reader.list()?.iter().map(ListedTensor::name).collect()
    } else {
        names.to_vec()
    };
    let mut all = Map::new();
    for name in &names {
        let tensor = reader.read(name.as_bytes())?;
        if as_json {
            all.insert(name.clone(), json!({"dtype": tensor.dtype().name(), "shape": tensor.shape().to_vec(), "value": values::to_json(&tensor)?}));
        } else {
            writeln!(out, "{name} = {}", output::line(&tensor, limit))?;
        }
    }
    if as_json {
        output::json(out, &Value::Object(all))
    } else {
        Ok(())
    }
}

fn check(prefix: &str, as_json: bool, out: &mut dyn Write) -> Result<()> {
    let report = verify(&BundleReader::open(prefix)?);
    let name = |key: &Option<Vec<u8>>| {
        key.as_ref().map_or_else(
            || "(index)".to_owned(),
            |key| String::from_utf8_lossy(key).into_owned(),
        )
    };
    if as_json {
        let damage: Vec<Value> = report
            .damage
            .iter()
            .map(|damage| json!({"name": name(&damage.key), "error": damage.status.to_string()}))
            .collect();
        output::json(
            out,
            &json!({"tensors": report.tensors, "bytes": report.bytes, "damage": damage}),
        )?;
    } else {
        for damage in &report.damage {
            writeln!(out, "{}: {}", name(&damage.key), damage.status)?;
        }
        writeln!(
            out,
            "{} tensors, {} checked, {} damaged",
            report.tensors,
            output::bytes(report.bytes),
            report.damage.len()
        )?;
    }
    if !report.damage.is_empty() {
        bail!("checkpoint {prefix} is damaged");
    }
    Ok(())
}
