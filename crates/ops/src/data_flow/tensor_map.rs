//! TensorMaps: tensors by tensors, as values of variant tensors.
//!
//! TensorFlow: EmptyTensorMap() -> handle: variant; TensorMapSize(input_handle) -> size: int32; TensorMapLookup(input_handle, key)
//! -> value; TensorMapInsert(input_handle, key, value) -> output_handle; TensorMapErase(input_handle, key) -> output_handle;
//! TensorMapHasKey(input_handle, key) -> has_key: bool; TensorMapStackKeys(input_handle) -> keys, in no order.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message as _;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, Shape, Tensor, Variant, VariantObject, Word, by_word};

/// A map that is a value: ops that change it give a changed one.
#[derive(Clone, Default)]
pub(crate) struct TensorMap {
    /// Key and value, by the bytes of the key.
    entries: BTreeMap<Vec<u8>, (Tensor, Tensor)>,
}

impl VariantObject for TensorMap {
    fn type_name(&self) -> &str {
        "tensorflow::TensorMap"
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let pairs = self.entries.values();
        let tensors = pairs.flat_map(|(key, value)| [key.clone(), value.clone()]);
        Some((Bytes::new(), tensors.collect()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl TensorMap {
    fn find(&self, key: &Tensor) -> Result<Option<&Tensor>> {
        Ok(self.entries.get(&bytes(key)?).map(|(_, value)| value))
    }

    /// The same keys with other values.
    pub(crate) fn map(&self, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<TensorMap> {
        let entries = self
            .entries
            .iter()
            .map(|(name, (key, value))| Ok((name.clone(), (key.clone(), change(value)?))));
        Ok(TensorMap {
            entries: entries.collect::<Result<_>>()?,
        })
    }

    /// The keys of both; values of keys that both have are put together.
    pub(crate) fn merge(
        &self,
        other: &TensorMap,
        join: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<TensorMap> {
        let mut merged = self.clone();
        for (name, (key, value)) in &other.entries {
            let value = match self.entries.get(name) {
                Some((_, own)) => join(own, value)?,
                None => value.clone(),
            };
            merged.entries.insert(name.clone(), (key.clone(), value));
        }
        Ok(merged)
    }

    /// The map as a variant.
    pub(crate) fn into_variant(self) -> Variant {
        Variant::Object(Arc::new(self))
    }
}

/// What tells one key from another.
fn bytes(key: &Tensor) -> Result<Vec<u8>> {
    Ok(key.to_proto()?.encode_to_vec())
}

const MAP: OpDef = OpDef {
    gradient: Gradient::None("TensorFlow's is made with the graph"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "in and out",
        "e = EmptyTensorMap()
         k = float[]{1}
         j = float[]{2}
         v = float[2]{3, 4}
         m = TensorMapInsert(e, k, v)
         n = TensorMapSize(m)
         zero = TensorMapSize(e)
         got = TensorMapLookup(m, k) {value_dtype=float}
         none = TensorMapLookup(m, j) {value_dtype=float}
         has = TensorMapHasKey(m, k)
         lacks = TensorMapHasKey(m, j)
         less = TensorMapErase(m, k) {value_dtype=float}
         left = TensorMapSize(less)
         gone = TensorMapErase(m, j) {value_dtype=float}
         keys = TensorMapStackKeys(m) {key_dtype=float}
         empty = TensorMapStackKeys(e) {key_dtype=float}
         twice = AddN([m, m])
         sum = TensorMapLookup(twice, k) {value_dtype=float}",
        &[
            "fetch n, zero, left => int32[]{1}; int32[]{0}; int32[]{0}",
            "fetch got => float[2]{3, 4}",
            "fetch has, lacks => bool[]{true}; bool[]{false}",
            "fetch keys => float[1]{1}",
            "fetch sum => float[2]{6, 8}",
            "fetch none fails INVALID_ARGUMENT Trying to lookup non-existent key.",
            "run gone fails INVALID_ARGUMENT Trying to erase non-existent item.",
            "fetch empty fails INVALID_ARGUMENT TensorMapStackKeys cannot be called on empty map.",
        ],
    )],
    ..OpDef::BLANK
};

const KEYED: &[&str] = &["input_handle: variant", "key: key_dtype"];
const KEY_AND_VALUE: &[&str] = &["key_dtype: type", "value_dtype: type"];

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "EmptyTensorMap",
        outputs: &["handle: variant"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| {
            kernel(|_| Ok(Tensor::scalar(TensorMap::default().into_variant())))
        })],
        ..MAP
    },
    OpDef {
        name: "TensorMapErase",
        inputs: KEYED,
        outputs: &["output_handle: variant"],
        attrs: KEY_AND_VALUE,
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| kernel(erase))],
        ..MAP
    },
    OpDef {
        name: "TensorMapHasKey",
        inputs: KEYED,
        outputs: &["has_key: bool"],
        attrs: &["key_dtype: type"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| {
            kernel(|ctx| Ok(Tensor::scalar(map(ctx)?.find(ctx.input(1)?)?.is_some())))
        })],
        ..MAP
    },
    OpDef {
        name: "TensorMapInsert",
        inputs: &[
            "input_handle: variant",
            "key: key_dtype",
            "value: value_dtype",
        ],
        outputs: &["output_handle: variant"],
        attrs: KEY_AND_VALUE,
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| kernel(insert))],
        ..MAP
    },
    OpDef {
        name: "TensorMapLookup",
        inputs: KEYED,
        outputs: &["value: value_dtype"],
        attrs: KEY_AND_VALUE,
        kernels: &[cpu(&[], build_lookup)],
        ..MAP
    },
    OpDef {
        name: "TensorMapSize",
        inputs: &["input_handle: variant"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], |_| {
            kernel(|ctx| {
                let size = map(ctx)?.entries.len();
                Ok(Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)))
            })
        })],
        ..MAP
    },
    OpDef {
        name: "TensorMapStackKeys",
        inputs: &["input_handle: variant"],
        outputs: &["keys: key_dtype"],
        attrs: &["key_dtype: type"],
        kernels: &[cpu(&[], build_keys)],
        ..MAP
    },
];

