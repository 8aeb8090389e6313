//! `SaveV2`, `RestoreV2`, `MergeV2Checkpoints`: checkpoints in TensorFlow's bundle format.
//!
//! TensorFlow: SaveV2(prefix, tensor_names, shape_and_slices, tensors...), RestoreV2(prefix, tensor_names,
//! shape_and_slices) -> tensors..., MergeV2Checkpoints(checkpoint_prefixes, destination_prefix).

use tensorfleet_checkpoint::bundle::{MergeOptions, RestoreItem, SaveItem, merge, restore, save};
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::TString;

use super::{text, text_input};

const STATE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("files are not differentiated"),
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

// Scripts can only show failures: where files may be written, only a test can say.
pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SaveV2",
        inputs: &[
            "prefix: string",
            "tensor_names: string",
            "shape_and_slices: string",
            "tensors: dtypes",
        ],
        attrs: &["dtypes: list(type) >= 1"],
        kernels: &[cpu(&[], build_save)],
        scripts: &[script(
            "names and tensors must match",
            "p = string[]{unused}\nn = string[2]{a, b}\ns = string[2]{''}\nx = float[]{1}\nsave = SaveV2(p, n, s, [x])",
            &["run save fails INVALID_ARGUMENT "],
        )],
        ..STATE
    },
    OpDef {
        name: "RestoreV2",
        inputs: &[
            "prefix: string",
            "tensor_names: string",
            "shape_and_slices: string",
        ],
        outputs: &["tensors: dtypes"],
        attrs: &["dtypes: list(type) >= 1"],
        kernels: &[cpu(&[], build_restore)],
        scripts: &[script(
            "missing file",
            "p = string[]{no/such/checkpoint}\nn = string[1]{a}\ns = string[1]{}\nr = RestoreV2(p, n, s) {dtypes=[float]}",
            &["fetch r fails NOT_FOUND no/such/checkpoint"],
        )],
        ..STATE
    },
    OpDef {
        name: "MergeV2Checkpoints",
        inputs: &["checkpoint_prefixes: string", "destination_prefix: string"],
        attrs: &[
            "delete_old_dirs: bool = true",
            "allow_missing_files: bool = false",
        ],
        kernels: &[cpu(&[], build_merge)],
        scripts: &[script(
            "missing parts",
            "p = string[1]{no/such/part}\nd = string[]{whole}\nm = MergeV2Checkpoints(p, d)",
            &["run m fails INVALID_ARGUMENT no/such/part"],
        )],
        ..STATE
    },
];

/// Names and slice specifications of `count` tensors.
struct Wanted {
    prefix: String,
    names: Vec<TString>,
    slices: Vec<String>,
}

fn wanted(ctx: &KernelCtx<'_>, count: usize) -> Result<Wanted> {
    let (names, slices) = (ctx.input(1)?, ctx.input(2)?);
    for (name, tensor) in [("tensor_names", names), ("shape_and_slices", slices)] {
        if tensor.rank() != 1 {
            return Err(invalid_argument!(
                "Input {name} should be 1-D, got shape {}",
                tensor.shape()
            ));
        }
        if tensor.elements() != count {
            return Err(invalid_argument!(
                "Got {} {name} but {count} tensors.",
                tensor.elements()
            ));
        }
    }
    Ok(Wanted {
        prefix: text_input(ctx, 0)?,
        names: names.slice::<TString>()?.to_vec(),
        slices: slices
            .slice::<TString>()?
            .iter()
            .map(text)
            .collect::<Result<_>>()?,
    })
}

fn build_save(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let count = ctx.num_inputs().saturating_sub(3);
        let wanted = wanted(ctx, count)?;
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            items.push(SaveItem {
                name: &wanted.names[index],
                shape_and_slice: &wanted.slices[index],
                tensor: ctx.input(3 + index)?,
            });
        }
        save(&wanted.prefix, &items)
    })
}

fn build_restore(node: &NodeInfo) -> Result<AnyKernel> {
    let dtypes = node.attrs.dtypes("dtypes")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let wanted = wanted(ctx, dtypes.len())?;
        let items: Vec<RestoreItem<'_>> = (0..dtypes.len())
            .map(|index| RestoreItem {
                name: &wanted.names[index],
                shape_and_slice: &wanted.slices[index],
                dtype: dtypes[index],
            })
            .collect();
        for (index, tensor) in restore(&wanted.prefix, &items)?.into_iter().enumerate() {
            ctx.set(index, tensor);
        }
        Ok(())
    })
}

fn build_merge(node: &NodeInfo) -> Result<AnyKernel> {
    let (delete_old_dirs, allow_missing_files) = (
        node.attrs.bool("delete_old_dirs")?,
        node.attrs.bool("allow_missing_files")?,
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let prefixes = ctx
            .input(0)?
            .slice::<TString>()?
            .iter()
            .map(text)
            .collect::<Result<Vec<String>>>()?;
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        merge(
            &prefixes,
            &text_input(ctx, 1)?,
            MergeOptions {
                delete_old_dirs,
                allow_missing_files,
            },
        )
    })
}
