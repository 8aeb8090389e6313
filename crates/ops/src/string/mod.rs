//! Text.

mod as_string;
mod base64;
mod case;
mod decode_raw;
mod digits;
pub(crate) mod farm_hash;
mod format;
mod hash_bucket;
pub(crate) mod hashes;
mod join;
mod length;
mod ngrams;
mod reduce_join;
mod regex_ops;
mod segment_join;
mod split;
mod substr;
mod to_number;
mod unicode;

use crate::Family;
pub(crate) use as_string::general;

pub(crate) static FAMILY: Family = Family {
    name: "string",
    ops: &[
        &as_string::OP,
        &format::OP,
        &join::OP,
        &length::OP,
        &ngrams::OP,
        &reduce_join::OP,
        &segment_join::OP,
        &substr::OP,
        &to_number::OP,
        &unicode::encode::OP,
        &unicode::script::OP,
        &unicode::transcode::OP,
    ],
    tables: &[
        &base64::OPS,
        &case::OPS,
        &decode_raw::OPS,
        &hash_bucket::OPS,
        &regex_ops::OPS,
        &split::OPS,
        &unicode::decode::OPS,
    ],
};

use std::sync::{Mutex, PoisonError};

use tensorfleet_kernel::KernelCtx;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Result, Status};
use tensorfleet_tensor::{Element, Shape, TString, Tensor};

/// Elements per task: strings of a few bytes take some nanoseconds each.
const GRAIN: usize = 512;

/// A tensor whose elements `make` writes by their number, on all threads. If some fail, the first of them says why.
fn elements<T: Element>(
    par: &dyn Par,
    shape: Shape,
    make: impl Fn(usize, &mut T, &mut Vec<u8>) -> Result<()> + Sync,
) -> Result<Tensor> {
    let mut out = Tensor::new(T::DTYPE, shape)?;
    let failed: Mutex<Option<(usize, Status)>> = Mutex::new(None);
    chunks_mut(par, out.slice_mut::<T>()?, GRAIN, |first, chunk| {
        let mut text = Vec::new();
        for (at, element) in (first..).zip(chunk) {
            if let Err(status) = make(at, element, &mut text) {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(before, _)| at < *before) {
                    *failed = Some((at, status));
                }
                return;
            }
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, status)) => Err(status),
        None => Ok(out),
    }
}

/// A tensor of strings that `write` puts together, each in a buffer that it finds empty.
fn texts(
    par: &dyn Par,
    shape: Shape,
    write: &(dyn Fn(usize, &mut Vec<u8>) -> Result<()> + Sync),
) -> Result<Tensor> {
    elements(par, shape, |at, element: &mut TString, text| {
        text.clear();
        write(at, text)?;
        element.assign(text);
        Ok(())
    })
}

/// Applies a function to every string of input 0 and sets output 0.
fn map<T: Element>(
    ctx: &mut KernelCtx<'_>,
    apply: impl Fn(&TString) -> Result<T> + Sync,
) -> Result<()> {
    let input = ctx.input(0)?;
    let values = input.slice::<TString>()?;
    let out = elements(ctx.par(), input.shape().clone(), |at, element, _| {
        *element = apply(&values[at])?;
        Ok(())
    })?;
    ctx.set(0, out);
    Ok(())
}

/// As [`map`] for a function that writes a string where it stays, which is faster.
fn map_strings(
    ctx: &mut KernelCtx<'_>,
    write: impl Fn(&TString, &mut TString, &mut Vec<u8>) -> Result<()> + Sync,
) -> Result<()> {
    let input = ctx.input(0)?;
    let values = input.slice::<TString>()?;
    let out = elements(ctx.par(), input.shape().clone(), |at, element, text| {
        text.clear();
        write(&values[at], element, text)
    })?;
    ctx.set(0, out);
    Ok(())
}

/// Strings of many rows, one row behind the other.
#[derive(Default)]
struct Pieces {
    values: Vec<TString>,
    /// How many each row has.
    counts: Vec<usize>,
}

/// The strings that `cut` appends for each row, on all threads.
fn pieces(
    par: &dyn Par,
    rows: usize,
    cut: &(dyn Fn(usize, &mut Vec<TString>) -> Result<()> + Sync),
) -> Result<Pieces> {
    let mut blocks: Vec<Result<Pieces>> = Vec::new();
    blocks.resize_with(rows.div_ceil(GRAIN), || Ok(Pieces::default()));
    chunks_mut(par, &mut blocks, 1, |first, chunk| {
        for (number, block) in (first..).zip(chunk) {
            let rows = number * GRAIN..rows.min((number + 1) * GRAIN);
            *block = rows
                .into_iter()
                .try_fold(Pieces::default(), |mut found, row| {
                    let before = found.values.len();
                    cut(row, &mut found.values)?;
                    found.counts.push(found.values.len() - before);
                    Ok(found)
                });
        }
    });
    let blocks = blocks.into_iter().collect::<Result<Vec<Pieces>>>()?;
    let count = blocks.iter().map(|block| block.values.len()).sum();
    let mut all = Pieces {
        values: Vec::with_capacity(count),
        counts: Vec::with_capacity(rows),
    };
    for mut block in blocks {
        all.values.append(&mut block.values);
        all.counts.append(&mut block.counts);
    }
    Ok(all)
}

/// Appends a part of a string, written where it stays.
fn push_part(out: &mut Vec<TString>, whole: &TString, part: &[u8]) {
    out.push(TString::new());
    if let Some(last) = out.last_mut() {
        last.assign_part(whole, part);
    }
}