/// A kernel that makes output 0.
fn kernel(run: fn(&KernelCtx<'_>) -> Result<Tensor>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = run(ctx)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The map in input 0.
fn map<'a>(ctx: &'a KernelCtx<'_>) -> Result<&'a TensorMap> {
    let handle = ctx.input(0)?;
    let found = match handle.slice::<Variant>()? {
        [variant] if handle.rank() == 0 => variant.downcast::<TensorMap>(),
        _ => None,
    };
    found.ok_or_else(|| invalid_argument!("Input handle is not a map, shape {}", handle.shape()))
}

fn insert(ctx: &KernelCtx<'_>) -> Result<Tensor> {
    let (key, value) = (ctx.input(1)?, ctx.input(2)?);
    let mut changed = map(ctx)?.clone();
    let entry = (key.clone(), value.clone());
    changed.entries.insert(bytes(key)?, entry);
    Ok(Tensor::scalar(changed.into_variant()))
}

fn erase(ctx: &KernelCtx<'_>) -> Result<Tensor> {
    let mut changed = map(ctx)?.clone();
    ensure!(
        changed.entries.remove(&bytes(ctx.input(1)?)?).is_some(),
        invalid_argument,
        "Trying to erase non-existent item."
    );
    Ok(Tensor::scalar(changed.into_variant()))
}

fn build_lookup(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("value_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let found = map(ctx)?.find(ctx.input(1)?)?.cloned();
        let value = found.ok_or_else(|| {
            invalid_argument!("Trying to lookup non-existent key. Could not find key.")
        })?;
        ensure!(
            value.dtype() == dtype,
            invalid_argument,
            "the value is of type {}, {dtype} was asked for",
            value.dtype()
        );
        ctx.set(0, value);
        Ok(())
    })
}

fn build_keys(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("key_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let keys: Vec<Tensor> = map(ctx)?
            .entries
            .values()
            .map(|(key, _)| key.clone())
            .collect();
        let Some(first) = keys.first() else {
            return Err(invalid_argument!(
                "TensorMapStackKeys cannot be called on empty map."
            ));
        };
        for key in &keys {
            ensure!(
                key.dtype() == dtype,
                invalid_argument,
                "Key does not match requested dtype: {} is not {dtype}",
                key.dtype()
            );
            ensure!(
                key.shape() == first.shape(),
                invalid_argument,
                "Keys must all have the same shape."
            );
        }
        let shape = Shape::new(&[keys.len() as i64])?.concat(first.shape())?;
        let mut out = Tensor::zeros(dtype, shape)?;
        by_word!(dtype, W => stack::<W>(&keys, &mut out))?;
        ctx.set(0, out);
        Ok(())
    })
}

fn stack<W: Word>(keys: &[Tensor], out: &mut Tensor) -> Result<()> {
    let mut slots = out.words_mut::<W>()?.iter_mut();
    for key in keys {
        for (value, slot) in key.words::<W>()?.iter().zip(&mut slots) {
            *slot = value.clone();
        }
    }
    Ok(())
}
