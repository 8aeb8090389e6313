//! Batches of matrices: read in double precision, computed on all threads, written in the dtype of the tensor.

use std::ops::Range;

use crate::room::grow;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_math::linalg::Scalar;
use tensorfleet_math::par::chunks_mut;
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{Complex32, Complex64, DType, Element, Shape, Tensor, f16};

/// Operations that are worth a thread.
const GRAIN: usize = 1 << 16;

/// The number type that a dtype is carried in: double precision, real or complex.
pub(crate) trait Carried: Scalar {
    /// Some of the elements, which must be there.
    fn part(tensor: &Tensor, range: Range<usize>) -> Result<Vec<Self>>;
    /// Writes to a part of a tensor.
    fn put(values: &[Self], place: Place<'_>);

    /// All elements.
    fn read(tensor: &Tensor) -> Result<Vec<Self>> {
        Self::part(tensor, 0..tensor.elements())
    }

    /// Matrix `at` of those of `size` elements.
    fn matrix(tensor: &Tensor, at: usize, size: usize) -> Result<Vec<Self>> {
        Self::part(tensor, at * size..(at + 1) * size)
    }

    /// A tensor of these elements.
    fn write(values: Vec<Self>, dtype: DType, shape: Shape) -> Result<Tensor> {
        let mut tensor = Tensor::new(dtype, shape)?;
        for place in places(&mut tensor, 1)? {
            Self::put(&values, place);
        }
        Ok(tensor)
    }
}

/// A part of a tensor that is written.
pub(crate) enum Place<'a> {
    F16(&'a mut [f16]),
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    C64(&'a mut [Complex32]),
    C128(&'a mut [Complex64]),
    /// Numbers of rows, which double precision has exactly.
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
}

/// Writes each value as `narrow` makes it.
fn fill<S: Copy, T>(values: &[S], place: &mut [T], narrow: impl Fn(S) -> T) {
    for (to, value) in place.iter_mut().zip(values) {
        *to = narrow(*value);
    }
}

fn widen<T: Element, S>(
    tensor: &Tensor,
    range: Range<usize>,
    wide: impl Fn(&T) -> S,
) -> Result<Vec<S>> {
    Ok(tensor.slice::<T>()?[range].iter().map(wide).collect())
}

impl Carried for f64 {
    fn part(tensor: &Tensor, range: Range<usize>) -> Result<Vec<f64>> {
        match tensor.dtype() {
            DType::F64 => Ok(tensor.slice::<f64>()?[range].to_vec()),
            DType::F16 => widen(tensor, range, |x: &f16| x.to_f64()),
            _ => widen(tensor, range, |x: &f32| f64::from(*x)),
        }
    }

    fn put(values: &[f64], place: Place<'_>) {
        match place {
            Place::F16(place) => fill(values, place, f16::from_f64),
            Place::F32(place) => fill(values, place, |x| x as f32),
            Place::F64(place) => fill(values, place, |x| x),
            Place::I32(place) => fill(values, place, |x| x as i32),
            Place::I64(place) => fill(values, place, |x| x as i64),
            Place::C64(place) => fill(values, place, |x| Complex32::new(x as f32, 0.0)),
            Place::C128(place) => fill(values, place, |x| Complex64::new(x, 0.0)),
        }
    }
}

impl Carried for Complex64 {
    fn part(tensor: &Tensor, range: Range<usize>) -> Result<Vec<Complex64>> {
        match tensor.dtype() {
            DType::C128 => Ok(tensor.slice::<Complex64>()?[range].to_vec()),
            DType::C64 => widen(tensor, range, |x: &Complex32| {
                Complex64::new(f64::from(x.re), f64::from(x.im))
            }),
            _ => {
                let real = f64::part(tensor, range)?;
                Ok(real.into_iter().map(|x| Complex64::new(x, 0.0)).collect())
            }
        }
    }

    fn put(values: &[Complex64], place: Place<'_>) {
        match place {
            Place::C64(place) => fill(values, place, |x| Complex32::new(x.re as f32, x.im as f32)),
            Place::C128(place) => fill(values, place, |x| x),
            other => f64::put(&values.iter().map(|x| x.re).collect::<Vec<_>>(), other),
        }
    }
}

/// The tensor in `count` equal parts.
fn places(tensor: &mut Tensor, count: usize) -> Result<Vec<Place<'_>>> {
    fn cut<'a, T: Element>(
        tensor: &'a mut Tensor,
        count: usize,
        make: fn(&'a mut [T]) -> Place<'a>,
    ) -> Result<Vec<Place<'a>>> {
        let mut rest = tensor.slice_mut::<T>()?;
        let size = rest.len() / count.max(1);
        let part = |_| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(size);
            rest = after;
            make(part)
        };
        Ok((0..count).map(part).collect())
    }
    match tensor.dtype() {
        DType::F16 => cut(tensor, count, Place::F16),
        DType::F32 => cut(tensor, count, Place::F32),
        DType::F64 => cut(tensor, count, Place::F64),
        DType::C64 => cut(tensor, count, Place::C64),
        DType::C128 => cut(tensor, count, Place::C128),
        DType::I32 => cut(tensor, count, Place::I32),
        DType::I64 => cut(tensor, count, Place::I64),
        other => Err(internal!("no matrices of {other}")),
    }
}

/// What a body gives for one matrix: the elements of each output.
pub(super) type Found<S, const N: usize> = Result<[Vec<S>; N]>;

/// New tensors of which each has `count` equal parts: those that `body` finds for each number below `count`, with about `work`
/// operations. The first error counts.
pub(super) fn each<S: Carried, const N: usize>(
    ctx: &KernelCtx<'_>,
    (count, work): (usize, usize),
    outputs: [(DType, Shape); N],
    body: &(dyn Fn(usize) -> Found<S, N> + Sync),
) -> Result<[Tensor; N]> {
    let mut tensors = Vec::with_capacity(N);
    for (dtype, shape) in outputs {
        tensors.push(ctx.allocate(dtype, shape)?);
    }
    // Matrices without elements come in any number.
    let count = if tensors.iter().all(Tensor::is_empty) {
        0
    } else {
        count
    };
    let mut jobs: Vec<(Vec<Place<'_>>, Result<()>)> = Vec::new();
    grow(&mut jobs, count)?;
    jobs.resize_with(count, || (Vec::with_capacity(N), Ok(())));
    for tensor in &mut tensors {
        for (job, place) in jobs.iter_mut().zip(places(tensor, count)?) {
            job.0.push(place);
        }
    }
    let grain = (GRAIN / work.max(1)).max(1);
    chunks_mut(ctx.par(), &mut jobs, grain, |first, jobs| {
        for (at, (places, status)) in jobs.iter_mut().enumerate() {
            *status = body(first + at).map(|found| {
                for (values, place) in found.iter().zip(places.drain(..)) {
                    S::put(values, place);
                }
            });
        }
    });
    jobs.into_iter().try_for_each(|(_, status)| status)?;
    let wrong = |_| internal!("outputs of another number");
    tensors.try_into().map_err(wrong)
}
