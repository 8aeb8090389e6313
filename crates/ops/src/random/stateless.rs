//! Stateless random ops: the same seed gives the same numbers, always.
//!
//! TensorFlow: the first forms take (shape, seed: Tseed[2]); the V2 forms take (shape, key: uint64, counter:
//! uint64, alg: int32). Of the algorithms only Philox is known here (1, or 3 for automatic).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::DType;

use super::distribution::{Distribution, fill_range};
use super::keys::seed_pair;
use super::shape_input;
use crate::types::{FLOATS, INDEX};

const FULL: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

const BY_SEED: OpDef = OpDef {
    inputs: &["shape: T", "seed: Tseed"],
    outputs: &["output: dtype"],
    attrs: &[
        "dtype: {half, bfloat16, float, double} = DT_FLOAT",
        "T: {int32, int64} = DT_INT32",
        "Tseed: {int32, int64} = DT_INT64",
    ],
    infer: infer::shape_in::<0>,
    gradient: Gradient::Stop("random numbers depend on nothing"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const BY_KEY: OpDef = OpDef {
    inputs: &[
        "shape: Tshape",
        "key: uint64",
        "counter: uint64",
        "alg: int32",
    ],
    attrs: &[
        "dtype: {half, bfloat16, float, double} = DT_FLOAT",
        "Tshape: {int32, int64} = DT_INT32",
    ],
    ..BY_SEED
};

macro_rules! seeded {
    ($op:literal, $types:literal) => {
        &[script(
            "seeded",
            concat!(
                "s = int32[2]{3, 5}\nk = int64[2]{5, -7}\nk4 = int32[2]{1, 2}\na = ",
                $op,
                "(s, k) {dtype=",
                $types,
                "}\nb = ",
                $op,
                "(s, k4) {dtype=",
                $types,
                "}"
            ),
            &["fetch a, b => ?"],
        )]
    };
}

macro_rules! keyed {
    ($op:literal, $type:literal) => {
        &[script(
            "key and counter",
            concat!("s = int32[2]{3, 5}\nk = uint64[1]{123456789}\nc = uint64[2]{3, 1}\nalg = int32[]{1}\na = ", $op, "(s, k, c, alg) {dtype=", $type, "}"),
            &["fetch a => ?"],
        )]
    };
}

const KEYED_INT: &[Script] = &[script(
    "key and counter",
    "s = int32[1]{9}\nk = uint64[1]{42}\nc = uint64[2]{0, 0}\nalg = int32[]{1}\nlo = int32[]{-5}\nhi = int32[]{50}\na = StatelessRandomUniformIntV2(s, k, c, alg, lo, hi)",
    &["fetch a => ?"],
)];

pub(crate) static OPS: [OpDef; 10] = [
    OpDef {
        name: "StatelessRandomUniform",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Uniform, by_seed)
        })],
        scripts: seeded!("StatelessRandomUniform", "float"),
        ..BY_SEED
    },
    OpDef {
        name: "StatelessRandomNormal",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Normal, by_seed)
        })],
        scripts: seeded!("StatelessRandomNormal", "double"),
        ..BY_SEED
    },
    OpDef {
        name: "StatelessTruncatedNormal",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::TruncatedNormal, by_seed)
        })],
        scripts: seeded!("StatelessTruncatedNormal", "float"),
        ..BY_SEED
    },
    OpDef {
        name: "StatelessRandomUniformFullInt",
        attrs: &[
            "dtype: {int32, int64, uint32, uint64} = DT_UINT64",
            "T: {int32, int64} = DT_INT32",
            "Tseed: {int32, int64, uint32, uint64} = DT_INT64",
        ],
        kernels: &[cpu(&[("dtype", FULL), ("Tseed", INDEX)], |node| {
            draw(node, Distribution::FullInt, by_seed)
        })],
        scripts: seeded!("StatelessRandomUniformFullInt", "uint64"),
        ..BY_SEED
    },
    OpDef {
        name: "StatelessRandomUniformInt",
        inputs: &["shape: T", "seed: Tseed", "minval: dtype", "maxval: dtype"],
        attrs: &[
            "dtype: {int32, int64}",
            "T: {int32, int64}",
            "Tseed: {int32, int64} = DT_INT64",
        ],
        kernels: &[cpu(&[("dtype", INDEX)], |node| draw_int(node, 2, by_seed))],
        scripts: &[script(
            "seeded",
            "s = int32[1]{9}\nk = int64[2]{5, 7}\nlo = int64[]{-3}\nhi = int64[]{1000}\na = StatelessRandomUniformInt(s, k, lo, hi)",
            &["fetch a => ?"],
        )],
        ..BY_SEED
    },
    OpDef {
        name: "StatelessRandomUniformV2",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Uniform, by_key)
        })],
        scripts: keyed!("StatelessRandomUniformV2", "float"),
        ..BY_KEY
    },
    OpDef {
        name: "StatelessRandomNormalV2",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Normal, by_key)
        })],
        scripts: keyed!("StatelessRandomNormalV2", "float"),
        ..BY_KEY
    },
    OpDef {
        name: "StatelessTruncatedNormalV2",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::TruncatedNormal, by_key)
        })],
        scripts: keyed!("StatelessTruncatedNormalV2", "double"),
        ..BY_KEY
    },
    OpDef {
        name: "StatelessRandomUniformFullIntV2",
        attrs: &[
            "dtype: {int32, int64, uint32, uint64} = DT_UINT64",
            "Tshape: {int32, int64} = DT_INT32",
        ],
        kernels: &[cpu(&[("dtype", FULL)], |node| {
            draw(node, Distribution::FullInt, by_key)
        })],
        scripts: keyed!("StatelessRandomUniformFullIntV2", "uint32"),
        ..BY_KEY
    },
    OpDef {
        name: "StatelessRandomUniformIntV2",
        inputs: &[
            "shape: Tshape",
            "key: uint64",
            "counter: uint64",
            "alg: int32",
            "minval: dtype",
            "maxval: dtype",
        ],
        attrs: &[
            "dtype: {int32, int64, uint32, uint64}",
            "Tshape: {int32, int64} = DT_INT32",
        ],
        kernels: &[cpu(&[("dtype", INDEX)], |node| draw_int(node, 4, by_key))],
        scripts: KEYED_INT,
        ..BY_KEY
    },
];

