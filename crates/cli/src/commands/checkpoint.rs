//! `tensorfleet checkpoint`: list, show, verify.

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use tensorfleet_checkpoint::bundle::{BundleReader, ListedTensor, index_file_name, verify};
use tensorfleet_checkpoint::fs::for_path;
use tensorfleet_checkpoint::state::{STATE_FILE, named_checkpoint};

use crate::args::CheckpointCommand;
use crate::{output, values};

pub(crate) fn run(command: &CheckpointCommand, out: &mut dyn Write) -> Result<()> {
    match command {
        CheckpointCommand::List { checkpoint, json } => {
            list(&prefix(checkpoint, *json, out)?, *json, out)
        }
        CheckpointCommand::Show {
            checkpoint,
            names,
            limit,
            json,
        } => show(&prefix(checkpoint, *json, out)?, names, *limit, *json, out),
        CheckpointCommand::Verify { checkpoint, json } => {
            check(&prefix(checkpoint, *json, out)?, *json, out)
        }
    }
}

/// The prefix of the checkpoint that is meant: what was given, or the latest of a directory, which people are told.
fn prefix(given: &str, as_json: bool, out: &mut dyn Write) -> Result<String> {
    let fs = for_path(given)?;
    if fs.exists(&index_file_name(given)) {
        return Ok(given.to_owned());
    }
    if !fs.stat(given).is_ok_and(|stat| stat.is_dir) {
        bail!(
            "there is no checkpoint {given} ({} is missing): name the prefix of its files, such as dir/model.ckpt-100, \
             or their directory",
            index_file_name(given)
        );
    }
    let Some(latest) = named_checkpoint(given)? else {
        let names = fs.list(given)?;
        let prefixes = names.iter().filter_map(|name| name.strip_suffix(".index"));
        let prefixes: Vec<&str> = prefixes.collect();
        bail!(
            "{given} is a directory without a file \"{STATE_FILE}\", which would name its latest checkpoint: {}",
            match prefixes.as_slice() {
                [] => "there are none in it".to_owned(),
                prefixes => format!("name one of {}", prefixes.join(", ")),
            }
        );
    };
    if !as_json {
        writeln!(out, "{latest}:")?;
    }
    Ok(latest)
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
            &json!({"prefix": prefix, "tensors": report.tensors, "bytes": report.bytes, "damage": damage}),
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
