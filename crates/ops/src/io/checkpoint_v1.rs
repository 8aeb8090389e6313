//! `Save`, `SaveSlices`, `Restore`, `RestoreSlice`: checkpoints in TensorFlow's first format, one file each.
//!
//! TensorFlow: Save(filename: string, tensor_names: string, data: T); SaveSlices(filename, tensor_names, shapes_and_slices:
//! string, data: T); Restore(file_pattern: string, tensor_name: string) -> tensor: dt; RestoreSlice(file_pattern, tensor_name,
//! shape_and_slice: string) -> tensor: dt, with attr preferred_shard: int = -1, where to look first, which changes nothing
//! here.

use tensorfleet_checkpoint::bundle::{RestoreItem, SaveItem};
use tensorfleet_checkpoint::v1::{restore, save};
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::TString;

use super::text;

const STATE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("files are not differentiated"),
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    // Scripts can only show failures: where files may be written, only a test can say.
    scripts: &[script(
        "numbers that do not match, files that are missing",
        "f = string[]{unused}
         two = string[2]{a, b}
         one = string[1]{a}
         x = float[]{1}
         names = Save(f, two, [x])
         slices = SaveSlices(f, one, two, [x])
         files = Save(two, one, [x])
         whole = string[1]{''}
         scalar = string[]{a}
         r = Restore(f, scalar) {dt=float}
         s = RestoreSlice(f, scalar, scalar) {dt=float}
         many = Restore(two, scalar) {dt=float}",
        &[
            "run names fails INVALID_ARGUMENT ",
            "run slices fails INVALID_ARGUMENT ",
            "run files fails INVALID_ARGUMENT ",
            "fetch r fails NOT_FOUND Unsuccessful TensorSliceReader constructor: Failed to find any matching files for unused",
            "fetch s fails NOT_FOUND Unsuccessful TensorSliceReader constructor: Failed to find any matching files for unused",
            "fetch many fails INVALID_ARGUMENT ",
        ],
    )],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "Restore",
        inputs: &["file_pattern: string", "tensor_name: string"],
        outputs: &["tensor: dt"],
        attrs: &["dt: type", "preferred_shard: int = -1"],
        kernels: &[cpu(&[], |node| build_restore(node, false))],
        ..STATE
    },
    OpDef {
        name: "RestoreSlice",
        inputs: &[
            "file_pattern: string",
            "tensor_name: string",
            "shape_and_slice: string",
        ],
        outputs: &["tensor: dt"],
        attrs: &["dt: type", "preferred_shard: int = -1"],
        kernels: &[cpu(&[], |node| build_restore(node, true))],
        ..STATE
    },
    OpDef {
        name: "Save",
        inputs: &["filename: string", "tensor_names: string", "data: T"],
        attrs: &["T: list(type) >= 1"],
        kernels: &[cpu(&[], |_| build_save(false))],
        ..STATE
    },
    OpDef {
        name: "SaveSlices",
        inputs: &[
            "filename: string",
            "tensor_names: string",
            "shapes_and_slices: string",
            "data: T",
        ],
        attrs: &["T: list(type) >= 1"],
        kernels: &[cpu(&[], |_| build_save(true))],
        ..STATE
    },
];

/// The one file name or pattern in input 0.
fn file(ctx: &KernelCtx<'_>, input: &str) -> Result<String> {
    let names = ctx.input(0)?.slice::<TString>()?;
    match names {
        [name] => text(name),
        _ => Err(invalid_argument!(
            "Input 0 ({input}) must be a string scalar; got a tensor of {} elements",
            names.len()
        )),
    }
}

/// Specifications of slices as texts.
fn slices(ctx: &KernelCtx<'_>) -> Result<Vec<String>> {
    ctx.input(2)?.slice::<TString>()?.iter().map(text).collect()
}

fn build_save(has_slices: bool) -> Result<AnyKernel> {
    let first = if has_slices { 3 } else { 2 };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let path = file(ctx, "filename")?;
        let names = ctx.input(1)?.slice::<TString>()?;
        let slices = match has_slices {
            true => slices(ctx)?,
            false => vec![String::new(); names.len()],
        };
        ensure!(
            slices.len() == names.len(),
            invalid_argument,
            "Expected {} elements for the tensor shapes and slices but got {}",
            names.len(),
            slices.len()
        );
        ensure!(
            ctx.num_inputs() == names.len() + first,
            invalid_argument,
            "Expected totally {} inputs as input #1 (which is a string tensor of saved names) contains {} names, but received {} inputs",
            names.len() + first,
            names.len(),
            ctx.num_inputs()
        );
        let mut items = Vec::with_capacity(names.len());
        for (index, (name, slice)) in names.iter().zip(&slices).enumerate() {
            items.push(SaveItem {
                name,
                shape_and_slice: slice,
                tensor: ctx.input(first + index)?,
            });
        }
        save(&path, &items)
    })
}

fn build_restore(node: &NodeInfo, has_slice: bool) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dt")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let pattern = file(ctx, "file_pattern")?;
        let names = ctx.input(1)?.slice::<TString>()?;
        ensure!(
            !names.is_empty(),
            invalid_argument,
            "Input 1 (file_pattern) must be a have at least 1 elements"
        );
        let slices = if has_slice { slices(ctx)? } else { Vec::new() };
        let items = names.iter().take(1).map(|name| RestoreItem {
            name,
            shape_and_slice: slices.first().map_or("", String::as_str),
            dtype,
        });
        let items: Vec<RestoreItem<'_>> = items.collect();
        for tensor in restore(&pattern, &items)? {
            ctx.set(0, tensor);
        }
        Ok(())
    })
}