/// Where the numbers start, from the inputs after the shape.
type Place = fn(&KernelCtx<'_>) -> Result<Philox>;

pub(super) fn by_seed(ctx: &KernelCtx<'_>) -> Result<Philox> {
    Ok(Philox::stateless(seed_pair(ctx.input(1)?)?))
}

pub(super) fn by_key(ctx: &KernelCtx<'_>) -> Result<Philox> {
    let alg = ctx.scalar::<i32>(3)?;
    if !matches!(alg, 1 | 3) {
        return Err(invalid_argument!(
            "Unsupported algorithm id: {alg}, only Philox (1) is known"
        ));
    }
    let key = ctx.input(1)?.slice::<u64>()?;
    let counter = ctx.input(2)?.slice::<u64>()?;
    match (key, counter) {
        ([key], [low, high, ..]) => Ok(Philox::from_key_counter(*key, [*low, *high])),
        _ => Err(invalid_argument!(
            "key must have shape [1] and counter at least 2 elements, got {} and {}",
            key.len(),
            counter.len()
        )),
    }
}

fn draw(node: &NodeInfo, distribution: Distribution, place: Place) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    let fill = distribution.fill(dtype)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
        fill(ctx.par(), place(ctx)?, &mut out)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn draw_int(node: &NodeInfo, first_bound: usize, place: Place) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
        fill_range(
            ctx.par(),
            place(ctx)?,
            ctx.input(first_bound)?,
            ctx.input(first_bound + 1)?,
            &mut out,
        )?;
        ctx.set(0, out);
        Ok(())
    })
}
