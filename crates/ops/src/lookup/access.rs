//! `LookupTableFindV2`, `LookupTableInsertV2`, `LookupTableRemoveV2`, `LookupTableSizeV2`, `LookupTableExportV2`,
//! `LookupTableImportV2` and their older forms: what is in a table, read and changed.
//!
//! TensorFlow: LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout) -> values: Tout;
//! LookupTableInsertV2(table_handle, keys: Tin, values: Tout) and LookupTableImportV2, which replaces all there is;
//! LookupTableRemoveV2(table_handle, keys: Tin); LookupTableSizeV2(table_handle) -> size: int64;
//! LookupTableExportV2(table_handle) -> keys: Tkeys, values: Tvalues, in whatever order. Checkpoints hold what was exported.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use super::table::Table;
use super::{BY_HANDLE, BY_REF, check_signature, table};

pub(crate) static OPS: [OpDef; 11] = [
    OpDef {
        name: "LookupTableExport",
        inputs: NAME,
        outputs: EXPORTED,
        attrs: EXPORTED_TYPES,
        kernels: &[cpu(&[], |_| kernel(export))],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "LookupTableExportV2",
        inputs: HANDLE,
        outputs: EXPORTED,
        attrs: EXPORTED_TYPES,
        kernels: &[cpu(&[], |_| kernel(export))],
        scripts: &[IN_AND_OUT, WRONG],
        ..BY_HANDLE
    },
    OpDef {
        name: "LookupTableFind",
        inputs: &[
            "table_handle: Ref(string)",
            "keys: Tin",
            "default_value: Tout",
        ],
        outputs: &["values: Tout"],
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(find))],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "LookupTableFindV2",
        inputs: &["table_handle: resource", "keys: Tin", "default_value: Tout"],
        outputs: &["values: Tout"],
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(find))],
        scripts: &[FOUND, IN_AND_OUT, WRONG],
        ..BY_HANDLE
    },
    OpDef {
        name: "LookupTableImport",
        inputs: ENTRIES_BY_NAME,
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(import))],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "LookupTableImportV2",
        inputs: ENTRIES,
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(import))],
        scripts: &[IN_AND_OUT, WRONG],
        ..BY_HANDLE
    },
    OpDef {
        name: "LookupTableInsert",
        inputs: ENTRIES_BY_NAME,
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(insert))],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "LookupTableInsertV2",
        inputs: ENTRIES,
        attrs: TYPES,
        kernels: &[cpu(&[], |_| kernel(insert))],
        scripts: &[FOUND, IN_AND_OUT, WRONG],
        ..BY_HANDLE
    },
    OpDef {
        name: "LookupTableRemoveV2",
        inputs: &["table_handle: resource", "keys: Tin"],
        attrs: &["Tin: type"],
        kernels: &[cpu(&[], |_| kernel(remove))],
        scripts: &[IN_AND_OUT, WRONG],
        ..BY_HANDLE
    },
    OpDef {
        name: "LookupTableSize",
        inputs: NAME,
        outputs: &["size: int64"],
        infer: infer::scalar,
        cost: Cost::Cheap,
        kernels: &[cpu(&[], |_| kernel(size))],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "LookupTableSizeV2",
        inputs: HANDLE,
        outputs: &["size: int64"],
        infer: infer::scalar,
        cost: Cost::Cheap,
        kernels: &[cpu(&[], |_| kernel(size))],
        scripts: &[FOUND, IN_AND_OUT],
        ..BY_HANDLE
    },
];

const HANDLE: &[&str] = &["table_handle: resource"];
const NAME: &[&str] = &["table_handle: Ref(string)"];
const ENTRIES: &[&str] = &["table_handle: resource", "keys: Tin", "values: Tout"];
const ENTRIES_BY_NAME: &[&str] = &["table_handle: Ref(string)", "keys: Tin", "values: Tout"];
const TYPES: &[&str] = &["Tin: type", "Tout: type"];
const EXPORTED: &[&str] = &["keys: Tkeys", "values: Tvalues"];
const EXPORTED_TYPES: &[&str] = &["Tkeys: type", "Tvalues: type"];

