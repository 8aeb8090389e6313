//! Text.

mod as_string;
mod base64;
mod case;
mod decode_raw;
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

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::Result;
use tensorfleet_tensor::{Bytes, Element, Tensor};

/// Applies a function to every string of input 0 and sets output 0.
fn map<T: Element>(ctx: &mut KernelCtx<'_>, apply: impl Fn(&Bytes) -> Result<T>) -> Result<()> {
    let input = ctx.input(0)?;
    let values = input
        .slice::<Bytes>()?
        .iter()
        .map(apply)
        .collect::<Result<Vec<T>>>()?;
    let out = Tensor::from_vec(input.shape().clone(), values)?;
    ctx.set(0, out);
    Ok(())
}
