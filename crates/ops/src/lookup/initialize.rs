//! `InitializeTableV2`, `InitializeTable`: fill a table from vectors of keys and values.
//!
//! TensorFlow: InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval). A table is filled once: the same again
//! is no error, as far as the number of entries tells.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, Status, ensure, invalid_argument};

use super::table::Table;
use super::{BY_HANDLE, BY_REF, check_signature, table};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "InitializeTable",
        inputs: &["table_handle: Ref(string)", "keys: Tkey", "values: Tval"],
        attrs: &["Tkey: type", "Tval: type"],
        kernels: &[cpu(&[], build)],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "InitializeTableV2",
        inputs: &["table_handle: resource", "keys: Tkey", "values: Tval"],
        attrs: &["Tkey: type", "Tval: type"],
        kernels: &[cpu(&[], build)],
        scripts: &[ONCE, WRONG],
        ..BY_HANDLE
    },
];

const ONCE: Script = script(
    "once, or again with as many",
    "t = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_STRING}
     keys = string[3]{a, b, a}
     values = string[3]{x, y, x}
     fill = InitializeTableV2(t, keys, values)
     two_keys = string[2]{a, c}
     two = string[2]{p, q}
     same = InitializeTableV2(t, two_keys, two)
     other = InitializeTableV2(t, keys, values)
     size = LookupTableSizeV2(t)
     ask = string[3]{c, b, a}
     none = string[]{?}
     own = string[3]{k, l, m}
     found = LookupTableFindV2(t, ask, none)
     first = LookupTableFindV2(t, ask, own)",
    &[
        "run fill",
        "fetch size, found => int64[]{2}; string[3]{?, y, x}",
        "fetch first => string[3]{k, y, x}",
        "run same",
        "fetch size, found => int64[]{2}; string[3]{?, y, x}",
        "run other fails FAILED_PRECONDITION Table was already initialized with different data.",
    ],
);

const WRONG: Script = script(
    "what fills no table",
    "t = HashTableV2() {key_dtype=DT_INT32, value_dtype=DT_FLOAT}
     m = MutableHashTableV2() {key_dtype=DT_INT32, value_dtype=DT_FLOAT}
     keys = int32[3]{1, 2, 1}
     values = float[3]{1, 2, 3}
     differ = InitializeTableV2(t, keys, values)
     two = float[2]{1, 2}
     sizes = InitializeTableV2(t, keys, two)
     types = InitializeTableV2(t, values, values)
     mutable = InitializeTableV2(m, keys, values)
     nothing = int32[0]{}
     no_value = float[0]{}
     empty = InitializeTableV2(t, nothing, no_value)
     size = LookupTableSizeV2(t)",
    &[
        "run sizes fails INVALID_ARGUMENT",
        "run types fails INVALID_ARGUMENT Signature mismatch, have: resource,float,float-> expected: resource,int32,float->",
        "run mutable fails INVALID_ARGUMENT is not initializable",
        "run empty fails INVALID_ARGUMENT keys and values cannot be empty tensors.",
        "run differ fails FAILED_PRECONDITION HashTable has different value for same key. Key 1 has 1 and trying to add value 3",
        "fetch size => int64[]{0}",
    ],
);

const BY_NAME: Script = script(
    "by reference to a name",
    "t = HashTable() {key_dtype=DT_INT64, value_dtype=DT_STRING}
     keys = int64[2]{1, 2}
     values = string[2]{one, two}
     fill = InitializeTable(t, keys, values)
     ask = int64[2]{2, 3}
     none = string[]{?}
     found = LookupTableFind(t, ask, none)
     out = LookupTableExport(t) {Tkeys=DT_INT64, Tvalues=DT_STRING}
     size = LookupTableSize(t)",
    &[
        "fetch found fails FAILED_PRECONDITION Table not initialized.",
        "run fill",
        "fetch found, size => string[2]{two, ?}; int64[]{2}",
    ],
);

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let table = table(ctx)?;
        if table.fixed(|_| ()).is_none() {
            return Err(not_initializable(ctx, &table));
        }
        check_signature(ctx.node(), &[table.key_dtype, table.value_dtype], &[])?;
        let (keys, values) = (ctx.input(1)?, ctx.input(2)?);
        for (what, tensor) in [("Keys", keys), ("Values", values)] {
            ensure!(
                tensor.rank() == 1,
                invalid_argument,
                "{what} must be a vector, but received shape{}",
                tensor.shape()
            );
        }
        ensure!(
            keys.elements() == values.elements(),
            invalid_argument,
            "Keys and values must have the same size {} vs {}",
            keys.elements(),
            values.elements()
        );
        table.import(keys, values)
    })
}

/// Of tables that are not filled once.
#[cold]
pub(super) fn not_initializable(ctx: &KernelCtx<'_>, table: &Table) -> Status {
    let container = match ctx.handle(0) {
        Ok(handle) => handle.container.clone(),
        Err(_) => ctx.env().device.default_container.clone(),
    };
    invalid_argument!("Table {container} {} is not initializable", table.name)
}
