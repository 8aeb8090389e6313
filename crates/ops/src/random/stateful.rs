//! `RandomUniform`, `RandomStandardNormal`, `TruncatedNormal`, `RandomUniformInt`: streams that go on from run to run.
//!
//! TensorFlow: (shape: T) -> output: dtype with seed, seed2. Both seeds zero: a new stream per kernel.
//! Otherwise the numbers are TensorFlow's, bit for bit, also those of later runs of the same session.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::distribution::{Distribution, fill_range};
use super::{Stream, shape_input};
use crate::types::{FLOATS, INDEX};

const SEEDED: OpDef = OpDef {
    inputs: &["shape: T"],
    outputs: &["output: dtype"],
    attrs: &[
        "seed: int = 0",
        "seed2: int = 0",
        "dtype: {half, bfloat16, float, double}",
        "T: {int32, int64}",
    ],
    stateful: true,
    infer: infer::shape_in::<0>,
    gradient: Gradient::Stop("random numbers depend on nothing"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

macro_rules! scripts {
    ($op:literal) => {
        &[
            script(
                "seeded, two runs",
                concat!(
                    "s = int32[2]{3, 5}\nf = ",
                    $op,
                    "(s) {seed=7, seed2=11, dtype=float}\nd = ",
                    $op,
                    "(s) {seed=7, seed2=11, dtype=double}"
                ),
                &["fetch f, d => ?", "fetch f, d => ?"],
            ),
            script(
                "small types",
                concat!(
                    "s = int64[1]{37}\nh = ",
                    $op,
                    "(s) {seed=1, dtype=half}\nb = ",
                    $op,
                    "(s) {seed2=1, dtype=bfloat16}"
                ),
                &["fetch h, b => ?"],
            ),
            script(
                "no elements",
                concat!("s = int32[2]{0, 5}\nf = ", $op, "(s) {seed=7, dtype=float}"),
                &["fetch f => float[0,5]{}"],
            ),
            script(
                "negative dimension",
                concat!("s = int32[1]{-1}\nf = ", $op, "(s) {seed=7, dtype=float}"),
                &["fetch f fails INVALID_ARGUMENT "],
            ),
        ]
    };
}

const UNIFORM: &[Script] = scripts!("RandomUniform");
const NORMAL: &[Script] = scripts!("RandomStandardNormal");
const TRUNCATED: &[Script] = scripts!("TruncatedNormal");

pub(crate) static OPS: [OpDef; 4] = [
    OpDef { name: "RandomUniform", kernels: &[cpu(&[("dtype", FLOATS)], |node| draw(node, Distribution::Uniform))], scripts: UNIFORM, ..SEEDED },
    OpDef {
        name: "RandomStandardNormal",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| draw(node, Distribution::Normal))],
        scripts: NORMAL,
        ..SEEDED
    },
    OpDef {
        name: "TruncatedNormal",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| draw(node, Distribution::TruncatedNormal))],
        scripts: TRUNCATED,
        ..SEEDED
    },
    OpDef {
        name: "RandomUniformInt",
        inputs: &["shape: T", "minval: Tout", "maxval: Tout"],
        outputs: &["output: Tout"],
        attrs: &["seed: int = 0", "seed2: int = 0", "Tout: {int32, int64}", "T: {int32, int64}"],
        kernels: &[cpu(&[("Tout", INDEX)], draw_int)],
        scripts: &[
            script(
                "seeded, two runs",
                "s = int32[1]{9}\nlo = int32[]{-3}\nhi = int32[]{1000}\nlo8 = int64[]{0}\nhi8 = int64[]{1000000000000}
                 i = RandomUniformInt(s, lo, hi) {seed=3}\nl = RandomUniformInt(s, lo8, hi8) {seed2=4}",
                &["fetch i, l => ?", "fetch i, l => ?"],
            ),
            script(
                "a number is no shape",
                "s = int32[]{2}\nlo = int32[]{0}\nhi = int32[]{3}\ni = RandomUniformInt(s, lo, hi) {seed=3}",
                &["fetch i fails INVALID_ARGUMENT shape must be a vector of {int32,int64}, got shape []"],
            ),
            script(
                "empty range",
                "s = int32[1]{2}\nlo = int32[]{3}\nhi = int32[]{3}\ni = RandomUniformInt(s, lo, hi) {seed=3}",
                &["fetch i fails INVALID_ARGUMENT Need minval < maxval"],
            ),
        ],
        ..SEEDED
    },
];

fn draw(node: &NodeInfo, distribution: Distribution) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    let fill = distribution.fill(dtype)?;
    let stream = Stream::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
        fill(ctx.par(), stream.reserve(out.elements()), &mut out)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn draw_int(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("Tout")?;
    let stream = Stream::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
        fill_range(
            ctx.par(),
            stream.reserve(out.elements()),
            ctx.input(1)?,
            ctx.input(2)?,
            &mut out,
        )?;
        ctx.set(0, out);
        Ok(())
    })
}
