//! `Multinomial`, `StatelessMultinomial`: draw classes by unnormalised log-probabilities.
//!
//! TensorFlow: Multinomial(logits: T[batch, classes], num_samples: int32) -> output: output_dtype[batch, num_samples]; the
//! stateless one takes a seed as third input.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{Philox, fill_multinomial, multinomial_outputs};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::Stream;
use super::keys::seed_pair;
use crate::by_float;
use crate::types::{FLOATS, INDEX};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Multinomial",
        inputs: &["logits: T", "num_samples: int32"],
        outputs: &["output: output_dtype"],
        attrs: &[
            "seed: int = 0",
            "seed2: int = 0",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
            "output_dtype: {int32, int64} = DT_INT64",
        ],
        stateful: true,
        gradient: Gradient::Stop("classes are integers"),
        kernels: &[cpu(&[("T", FLOATS), ("output_dtype", INDEX)], build)],
        exactness: Exactness::Bits,
        scripts: &[
            script(
                "two rows",
                "l = float[2,3]{0, 1, 2, 5, 0, 0}\nn = int32[]{7}\nm = Multinomial(l, n) {seed=5, seed2=6}",
                &["fetch m => ?", "fetch m => ?"],
            ),
            script(
                "no classes",
                "l = float[2,0]{}\nn = int32[]{7}\nm = Multinomial(l, n) {seed=5}",
                &["fetch m fails INVALID_ARGUMENT "],
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "StatelessMultinomial",
        inputs: &["logits: T", "num_samples: int32", "seed: Tseed"],
        outputs: &["output: output_dtype"],
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
            "Tseed: {int32, int64} = DT_INT64",
            "output_dtype: {int32, int64} = DT_INT64",
        ],
        gradient: Gradient::Stop("classes are integers"),
        kernels: &[cpu(&[("T", FLOATS), ("output_dtype", INDEX)], |node| {
            let output_dtype = node.attrs.dtype("output_dtype")?;
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                let philox = Philox::stateless(seed_pair(ctx.input(2)?)?);
                run(ctx, output_dtype, |_| philox)
            })
        })],
        exactness: Exactness::Bits,
        scripts: &[script(
            "two rows",
            "l = float[2,3]{0, 1, 2, 5, 0, 0}
         d = double[1,2]{0, 0}
         n = int32[]{7}
         k = int64[2]{5, -7}
         m = StatelessMultinomial(l, n, k)
         o = StatelessMultinomial(d, n, k) {output_dtype=int32}
         less = int32[]{-1}
         bad = StatelessMultinomial(l, less, k)",
            &[
                "fetch m, o => ?",
                "fetch bad fails INVALID_ARGUMENT num_samples should be non-negative, got -1",
            ],
        )],
        ..OpDef::BLANK
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let output_dtype = node.attrs.dtype("output_dtype")?;
    let stream = Stream::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        run(ctx, output_dtype, |outputs| stream.reserve(outputs))
    })
}

fn run(
    ctx: &mut KernelCtx<'_>,
    output_dtype: DType,
    philox: impl FnOnce(usize) -> Philox,
) -> Result<()> {
    let logits = ctx.input(0)?;
    let samples = ctx.int(1)?;
    if logits.rank() != 2 {
        return Err(invalid_argument!(
            "logits should be a matrix, got shape {}",
            logits.shape()
        ));
    }
    if samples < 0 {
        return Err(invalid_argument!(
            "num_samples should be non-negative, got {samples}"
        ));
    }
    let (rows, classes) = (logits.shape().dim(0), logits.shape().dim(1));
    if rows > 0 && classes == 0 {
        return Err(invalid_argument!(
            "num_classes should be positive, got {classes}"
        ));
    }
    let mut out = ctx.allocate(output_dtype, Shape::new(&[rows as i64, samples])?)?;
    if !out.is_empty() {
        let philox = philox(multinomial_outputs(rows, samples as usize));
        let dtype = logits.dtype();
        by_float!(dtype, T => match output_dtype {
            DType::I32 => draw::<T, i32>(ctx, philox, logits, classes, &mut out),
            _ => draw::<T, i64>(ctx, philox, logits, classes, &mut out),
        }, else => Err(internal!("logits of {dtype} are not drawn from")))?;
    }
    ctx.set(0, out);
    Ok(())
}

fn draw<T, I>(
    ctx: &KernelCtx<'_>,
    philox: Philox,
    logits: &Tensor,
    classes: usize,
    out: &mut Tensor,
) -> Result<()>
where
    T: tensorfleet_tensor::Element + Copy + Into<f64>,
    I: tensorfleet_tensor::Element + From<i32>,
{
    if i32::try_from(classes).is_err() {
        return Err(invalid_argument!(
            "num_classes should be less than INT_MAX, got {classes}"
        ));
    }
    let samples = out.shape().dim(1);
    fill_multinomial(
        ctx.par(),
        philox,
        logits.slice::<T>()?,
        classes,
        samples,
        out.slice_mut::<I>()?,
    );
    Ok(())
}
