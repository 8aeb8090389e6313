//! `MatchingFiles`, `ReadFile`, `WriteFile`: files by pattern, and whole files.
//!
//! TensorFlow: MatchingFiles(pattern) -> filenames, sorted, for one pattern or a vector of them; ReadFile(filename) ->
//! contents; WriteFile(filename, contents), which makes missing directories.

use std::path::Path;

use tensorfleet_checkpoint::fs::{self, io_status};
use tensorfleet_checkpoint::packed::read_file;
use tensorfleet_graph::example::{ex, ex_err, script, strs};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{PartialShape, TString, Tensor};

use super::{text, text_input};

const FILE: OpDef = OpDef {
    gradient: Gradient::Stop("files are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "MatchingFiles",
        inputs: &["pattern: string"],
        outputs: &["filenames: string"],
        infer: infer_vector,
        kernels: &[cpu(&[], build_matching)],
        cost: Cost::Expensive,
        examples: &[
            ex(
                "no such files",
                &[strs(&[2], &["no/such/*", "no/such/file"])],
                &[strs(&[0], &[])],
            ),
            ex("no patterns", &[strs(&[0], &[])], &[strs(&[0], &[])]),
            ex(
                "the root is a file, too",
                &[strs(&[], &["/de[v]"])],
                &[strs(&[1], &["/dev"])],
            ),
            ex_err(
                "a matrix",
                &[],
                &[strs(&[1, 1], &["x"])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FILE
    },
    OpDef {
        name: "ReadFile",
        inputs: &["filename: string"],
        outputs: &["contents: string"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_read)],
        scripts: &[script(
            "missing",
            "f = string[]{no/such/file}\nr = ReadFile(f)",
            &["fetch r fails NOT_FOUND no/such/file"],
        )],
        ..FILE
    },
    OpDef {
        name: "WriteFile",
        inputs: &["filename: string", "contents: string"],
        stateful: true,
        kernels: &[cpu(&[], build_write)],
        scripts: &[script(
            "two contents",
            "f = string[]{unused}\nc = string[2]{a, b}\nw = WriteFile(f, c)",
            &["run w fails INVALID_ARGUMENT "],
        )],
        ..FILE
    },
];

fn infer_vector(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::of_rank(1));
    Ok(())
}

fn build_matching(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let patterns = ctx.input(0)?;
        ensure!(
            patterns.rank() <= 1,
            invalid_argument,
            "Input patterns tensor must be scalar or vector, but had shape: {}",
            patterns.shape()
        );
        let mut found = Vec::new();
        for pattern in patterns.slice::<TString>()? {
            let pattern = text(pattern)?;
            let files = fs::for_path(&pattern)?.glob(&pattern)?;
            found.extend(files.into_iter().map(TString::from));
        }
        found.sort_unstable();
        ctx.set(0, Tensor::vector(&found));
        Ok(())
    })
}

fn build_read(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = text_input(ctx, 0)?;
        ctx.set(0, Tensor::string(read_file(&name)?));
        Ok(())
    })
}

fn build_write(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = text_input(ctx, 0)?;
        let contents = ctx.scalar::<TString>(1)?;
        if let Some(dir) = Path::new(&name).parent() {
            std::fs::create_dir_all(dir).map_err(|error| io_status(&name, &error))?;
        }
        std::fs::write(&name, contents).map_err(|error| io_status(&name, &error))
    })
}
