//! `MapStage` and the ops on it, and the same ordered by key: `OrderedMapStage` and so on.
//!
//! TensorFlow: MapStage(key: int64, indices: int32, values: fake_dtypes); MapUnstage and MapPeek(key: int64, indices: int32) ->
//! values: dtypes; MapUnstageNoKey(indices: int32) -> (key: int64, values: dtypes); MapSize, MapIncompleteSize() -> size: int32;
//! MapClear(). A tuple can be taken once all its components came. Here both kinds go by the order of the keys.

use std::sync::Arc;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo, Resource};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::map::Keyed;
use super::stage::values;
use super::{ANY_TYPES, AREA, Area, Limits, area_of, check_types};
use crate::state::names::SharedName;

const MAP: OpDef = OpDef {
    scripts: &[script(
        "a tuple in two parts",
        "k = int64[]{7}
         keys = int64[2]{7, 8}
         first = int32[1]{0}
         second = int32[1]{1}
         both = int32[2]{0, 1}
         a = float[2]{1, 2}
         b = string[]{x}
         put_a = OrderedMapStage(k, first, [a]) {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         put_b = OrderedMapStage(k, second, [b]) {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         wrong = OrderedMapStage(keys, first, [a]) {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         size = OrderedMapSize() {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         half = OrderedMapIncompleteSize() {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         peek = OrderedMapPeek(k, second) {shared_name='m', dtypes=[DT_STRING]}
         one = OrderedMapUnstage(k, first) {shared_name='m', dtypes=[DT_FLOAT]}
         rest = OrderedMapUnstageNoKey(second) {shared_name='m', dtypes=[DT_STRING]}
         clear = OrderedMapClear() {shared_name='m', dtypes=[DT_FLOAT, DT_STRING]}
         put = MapStage(k, both, [a, b]) {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         get = MapUnstage(k, both) {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         look = MapPeek(k, both) {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         any = MapUnstageNoKey(both) {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         count = MapSize() {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         parts = MapIncompleteSize() {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}
         empty = MapClear() {shared_name='u', dtypes=[DT_FLOAT, DT_STRING]}",
        &[
            "run put_a",
            "fetch size, half => int32[]{0}; int32[]{1}",
            "run put_a fails INVALID_ARGUMENT The tensor for index '0' for key '7' was already initialized '2'.",
            "run put_b",
            "fetch size, half => int32[]{1}; int32[]{0}",
            "fetch peek => string[]{x}",
            "fetch one => float[2]{1, 2}",
            "fetch one fails INVALID_ARGUMENT Tensor at index '0' for key '7' has already been removed.",
            "fetch rest:0, rest:1 => int64[]{7}; string[]{x}",
            "fetch size => int32[]{0}",
            "run wrong fails INVALID_ARGUMENT key must be an int64 scalar",
            "run clear",
            "run put",
            "fetch look:1 => string[]{x}",
            "fetch get:0, get:1 => float[2]{1, 2}; string[]{x}",
            "run put",
            "fetch any:0 => int64[]{7}",
            "run put",
            "run empty",
            "fetch count, parts => int32[]{0}; int32[]{0}",
        ],
    )],
    ..AREA
};

const PUT: OpDef = OpDef {
    inputs: &["key: int64", "indices: int32", "values: fake_dtypes"],
    attrs: &[
        "capacity: int >= 0 = 0",
        "memory_limit: int >= 0 = 0",
        "dtypes: list(type)",
        "fake_dtypes: list(type) >= 1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    kernels: &[cpu(&[], build_put)],
    ..MAP
};

const PEEK: OpDef = OpDef {
    inputs: &["key: int64", "indices: int32"],
    outputs: &["values: dtypes"],
    kernels: &[cpu(&[], |node| build_get(node, false))],
    ..MAP
};

const TAKE: OpDef = OpDef {
    kernels: &[cpu(&[], |node| build_get(node, true))],
    ..PEEK
};

const TAKE_ANY: OpDef = OpDef {
    inputs: &["indices: int32"],
    outputs: &["key: int64", "values: dtypes"],
    kernels: &[cpu(&[], build_any)],
    ..MAP
};

const SIZE: OpDef = OpDef {
    outputs: &["size: int32"],
    attrs: ANY_TYPES,
    infer: infer::scalar,
    kernels: &[cpu(&[], |node| build_size(node, Keyed::len))],
    ..MAP
};

const PARTS: OpDef = OpDef {
    kernels: &[cpu(&[], |node| build_size(node, Keyed::incomplete_len))],
    ..SIZE
};

const CLEAR: OpDef = OpDef {
    attrs: ANY_TYPES,
    kernels: &[cpu(&[], build_clear)],
    ..MAP
};

const fn named(op: OpDef, name: &'static str) -> OpDef {
    OpDef { name, ..op }
}

pub(crate) static OPS: [OpDef; 14] = [
    named(CLEAR, "MapClear"),
    named(PARTS, "MapIncompleteSize"),
    named(PEEK, "MapPeek"),
    named(SIZE, "MapSize"),
    named(PUT, "MapStage"),
    named(TAKE, "MapUnstage"),
    named(TAKE_ANY, "MapUnstageNoKey"),
    named(CLEAR, "OrderedMapClear"),
    named(PARTS, "OrderedMapIncompleteSize"),
    named(PEEK, "OrderedMapPeek"),
    named(SIZE, "OrderedMapSize"),
    named(PUT, "OrderedMapStage"),
    named(TAKE, "OrderedMapUnstage"),
    named(TAKE_ANY, "OrderedMapUnstageNoKey"),
];

#[derive(Default)]
struct StagingMap(Arc<Area<Keyed>>);

impl Resource for StagingMap {
    fn type_name(&self) -> &'static str {
        "StagingMap"
    }
}

fn key(ctx: &KernelCtx<'_>) -> Result<i64> {
    let key = ctx.input(0)?;
    ensure!(
        key.elements() == 1,
        invalid_argument,
        "key must be an int64 scalar, got shape {}",
        key.shape()
    );
    key.slice::<i64>()?
        .first()
        .copied()
        .ok_or_else(|| invalid_argument!("no key"))
}

fn indices(ctx: &KernelCtx<'_>, input: usize) -> Result<Vec<usize>> {
    let index = |index: &i64| {
        usize::try_from(*index).map_err(|_| invalid_argument!("Index '{index}' was out of bounds"))
    };
    ctx.ints(input)?.iter().map(index).collect()
}

fn build_put(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, limits) = (SharedName::of(node)?, Limits::of(node)?);
    let count = node.attrs.dtypes("dtypes")?.len();
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let (key, indices) = (key(view)?, indices(view, 1)?);
            Ok((area_of::<StagingMap>(view, &names)?, key, indices))
        });
        let ready = ready.and_then(|(map, key, indices)| {
            let values = values(&mut ctx, 2)?;
            ensure!(
                indices.len() == values.len(),
                invalid_argument,
                "{} indices for {} values",
                indices.len(),
                values.len()
            );
            Ok((map, key, indices, values))
        });
        match ready {
            Ok((map, key, indices, values)) => {
                let attempt = move |keyed: &mut Keyed| match keyed
                    .put(limits, key, &indices, &values, count)
                {
                    Ok(true) => Some(Ok(Vec::new())),
                    Ok(false) => None,
                    Err(status) => Some(Err(status)),
                };
                map.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_get(node: &NodeInfo, takes: bool) -> Result<AnyKernel> {
    let (names, types) = (SharedName::of(node)?, Arc::new(node.output_types.clone()));
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let (key, indices) = (key(view)?, indices(view, 1)?);
            Ok((area_of::<StagingMap>(view, &names)?, key, indices))
        });
        match ready {
            Ok((map, key, indices)) => {
                let types = types.clone();
                let attempt = move |keyed: &mut Keyed| {
                    let found = match takes {
                        true => keyed.take(key, &indices)?,
                        false => keyed.peek(key, &indices)?,
                    };
                    Some(found.and_then(|values| check_types(&types, &values).map(|()| values)))
                };
                map.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_any(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, types) = (SharedName::of(node)?, Arc::new(node.output_types.clone()));
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| Ok((area_of::<StagingMap>(view, &names)?, indices(view, 0)?)));
        match ready {
            Ok((map, indices)) => {
                let types = types.clone();
                let attempt = move |keyed: &mut Keyed| {
                    let key = keyed.first_key()?;
                    let found = keyed.take(key, &indices)?;
                    Some(found.and_then(|mut values| {
                        values.insert(0, Tensor::scalar(key));
                        check_types(&types, &values).map(|()| values)
                    }))
                };
                map.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_size(node: &NodeInfo, size: fn(&Keyed) -> usize) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let map = area_of::<StagingMap>(ctx, &names)?;
        let size = map.0.with(|keyed| size(keyed));
        ctx.set(0, Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)));
        Ok(())
    })
}

fn build_clear(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let map = area_of::<StagingMap>(ctx, &names)?;
        map.0.with(|keyed| *keyed = Keyed::default());
        Ok(())
    })
}
