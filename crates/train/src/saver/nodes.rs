//! The nodes that save and restore, as TensorFlow's savers build them.

use std::collections::BTreeMap;

use tensorfleet_client::{DType, Graph, Operation, Output, Variable};
use tensorfleet_kernel::DeviceName;
use tensorfleet_status::Result;

/// One variable and its name in checkpoints.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    pub(super) key: String,
    pub(super) variable: Variable,
}

impl Saved {
    /// Which slice of the tensor called `key` the variable is: empty for all of it, else
    /// `10 4 0,5:0,4` (the whole shape, then offset and length in each dimension).
    fn slice(&self) -> String {
        let Some(part) = self.variable.part() else {
            return String::new();
        };
        let whole: Vec<String> = part.whole_dims.iter().map(i64::to_string).collect();
        let extents = part.offset.iter().zip(self.variable.dims());
        let extents: Vec<String> = extents
            .map(|(offset, len)| format!("{offset},{len}"))
            .collect();
        format!("{} {}", whole.join(" "), extents.join(":"))
    }
}

/// What a saver runs.
#[derive(Clone, Debug)]
pub(super) struct SaverNodes {
    /// Takes the prefix of the checkpoint.
    pub(super) filename: Output,
    /// Gives the prefix once it is written.
    pub(super) saved: Output,
    /// Assigns what was read to all variables.
    pub(super) restore: Operation,
}

/// Adds the nodes. `sharded` lets every task write its own variables, which needs a file system that all of
/// them see; otherwise all values travel to the session's own task.
pub(super) fn build(g: &Graph, items: &[Saved], sharded: bool) -> Result<SaverNodes> {
    let _scope = g.name_scope("save");
    let _free = g.no_control_dependencies();
    let default = g.named_constant("filename/input", "model");
    let with_default = |name: &str, value: &Output| {
        let node = g.op("PlaceholderWithDefault").name(name).input(value);
        node.attr("shape", tensorfleet_client::PartialShape::scalar())
            .output()
    };
    let filename = with_default("filename", &default);
    let filename = with_default("Const", &filename);
    let (saved, restores) = if sharded {
        let groups = by_task(items)?;
        let saved = save_in_shards(g, &filename, &groups);
        let restores = groups.iter().map(|(device, items)| {
            let _there = g.device(device);
            restore(g, &filename, items.iter().copied())
        });
        (saved, restores.collect::<Vec<_>>())
    } else {
        let save = save(g, &filename, items);
        let saved = g
            .op("Identity")
            .name("control_dependency")
            .input(&filename)
            .control(&save)
            .output();
        (saved, vec![restore(g, &filename, items)])
    };
    let restore = g.group("restore_all", restores.iter().flatten());
    g.check()?;
    Ok(SaverNodes {
        filename,
        saved,
        restore,
    })
}

fn names_and_slices(g: &Graph, name: &str, items: &[&Saved]) -> (Output, Output) {
    let _scope = g.name_scope(name);
    let keys: Vec<String> = items.iter().map(|item| item.key.clone()).collect();
    let slices: Vec<String> = items.iter().map(|item| item.slice()).collect();
    (
        g.named_constant("tensor_names", &keys[..]),
        g.named_constant("shape_and_slices", &slices[..]),
    )
}

fn save<'a>(g: &Graph, prefix: &Output, items: impl IntoIterator<Item = &'a Saved>) -> Operation {
    let items: Vec<&Saved> = items.into_iter().collect();
    let (names, slices) = names_and_slices(g, "SaveV2", &items);
    let values: Vec<Output> = items.iter().map(|item| item.variable.read()).collect();
    g.op("SaveV2")
        .input(prefix)
        .input(names)
        .input(slices)
        .list(&values)
        .build()
}

fn restore<'a>(
    g: &Graph,
    prefix: &Output,
    items: impl IntoIterator<Item = &'a Saved>,
) -> Vec<Operation> {
    let items: Vec<&Saved> = items.into_iter().collect();
    let (names, slices) = names_and_slices(g, "RestoreV2", &items);
    let dtypes: Vec<DType> = items.iter().map(|item| item.variable.dtype()).collect();
    let read = g
        .op("RestoreV2")
        .input(prefix)
        .input(names)
        .input(slices)
        .attr("dtypes", dtypes)
        .build();
    let assign = |(index, item): (usize, &&Saved)| item.variable.assign(read.output(index));
    items.iter().enumerate().map(assign).collect()
}

fn save_in_shards(g: &Graph, filename: &Output, groups: &BTreeMap<String, Vec<&Saved>>) -> Output {
    // Object stores cannot move directories: there the parts are written beside the result.
    let on_s3 = g
        .op("StaticRegexFullMatch")
        .input(filename)
        .attr("pattern", "^s3://.*")
        .output();
    let (beside, inside) = (g.constant(".part"), g.constant("_temp/part"));
    let suffix = g
        .op("Select")
        .input(on_s3)
        .input(beside)
        .input(inside)
        .output();
    let parts = g
        .op("StringJoin")
        .list(&[filename.clone(), suffix])
        .output();
    let count = g.named_constant("num_shards", groups.len() as i32);
    let mut prefixes = Vec::with_capacity(groups.len());
    let mut saves = Vec::with_capacity(groups.len());
    for (shard, (device, items)) in groups.iter().enumerate() {
        let _there = g.device(device);
        let shard = g.named_constant("ShardedFilename/shard", shard as i32);
        let prefix = g.op("ShardedFilename").input(&parts).input(shard);
        let prefix = prefix.input(&count).output();
        let save = save(g, &prefix, items.iter().copied());
        prefixes.push(
            g.op("Identity")
                .name("control_dependency")
                .input(&prefix)
                .control(&save)
                .output(),
        );
        saves.push(save);
    }
    let mut all = g
        .op("Pack")
        .name("MergeV2Checkpoints/checkpoint_prefixes")
        .list(&prefixes);
    for save in &saves {
        all = all.control(save);
    }
    let all = all.output();
    let merge = g.op("MergeV2Checkpoints").input(&all).input(filename);
    let merge = merge.attr("delete_old_dirs", true).build();
    let mut saved = g.op("Identity").input(filename).control(&merge);
    for save in &saves {
        saved = saved.control(save);
    }
    saved.output()
}

/// Items by the CPU of the task that has them.
fn by_task(items: &[Saved]) -> Result<BTreeMap<String, Vec<&Saved>>> {
    let mut groups: BTreeMap<String, Vec<&Saved>> = BTreeMap::new();
    for item in items {
        let mut device = DeviceName::parse(&item.variable.device())?.to_task();
        device.device_type = Some("CPU".into());
        device.index = Some(0);
        groups.entry(device.to_string()).or_default().push(item);
    }
    Ok(groups)
}
