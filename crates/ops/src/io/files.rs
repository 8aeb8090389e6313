//! `ReadFile`, `WriteFile`: whole files.
//!
//! TensorFlow: ReadFile(filename) -> contents; WriteFile(filename, contents), which makes missing directories.

use std::path::Path;

use tensorfleet_checkpoint::fs::io_status;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::{Bytes, Tensor};

use super::text_input;

const FILE: OpDef = OpDef {
    gradient: Gradient::Stop("files are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
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

fn build_read(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = text_input(ctx, 0)?;
        let bytes = std::fs::read(&name).map_err(|error| io_status(&name, &error))?;
        ctx.set(0, Tensor::string(bytes));
        Ok(())
    })
}

fn build_write(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let name = text_input(ctx, 0)?;
        let contents = ctx.scalar::<Bytes>(1)?;
        if let Some(dir) = Path::new(&name).parent() {
            std::fs::create_dir_all(dir).map_err(|error| io_status(&name, &error))?;
        }
        std::fs::write(&name, contents).map_err(|error| io_status(&name, &error))
    })
}
