//! `AddSparseToTensorsMap`, `AddManySparseToTensorsMap`, `TakeManySparseFromTensorsMap`: sparse tensors kept by number, so
//! that they can pass through queues.
//!
//! TensorFlow: AddSparseToTensorsMap(sparse_indices, sparse_values: T, sparse_shape) -> sparse_handle: int64;
//! AddManySparseToTensorsMap keeps each row of dimension 0 apart; TakeManySparseFromTensorsMap(sparse_handles: int64) ->
//! (sparse_indices, sparse_values: dtype, sparse_shape) takes them out, stacked along a new dimension 0.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::parts::Part;
use crate::state::names::SharedName;

const MAP: OpDef = OpDef {
    attrs: &[
        "T: type",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    stateful: true,
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Bits,
    scripts: &[script(
        "through a map",
        "i = int64[3,2]{0, 0, 0, 3, 2, 2}
         v = string[3]{a, b, c}
         s = int64[2]{4, 5}
         one = AddSparseToTensorsMap(i, v, s) {shared_name='m'}
         many = AddManySparseToTensorsMap(i, v, s) {shared_name='n'}
         zero = int64[2]{0, 1}
         rows = int64[2]{0, 2}
         rest = int64[2]{1, 3}
         back = TakeManySparseFromTensorsMap(zero) {dtype=string, shared_name='m'}
         some = TakeManySparseFromTensorsMap(rows) {dtype=string, shared_name='n'}
         wrong = TakeManySparseFromTensorsMap(rest) {dtype=float, shared_name='n'}
         flat = int64[1,1]{0}
         x = float[1]{1}
         t = int64[1]{4}
         rank = AddManySparseToTensorsMap(flat, x, t) {shared_name='n'}",
        &[
            "fetch one => int64[]{0}",
            "fetch one => int64[]{1}",
            "fetch back:0, back:1, back:2 => int64[6,3]{0, 0, 0, 0, 0, 3, 0, 2, 2, 1, 0, 0, 1, 0, 3, 1, 2, 2}; string[6]{a, b, c, a, b, c}; int64[3]{2, 4, 5}",
            "fetch back fails INVALID_ARGUMENT Unable to find SparseTensor: 0 in map: m",
            "run many",
            "fetch some:2 => int64[2]{2, 5}",
            "fetch wrong fails INVALID_ARGUMENT Requested SparseTensor of type float but SparseTensor[0].values.dtype() == string",
            "fetch rank fails INVALID_ARGUMENT Rank of input SparseTensor should be > 1, but saw rank: 1",
        ],
    )],
    ..OpDef::BLANK
};

const IN: &[&str] = &[
    "sparse_indices: int64",
    "sparse_values: T",
    "sparse_shape: int64",
];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "AddManySparseToTensorsMap",
        inputs: IN,
        outputs: &["sparse_handles: int64"],
        kernels: &[cpu(&[], build_add_many)],
        ..MAP
    },
    OpDef {
        name: "AddSparseToTensorsMap",
        inputs: IN,
        outputs: &["sparse_handle: int64"],
        kernels: &[cpu(&[], build_add)],
        ..MAP
    },
    OpDef {
        name: "TakeManySparseFromTensorsMap",
        inputs: &["sparse_handles: int64"],
        outputs: &[
            "sparse_indices: int64",
            "sparse_values: dtype",
            "sparse_shape: int64",
        ],
        attrs: &[
            "dtype: type",
            "container: string = ''",
            "shared_name: string = ''",
        ],
        kernels: &[cpu(&[], build_take)],
        ..MAP
    },
];

/// Sparse tensors by number.
#[derive(Default)]
struct SparseTensorsMap {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: i64,
    parts: FxHashMap<i64, Part>,
}

impl Resource for SparseTensorsMap {
    fn type_name(&self) -> &'static str {
        "SparseTensorsMap"
    }
}

impl SparseTensorsMap {
    fn of(ctx: &KernelCtx<'_>, names: &SharedName) -> Result<Arc<SparseTensorsMap>> {
        let resources = &ctx.env().resources;
        resources.lookup_or_create(names.container(ctx), &names.name, || {
            Ok(SparseTensorsMap::default())
        })
    }

    fn add(&self, part: Part) -> i64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = state.next;
        state.next += 1;
        state.parts.insert(handle, part);
        handle
    }

    fn take(&self, handle: i64) -> Option<Part> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts.remove(&handle)
    }
}

fn build_add(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let handle = SparseTensorsMap::of(ctx, &names)?.add(Part::of(ctx, 0)?);
        ctx.set(0, Tensor::scalar(handle));
        Ok(())
    })
}

fn build_add_many(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let parts = Part::of(ctx, 0)?.unstacked()?;
        let map = SparseTensorsMap::of(ctx, &names)?;
        let handles: Vec<i64> = parts.into_iter().map(|part| map.add(part)).collect();
        ctx.set(0, Tensor::vector(&handles));
        Ok(())
    })
}

fn build_take(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let handles = ctx.input(0)?;
        ensure!(
            handles.rank() == 1,
            invalid_argument,
            "sparse_handles should be a vector but received shape {}",
            handles.shape()
        );
        let map = SparseTensorsMap::of(ctx, &names)?;
        let mut parts: Vec<Part> = Vec::with_capacity(handles.elements());
        for (index, handle) in handles.slice::<i64>()?.iter().enumerate() {
            let part = map.take(*handle).ok_or_else(|| {
                invalid_argument!(
                    "Unable to find SparseTensor: {handle} in map: {}",
                    names.name
                )
            })?;
            ensure!(
                part.values.dtype() == dtype,
                invalid_argument,
                "Requested SparseTensor of type {dtype} but SparseTensor[{index}].values.dtype() == {}",
                part.values.dtype()
            );
            if let Some(first) = parts.first()
                && first.rank() != part.rank()
            {
                // Ranks are those of the result, as in TensorFlow.
                return Err(invalid_argument!(
                    "Inconsistent rank across SparseTensors: rank prior to SparseTensor[{index}] was: {} but rank of SparseTensor[{index}] is: {}",
                    first.rank() + 1,
                    part.rank() + 1
                ));
            }
            parts.push(part);
        }
        ensure!(
            !parts.is_empty(),
            invalid_argument,
            "Must have at least 1 handle, but input has shape {}",
            handles.shape()
        );
        let count = parts.len() as i64;
        Part::stacked(&parts, &[count], dtype)?.set(ctx, 0)
    })
}
