//! Whether a checkpoint fits a graph, before anything is changed.

use tensorfleet_checkpoint::bundle::BundleReader;
use tensorfleet_checkpoint::fs;
use tensorfleet_client::{PartialShape, Variable};
use tensorfleet_status::{Code, Result, Status, invalid_argument, not_found};

use super::nodes::Saved;

/// How many names an error lists.
const MANY: usize = 10;

fn open(prefix: &str) -> Result<BundleReader> {
    BundleReader::open(prefix).map_err(|status| match status.code() {
        Code::NotFound => not_found!(
            "there is no checkpoint {prefix} ({prefix}.index is missing); latest_checkpoint finds the newest of a directory"
        ),
        code => Status::new(
            code,
            format!(
                "checkpoint {prefix} cannot be read: {}; take an older one of the same directory",
                status.message()
            ),
        ),
    })
}

/// Refuses a checkpoint that lacks a variable or has it in another shape or dtype. Passes what this process
/// cannot see: it may lie on the disk of another task.
pub(super) fn check(prefix: &str, items: &[Saved]) -> Result<()> {
    let dir = super::parent(prefix);
    if !fs::for_path(prefix)?.exists(dir) {
        return Ok(());
    }
    let reader = open(prefix)?;
    let mut missing = Vec::new();
    for item in items {
        let variable = &item.variable;
        if !reader.contains(item.key.as_bytes())? {
            missing.push(item.key.as_str());
            continue;
        }
        let (dtype, shape) = reader.dtype_and_shape(item.key.as_bytes())?;
        let wanted = whole_dims(variable);
        if dtype != variable.dtype() || shape.dims() != wanted {
            return Err(invalid_argument!(
                "variable {} is {} {} in checkpoint {prefix}, but {} {} in the graph; restore with the graph that wrote the checkpoint, or leave the variable out of the saver",
                item.key,
                dtype.name(),
                PartialShape::new(shape.dims()),
                variable.dtype().name(),
                PartialShape::new(wanted)
            ));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let listed = missing.iter().take(MANY).copied().collect::<Vec<_>>();
    Err(not_found!(
        "checkpoint {prefix} has no {} ({} of {} variables are missing); restore only what it has with SaverBuilder::found_in, or rename with named_variables",
        listed.join(", "),
        missing.len(),
        items.len()
    ))
}

/// Those variables that the checkpoint has with the same shape and dtype.
pub(super) fn found_in(
    prefix: &str,
    variables: Vec<(String, Variable)>,
) -> Result<Vec<(String, Variable)>> {
    let reader = open(prefix)?;
    let mut found = Vec::with_capacity(variables.len());
    for (key, variable) in variables {
        if !reader.contains(key.as_bytes())? {
            continue;
        }
        let (dtype, shape) = reader.dtype_and_shape(key.as_bytes())?;
        let wanted = whole_dims(&variable);
        if dtype == variable.dtype() && shape.dims() == wanted {
            found.push((key, variable));
        }
    }
    Ok(found)
}

/// The shape that a checkpoint has the variable in: that of the whole for a part.
fn whole_dims(variable: &Variable) -> &[i64] {
    let part = variable.part();
    part.map_or(variable.dims(), |part| &part.whole_dims)
}
