//! `UnicodeScript`: the script that characters belong to.
//!
//! TensorFlow: UnicodeScript(input: int32) -> output: int32, numbers of ICU's enumeration; -1 for what is no code point.

use tensorfleet_graph::example::{ex, ex_ref, i32s};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_tensor::Tensor;

use super::script_table::RUNS;
use super::{LAST, UNICODE};

pub(crate) static OP: OpDef = OpDef {
    name: "UnicodeScript",
    inputs: &["input: int32"],
    outputs: &["output: int32"],
    infer: infer::same_as_first,
    kernels: &[cpu(&[], |_| {
        AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
            let input = ctx.input(0)?;
            let scripts = input.slice::<i32>()?.iter().map(|code| script(*code));
            let out = Tensor::from_vec(input.shape().clone(), scripts.collect())?;
            ctx.set(0, out);
            Ok(())
        })
    })],
    examples: &[
        ex(
            "latin, cyrillic, han and common",
            &[i32s(&[2, 2], &[97, 1041, 20013, 32])],
            &[i32s(&[2, 2], &[25, 8, 17, 0])],
        ),
        ex("one", &[i32s(&[], &[0x3042])], &[i32s(&[], &[20])]),
        ex("nothing", &[i32s(&[0], &[])], &[i32s(&[0], &[])]),
        ex(
            "no code points",
            &[i32s(&[3], &[-1, 0x11_0000, i32::MAX as i64])],
            &[i32s(&[3], &[-1, -1, -1])],
        ),
        ex_ref(
            "first and last of runs",
            &[],
            &[i32s(
                &[10],
                &[
                    0, 64, 65, 90, 91, 0x378, 0xd800, 0xe000, 0x1_f600, 0x10_ffff,
                ],
            )],
        ),
    ],
    ..UNICODE
};

fn script(code: i32) -> i32 {
    let code = match u32::try_from(code) {
        Ok(code) if code <= LAST => code,
        _ => return -1,
    };
    let after = RUNS.partition_point(|run| run >> 8 <= code);
    match RUNS.get(after.wrapping_sub(1)) {
        Some(run) => (run & 0xff) as i32,
        None => -1,
    }
}