const FOUND: Script = script(
    "keys of any shape, each with the default or one of its own",
    "t = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_FLOAT}
     keys = string[3]{a, b, a}
     values = float[3]{1, 2, 3}
     put = LookupTableInsertV2(t, keys, values)
     size = LookupTableSizeV2(t)
     one = string[]{a}
     many = string[2,2]{b, c, a, ''}
     none = string[0]{}
     default = float[]{-1}
     own = float[2,2]{10, 20, 30, 40}
     found = LookupTableFindV2(t, one, default)
     all = LookupTableFindV2(t, many, default)
     each = LookupTableFindV2(t, many, own)
     nothing = LookupTableFindV2(t, none, default)
     more_values = float[2]{1, 2}
     bad_put = LookupTableInsertV2(t, keys, more_values)
     bad = LookupTableFindV2(t, many, more_values)",
    &[
        "fetch size, found => int64[]{0}; float[]{-1}",
        "run put",
        "fetch size, found => int64[]{2}; float[]{3}",
        "fetch all => float[2,2]{2, -1, 3, -1}",
        "fetch each => float[2,2]{2, 20, 3, 40}",
        "fetch nothing => float[0]{}",
        "run bad_put fails INVALID_ARGUMENT Expected shape [3] for value, got [2]",
        "fetch bad fails INVALID_ARGUMENT Expected shape [] or [2,2] for default value, got [2]",
    ],
);

const IN_AND_OUT: Script = script(
    "rows put in, taken out, exported and imported",
    "t = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_STRING, value_shape=[2]}
     u = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_STRING, value_shape=[2]}
     keys = int64[3]{7, 8, 9}
     values = string[3,2]{a, b, c, d, e, f}
     put = LookupTableInsertV2(t, keys, values)
     two = int64[3]{9, 7, 5}
     drop = LookupTableRemoveV2(t, two)
     out = LookupTableExportV2(t) {Tkeys=DT_INT64, Tvalues=DT_STRING}
     eight = int64[]{8}
     import = LookupTableImportV2(u, out, out:1)
     size = LookupTableSizeV2(t)
     size_u = LookupTableSizeV2(u)
     default = string[2]{x, y}
     own = string[3,2]{p, q, r, s, t, u}
     all = LookupTableFindV2(t, keys, default)
     each = LookupTableFindV2(u, keys, own)
     again = LookupTableImportV2(t, keys, values)",
    &[
        "run put",
        "fetch size => int64[]{3}",
        "run drop",
        "fetch size, out, out:1 => int64[]{1}; int64[1]{8}; string[1,2]{c, d}",
        "fetch all => string[3,2]{x, y, c, d, x, y}",
        "run import",
        "fetch size_u, each => int64[]{1}; string[3,2]{p, q, c, d, t, u}",
        "run again",
        "fetch all => string[3,2]{a, b, c, d, e, f}",
        "run put",
        "fetch size => int64[]{3}",
    ],
);

