//! `QuantizeV2`, `Dequantize`: floats stored as integers with a range, and back.
//!
//! TensorFlow: QuantizeV2(input: float, min_range: float, max_range: float) -> (output: T, output_min: float, output_max: float);
//! Dequantize(input: T, min_range: float, max_range: float) -> output: dtype. Modes are MIN_COMBINED, MIN_FIRST and SCALED; with an
//! axis (not for MIN_FIRST) there is a range for each place of that dimension.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::map::map;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{DType, Shape, Tensor, bf16};

use super::{Channels, clamp};
use crate::types::QUANTIZED;

const NO_GRADIENT: Gradient = Gradient::None("TensorFlow has none");

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "QuantizeV2",
        inputs: &["input: float", "min_range: float", "max_range: float"],
        outputs: &["output: T", "output_min: float", "output_max: float"],
        attrs: &[
            "T: {qint8, quint8, qint32, qint16, quint16}",
            "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
            "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
            "narrow_range: bool = false",
            "axis: int = -1",
            "ensure_minimum_range: float = 0.01",
        ],
        infer: |ctx| {
            ctx.set(0, ctx.input(0).clone());
            Ok(())
        },
        gradient: NO_GRADIENT,
        kernels: &[cpu(&[("T", QUANTIZED)], build)],
        exactness: Exactness::Rounding,
        scripts: &[
            script(
                "all modes",
                "x = float[6]{-1.5, -0.3, 0, 0.49, 1.2, 7}
                 lo = float[]{-1}
                 hi = float[]{3}
                 a = QuantizeV2(x, lo, hi) {T=quint8}
                 b = QuantizeV2(x, lo, hi) {T=qint8}
                 c = QuantizeV2(x, lo, hi) {T=quint8, mode='MIN_FIRST'}
                 d = QuantizeV2(x, lo, hi) {T=qint16, mode='MIN_FIRST'}
                 e = QuantizeV2(x, lo, hi) {T=qint8, mode='SCALED'}
                 f = QuantizeV2(x, lo, hi) {T=qint16, mode='SCALED', round_mode='HALF_TO_EVEN', narrow_range=true}
                 a8 = Bitcast(a) {type=uint8}
                 b8 = Bitcast(b) {type=int8}
                 c8 = Bitcast(c) {type=uint8}
                 d16 = Bitcast(d) {type=int16}
                 e8 = Bitcast(e) {type=int8}
                 f16 = Bitcast(f) {type=int16}",
                &[
                    "fetch a8, a:1, a:2, b8, b:1, b:2 => ?",
                    "fetch c8, c:1, c:2, d16, d:1, d:2 => ?",
                    "fetch e8, e:1, e:2, f16, f:1, f:2 => ?",
                ],
            ),
            script(
                "by rows, and what is refused",
                "x = float[2,3]{-1.5, -0.3, 0, 0.49, 1.2, 7}
                 lo = float[2]{-1, 0}
                 hi = float[2]{3, 5}
                 a = QuantizeV2(x, lo, hi) {T=quint8, axis=0}
                 b = QuantizeV2(x, lo, hi) {T=qint8, axis=0, mode='SCALED'}
                 a8 = Bitcast(a) {type=uint8}
                 b8 = Bitcast(b) {type=int8}
                 one = float[]{1}
                 zero = float[]{0}
                 turned = QuantizeV2(x, one, zero) {T=quint8}
                 first = QuantizeV2(x, lo, hi) {T=quint8, axis=0, mode='MIN_FIRST'}
                 many = QuantizeV2(x, lo, hi) {T=quint8}
                 even = QuantizeV2(x, zero, one) {T=quint8, round_mode='HALF_TO_EVEN'}",
                &[
                    "fetch a8, a:1, a:2, b8, b:1, b:2 => ?",
                    "fetch turned:1 fails INVALID_ARGUMENT input_max_range must be larger than input_min_range.",
                    "fetch first:1 fails UNIMPLEMENTED ",
                    "fetch many:1 fails INVALID_ARGUMENT ",
                    "fetch even:1 fails INVALID_ARGUMENT Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'",
                ],
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "Dequantize",
        inputs: &["input: T", "min_range: float", "max_range: float"],
        outputs: &["output: dtype"],
        attrs: &[
            "T: {qint8, quint8, qint32, qint16, quint16}",
            "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
            "narrow_range: bool = false",
            "axis: int = -1",
            "dtype: {bfloat16, float} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: NO_GRADIENT,
        kernels: &[cpu(
            &[("T", QUANTIZED), ("dtype", &[DType::F32, DType::BF16])],
            build_back,
        )],
        exactness: Exactness::Rounding,
        scripts: &[script(
            "all modes",
            "u = uint8[2,2]{0, 3, 128, 255}
             i = int8[2,2]{-128, -3, 0, 127}
             w = int16[2,2]{-32768, -3, 0, 32767}
             qu = Bitcast(u) {type=quint8}
             qi = Bitcast(i) {type=qint8}
             qw = Bitcast(w) {type=qint16}
             lo = float[]{-1}
             hi = float[]{3}
             los = float[2]{-1, 0}
             his = float[2]{3, 5}
             a = Dequantize(qu, lo, hi)
             b = Dequantize(qi, lo, hi)
             c = Dequantize(qu, lo, hi) {mode='MIN_FIRST'}
             d = Dequantize(qw, lo, hi) {mode='SCALED'}
             e = Dequantize(qi, los, his) {axis=1}
             f = Dequantize(qi, los, his) {axis=0, mode='SCALED', narrow_range=true}
             g = Dequantize(qu, lo, hi) {dtype=bfloat16}
             many = Dequantize(qu, los, his)
             first = Dequantize(qu, los, his) {mode='MIN_FIRST', axis=0}",
            &[
                "fetch a, b, c, d, e, f, g => ?",
                "fetch many fails INVALID_ARGUMENT input_min_tensor must have as many elements as input on the dequantization axis",
                "fetch first fails UNIMPLEMENTED ",
            ],
        )],
        ..OpDef::BLANK
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Combined,
    First,
    Scaled,
}

/// The attributes and the integers of the type.
#[derive(Clone, Copy)]
struct Plan {
    mode: Mode,
    axis: i64,
    is_narrow: bool,
    lowest: i64,
    highest: i64,
    bits: i32,
}

impl Plan {
    fn of(attrs: &Attrs) -> Result<Plan> {
        let (lowest, highest, bits) = match attrs.dtype("T")? {
            DType::QI8 => (i64::from(i8::MIN), i64::from(i8::MAX), 8),
            DType::QU8 => (0, i64::from(u8::MAX), 8),
            DType::QI16 => (i64::from(i16::MIN), i64::from(i16::MAX), 16),
            DType::QU16 => (0, i64::from(u16::MAX), 16),
            DType::QI32 => (i64::from(i32::MIN), i64::from(i32::MAX), 32),
            other => return Err(internal!("{other} is not quantized")),
        };
        let mode = match attrs.str("mode")? {
            "MIN_COMBINED" => Mode::Combined,
            "MIN_FIRST" => Mode::First,
            _ => Mode::Scaled,
        };
        Ok(Plan {
            mode,
            axis: attrs.int("axis")?.max(-1),
            is_narrow: attrs.bool("narrow_range")?,
            lowest,
            highest,
            bits,
        })
    }

    /// What is added to unsigned numbers to make signed ones.
    fn half(&self) -> f32 {
        match self.lowest {
            0 => 0.0,
            lowest => ((self.highest - lowest + 1) / 2) as f32,
        }
    }

    fn lowest_scaled(&self) -> i64 {
        self.lowest + i64::from(self.is_narrow)
    }

    fn steps(&self) -> f64 {
        2f64.powi(self.bits) - 1.0
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (attrs, plan) = (&node.attrs, Plan::of(&node.attrs)?);
    let (dtype, least) = (attrs.dtype("T")?, attrs.float("ensure_minimum_range")?);
    let to_even = attrs.str("round_mode")? == "HALF_TO_EVEN";
    ensure!(
        !to_even || plan.mode == Mode::Scaled,
        invalid_argument,
        "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{}'.",
        attrs.str("mode")?
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let (mins, maxs) = ranges(ctx, input, plan.axis)?;
        let channels = Channels::of(input, plan.axis)?;
        ensure!(
            channels.count == 1 || plan.mode != Mode::First,
            unimplemented,
            "MIN_FIRST mode is not implemented for Quantize with axis != -1."
        );
        let values = input.slice::<f32>()?;
        let mut out = ctx.allocate(dtype, input.shape().clone())?;
        let mut ends = [Vec::new(), Vec::new()];
        for channel in 0..channels.count {
            let (min, max) = (mins[channel], maxs[channel]);
            ensure!(
                max >= min || max.is_nan() || min.is_nan(),
                invalid_argument,
                "input_max_range must be larger than input_min_range."
            );
            let least = min.abs().max(max.abs()).max(1.0) * least;
            let low = min.min(0.0);
            let high = max.max(low + least).max(0.0);
            let quantizer = plan.quantizer(low, high, to_even);
            for run in channels.runs(channel) {
                quantizer.write(ctx.par(), &values[run.clone()], &mut out, run)?;
            }
            ends[0].push(quantizer.min);
            ends[1].push(quantizer.max);
        }
        let shape = match channels.count {
            1 => Shape::scalar(),
            _ => ctx.input(1)?.shape().clone(),
        };
        let [mins, maxs] = ends;
        ctx.set(1, Tensor::from_vec(shape.clone(), mins)?);
        ctx.set(2, Tensor::from_vec(shape, maxs)?);
        ctx.set(0, out);
        Ok(())
    })
}

/// The ends of each range, which must be as many as places of the axis.
fn ranges<'a>(ctx: &'a KernelCtx<'_>, input: &Tensor, axis: i64) -> Result<(&'a [f32], &'a [f32])> {
    let bounds = [("min_range", ctx.input(1)?), ("max_range", ctx.input(2)?)];
    if axis == -1 {
        for (name, bound) in bounds {
            ensure!(
                bound.elements() == 1,
                invalid_argument,
                "If axis is not specified, {name} must contain a single float element, but it contains {} elements",
                bound.elements()
            );
        }
    } else {
        ensure!(
            (input.rank() as i64) > axis,
            invalid_argument,
            "Axis is on a zero-based index, so its value must always be less than number of input's dims, but given axis value was {axis} and input's dims was {}",
            input.rank()
        );
        let places = input.shape().dim(axis as usize);
        const WANTED: &str = "must be a 1-D tensor whose size matches the axis dimension of the input and output tensors";
        for (name, bound) in bounds {
            ensure!(
                bound.rank() == 1,
                invalid_argument,
                "If axis is specified, {name} {WANTED}, but {name} dims are {}",
                bound.rank()
            );
            ensure!(
                bound.elements() == places,
                invalid_argument,
                "If axis is specified, {name} {WANTED}, but {name} is a 1-D tensor of size {} and input's axis dimension is of size {places}",
                bound.elements()
            );
        }
    }
    Ok((bounds[0].1.slice::<f32>()?, bounds[1].1.slice::<f32>()?))
}

/// How the floats of a range become integers: shifted, scaled, shifted, rounded and shifted again.
#[derive(Clone, Copy)]
struct Quantizer {
    /// The range as the op reports it.
    min: f32,
    max: f32,
    /// Between which bounds values are taken.
    inside: (f32, f32),
    start: f32,
    scale: f32,
    shift: f32,
    way: Rounding,
    less: f32,
    /// Between which bounds integers are.
    integers: (f32, f32),
}

#[derive(Clone, Copy)]
enum Rounding {
    /// What is behind the point is cut off.
    Truncate,
    ToEven,
    AwayFromZero,
}

impl Plan {
    fn quantizer(&self, min: f32, max: f32, to_even: bool) -> Quantizer {
        let plain = Quantizer {
            min,
            max,
            inside: (min, max),
            start: 0.0,
            scale: 1.0,
            shift: 0.0,
            way: Rounding::AwayFromZero,
            less: 0.0,
            integers: (self.lowest as f32, self.highest as f32),
        };
        match self.mode {
            Mode::Combined => {
                let (shift, way) = match self.lowest {
                    0 => (0.5, Rounding::Truncate),
                    _ => (-self.half(), Rounding::AwayFromZero),
                };
                Quantizer {
                    start: min,
                    scale: ((self.highest - self.lowest) as f64 / f64::from(max - min)) as f32,
                    shift,
                    way,
                    ..plain
                }
            }
            Mode::First => {
                let scale = match max == min {
                    true => 0.0,
                    false => (self.steps() / f64::from(max - min)) as f32,
                };
                Quantizer {
                    inside: (f32::NEG_INFINITY, f32::INFINITY),
                    scale,
                    less: (min * scale).round() - self.lowest as f32,
                    ..plain
                }
            }
            Mode::Scaled => {
                let (low, high) = (self.lowest_scaled() as f32, self.highest as f32);
                let side = |integer: f32, end: f32| match integer * end > 0.0 {
                    true => integer / end,
                    false => f32::MAX,
                };
                let scale = side(low, min).min(side(high, max));
                let (min, max) = (low / scale, high / scale);
                Quantizer {
                    min,
                    max,
                    inside: (min, max),
                    scale,
                    way: match to_even {
                        true => Rounding::ToEven,
                        false => Rounding::AwayFromZero,
                    },
                    ..plain
                }
            }
        }
    }
}

impl Quantizer {
    #[inline(always)]
    fn apply(&self, x: f32, round: impl Fn(f32) -> f32) -> f32 {
        let inside = clamp(x, self.inside.0, self.inside.1);
        let found = round((inside - self.start) * self.scale + self.shift);
        clamp(found - self.less, self.integers.0, self.integers.1)
    }

    /// Writes the integers of `values` to `run` of a tensor of a quantized type.
    fn write(
        self,
        par: &dyn Par,
        values: &[f32],
        out: &mut Tensor,
        run: std::ops::Range<usize>,
    ) -> Result<()> {
        // One loop for each way to round, as a choice within would keep them from vectors.
        match self.way {
            Rounding::Truncate => self.write_by(par, values, out, run, |x| x),
            Rounding::ToEven => self.write_by(par, values, out, run, f32::round_ties_even),
            Rounding::AwayFromZero => self.write_by(par, values, out, run, f32::round),
        }
    }

    fn write_by(
        self,
        par: &dyn Par,
        values: &[f32],
        out: &mut Tensor,
        run: std::ops::Range<usize>,
        round: impl Fn(f32) -> f32 + Copy + Sync,
    ) -> Result<()> {
        match out.dtype() {
            DType::QI8 | DType::QU8 => {
                map(par, values, &mut out.words_mut::<u8>()?[run], move |x| {
                    short(self.apply(x, round)) as u8
                });
            }
            DType::QI16 | DType::QU16 => {
                map(par, values, &mut out.words_mut::<u16>()?[run], move |x| {
                    short(self.apply(x, round)) as u16
                });
            }
            // The bounds are integers but 2^31, which is cut off; what is no number becomes zero.
            _ => map(par, values, &mut out.words_mut::<u32>()?[run], move |x| {
                self.apply(x, round) as i32 as u32
            }),
        }
        Ok(())
    }
}

/// The integer of at most 16 bits and a sign that is left when what is behind the point is cut off, zero if there is none. Where
/// numbers might be any, their conversion is not done in vectors.
#[inline(always)]
fn short(x: f32) -> i32 {
    // Added to a whole number, it leaves that in the low bits.
    const WHOLE: f32 = 12_582_912.0;
    let whole = if x.is_nan() { 0.0 } else { x.trunc() };
    ((whole + WHOLE).to_bits() as i32).wrapping_sub(WHOLE.to_bits() as i32)
}

/// Writes `(integer + half) * scale + start` for the integers in `run` of a quantized tensor.
fn read(
    par: &dyn Par,
    stored: &Tensor,
    run: std::ops::Range<usize>,
    (half, scale, start): (f32, f32, f32),
    out: &mut [f32],
) -> Result<()> {
    let line = move |integer: i32| (integer as f32 + half) * scale + start;
    match stored.dtype() {
        DType::QI8 => {
            let words = &stored.words::<u8>()?[run];
            map(par, words, out, move |x| line(i32::from(x as i8)));
        }
        DType::QU8 => {
            let words = &stored.words::<u8>()?[run];
            map(par, words, out, move |x| line(i32::from(x)));
        }
        DType::QI16 => {
            let words = &stored.words::<u16>()?[run];
            map(par, words, out, move |x| line(i32::from(x as i16)));
        }
        DType::QU16 => {
            let words = &stored.words::<u16>()?[run];
            map(par, words, out, move |x| line(i32::from(x)));
        }
        _ => {
            let words = &stored.words::<u32>()?[run];
            map(par, words, out, move |x| line(x as i32));
        }
    }
    Ok(())
}

fn build_back(node: &NodeInfo) -> Result<AnyKernel> {
    let (plan, dtype) = (Plan::of(&node.attrs)?, node.attrs.dtype("dtype")?);
    ensure!(
        dtype == DType::F32 || plan.mode == Mode::Combined,
        invalid_argument,
        "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{}'",
        node.attrs.str("mode")?
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        ensure!(
            plan.axis < input.rank() as i64,
            invalid_argument,
            "Axis must be less than input dimension({}), got {}",
            input.rank(),
            plan.axis
        );
        let channels = Channels::of(input, plan.axis)?;
        for (name, bound) in [("min", ctx.input(1)?), ("max", ctx.input(2)?)] {
            ensure!(
                bound.elements() == channels.count,
                invalid_argument,
                "input_{name}_tensor must have as many elements as input on the dequantization axis ({}), got {}, expected {}",
                plan.axis,
                bound.elements(),
                channels.count
            );
        }
        ensure!(
            channels.count == 1 || plan.mode != Mode::First,
            unimplemented,
            "MIN_FIRST mode is not implemented for Dequantize with axis != -1."
        );
        let (mins, maxs) = (ctx.input(1)?.slice::<f32>()?, ctx.input(2)?.slice::<f32>()?);
        let mut out = ctx.allocate(DType::F32, input.shape().clone())?;
        let values = out.slice_mut::<f32>()?;
        for channel in 0..channels.count {
            let (start, scale) = plan.line(mins[channel], maxs[channel]);
            let half = if plan.mode == Mode::Combined {
                plan.half()
            } else {
                0.0
            };
            for run in channels.runs(channel) {
                let to = &mut values[run.clone()];
                read(ctx.par(), input, run, (half, scale, start), to)?;
            }
        }
        if dtype == DType::BF16 {
            let mut short = ctx.allocate(dtype, out.shape().clone())?;
            let (from, to) = (out.slice::<f32>()?, short.slice_mut::<bf16>()?);
            map(ctx.par(), from, to, bf16::from_f32);
            out = short;
        }
        ctx.set(0, out);
        Ok(())
    })
}

impl Plan {
    /// What zero stands for, and by how much one more is.
    fn line(&self, min: f32, max: f32) -> (f32, f32) {
        let (lowest, highest) = (self.lowest as f32, self.highest as f32);
        match self.mode {
            Mode::Combined => (min, (max - min) / (highest - lowest)),
            Mode::First => {
                let scale = (f64::from(max - min) / self.steps()) as f32;
                let start = match max == min {
                    true => min,
                    false => (min / scale).round() * scale,
                };
                (start - lowest * scale, scale)
            }
            Mode::Scaled if self.lowest == 0 => (0.0, max / highest),
            Mode::Scaled => (0.0, (min / self.lowest_scaled() as f32).max(max / highest)),
        }
    }
}