const WRONG: Script = script(
    "what a table does not take",
    "t = MutableHashTableV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT}
     f = HashTableV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT}
     k = int64[1]{1}
     s = string[1]{a}
     v = float[1]{1}
     d = float[]{0}
     find = LookupTableFindV2(t, s, d)
     put = LookupTableInsertV2(t, k, s)
     import = LookupTableImportV2(t, s, v)
     drop = LookupTableRemoveV2(t, s)
     unset = LookupTableFindV2(f, k, d)
     put_fixed = LookupTableInsertV2(f, k, v)
     drop_fixed = LookupTableRemoveV2(f, k)
     out_fixed = LookupTableExportV2(f) {Tkeys=DT_INT64, Tvalues=DT_FLOAT}
     size = LookupTableSizeV2(f)
     fill = LookupTableImportV2(f, k, v)",
    &[
        "fetch find fails INVALID_ARGUMENT Signature mismatch, have: resource,string,float->float expected: resource,int64,float->float",
        "run put fails INVALID_ARGUMENT Signature mismatch, have: resource,int64,string-> expected: resource,int64,float->",
        "run import fails INVALID_ARGUMENT Signature mismatch",
        "run drop fails INVALID_ARGUMENT Signature mismatch, have: resource,string-> expected: resource,int64->",
        "fetch unset fails FAILED_PRECONDITION Table not initialized.",
        "run put_fixed fails UNIMPLEMENTED Insert not supported by InitializableLookupTable implementations",
        "run drop_fixed fails UNIMPLEMENTED Remove not supported by InitializableLookupTable implementations",
        "run out_fixed fails ABORTED HashTable is not initialized.",
        "fetch size => int64[]{0}",
        "run fill",
        "fetch size, unset, out_fixed, out_fixed:1 => int64[]{1}; float[1]{1}; int64[1]{1}; float[1]{1}",
    ],
);

const BY_NAME: Script = script(
    "by reference to a name",
    "t = MutableHashTable() {key_dtype=DT_INT64, value_dtype=DT_INT64, shared_name='t'}
     keys = int64[2]{1, -1}
     values = int64[2]{10, 20}
     put = LookupTableInsert(t, keys, values)
     size = LookupTableSize(t)
     default = int64[]{-5}
     wanted = int64[3]{-1, 0, 1}
     found = LookupTableFind(t, wanted, default)
     one_key = int64[1]{3}
     one_value = int64[1]{30}
     import = LookupTableImport(t, one_key, one_value)
     out = LookupTableExport(t) {Tkeys=DT_INT64, Tvalues=DT_INT64}
     one_default = float[]{1}
     wrong = LookupTableFind(t, wanted, one_default)",
    &[
        "run put",
        "fetch size, found => int64[]{2}; int64[3]{20, -5, 10}",
        "run import",
        "fetch size, found => int64[]{1}; int64[3]{-5, -5, -5}",
        "fetch out, out:1 => int64[1]{3}; int64[1]{30}",
        "fetch wrong fails INVALID_ARGUMENT Signature mismatch, have: string_ref,int64,float->float expected: string_ref,int64,int64->int64",
    ],
);

/// A kernel that works on the table of input 0.
fn kernel(run: fn(&mut KernelCtx<'_>, &Table) -> Result<()>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let table = table(ctx)?;
        run(ctx, &table)
    })
}

fn find(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    let (key, value) = (table.key_dtype, table.value_dtype);
    check_signature(ctx.node(), &[key, value], &[value])?;
    let values = table.find(ctx.par(), ctx.input(1)?, ctx.input(2)?)?;
    ctx.set(0, values);
    Ok(())
}

fn insert(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    check_signature(ctx.node(), &[table.key_dtype, table.value_dtype], &[])?;
    table.insert(ctx.input(1)?, ctx.input(2)?)
}

fn import(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    check_signature(ctx.node(), &[table.key_dtype, table.value_dtype], &[])?;
    table.import(ctx.input(1)?, ctx.input(2)?)
}

fn remove(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    check_signature(ctx.node(), &[table.key_dtype], &[])?;
    table.remove(ctx.input(1)?)
}

fn size(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    let size = i64::try_from(table.len()).unwrap_or(i64::MAX);
    ctx.set(0, Tensor::scalar(size));
    Ok(())
}

fn export(ctx: &mut KernelCtx<'_>, table: &Table) -> Result<()> {
    check_signature(ctx.node(), &[], &[table.key_dtype, table.value_dtype])?;
    let (keys, values) = table.export()?;
    ctx.set(0, keys);
    ctx.set(1, values);
    Ok(())
}
