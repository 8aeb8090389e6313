//! `InitializeTableFromTextFileV2`, `InitializeTableFromTextFile`: fill a table from a vocabulary.
//!
//! TensorFlow: InitializeTableFromTextFileV2(table_handle: resource, filename: string), with attrs key_index: int and
//! value_index: int (a column, or -2 for the whole line, -1 for its number), vocab_size: int = -1 (all lines), delimiter:
//! string = "\t", offset: int = 0. A table that is filled already stays as it is.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, TString};

use super::initialize::not_initializable;
use super::store::Twice;
use super::table::Table;
use super::vocabulary::{Format, Place, read};
use super::{BY_HANDLE, BY_REF, table};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "InitializeTableFromTextFile",
        inputs: &["table_handle: Ref(string)", "filename: string"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build)],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "InitializeTableFromTextFileV2",
        inputs: &["table_handle: resource", "filename: string"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build)],
        scripts: &[WRONG],
        ..BY_HANDLE
    },
];

const ATTRS: &[&str] = &[
    "key_index: int >= -2",
    "value_index: int >= -2",
    "vocab_size: int >= -1 = -1",
    "delimiter: string = '\t'",
    "offset: int = 0",
];

const WRONG: Script = script(
    "files that are none, and tables that do not take them",
    "name = string[]{/dev/null}
     missing = string[]{no/such/file}
     nothing = string[]{}
     t = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64}
     f = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_FLOAT}
     m = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64}
     empty = InitializeTableFromTextFileV2(t, name) {key_index=-2, value_index=-1}
     long = InitializeTableFromTextFileV2(t, name) {key_index=-2, value_index=-1, vocab_size=3}
     no_file = InitializeTableFromTextFileV2(t, missing) {key_index=-2, value_index=-1}
     no_name = InitializeTableFromTextFileV2(t, nothing) {key_index=-2, value_index=-1}
     delimiter = InitializeTableFromTextFileV2(t, name) {key_index=-2, value_index=-1, delimiter='ab'}
     line_as_key = InitializeTableFromTextFileV2(t, name) {key_index=-1, value_index=-1}
     line_as_value = InitializeTableFromTextFileV2(f, name) {key_index=-2, value_index=-1}
     whole_as_value = InitializeTableFromTextFileV2(f, name) {key_index=-2, value_index=-2}
     mutable = InitializeTableFromTextFileV2(m, name) {key_index=-2, value_index=-1}",
    &[
        "run empty fails OUT_OF_RANGE Read less bytes than requested",
        "run long fails INVALID_ARGUMENT Invalid vocab_size in /dev/null: expected 3 but got 0",
        "run no_file fails NOT_FOUND no/such/file; No such file or directory",
        "run no_name fails INVALID_ARGUMENT filename cannot be empty.",
        "run delimiter fails INVALID_ARGUMENT delimiter should be only 1 char",
        "run line_as_key fails INVALID_ARGUMENT Key index for line number requires table key dtype of int64, got string",
        "run line_as_value fails INVALID_ARGUMENT Value index for line number requires table value dtype of int64, got float",
        "run whole_as_value fails INVALID_ARGUMENT Value index for whole line requires table value dtype of integer or string, got float",
        "run mutable fails INVALID_ARGUMENT is not initializable",
    ],
);

const BY_NAME: Script = script(
    "by reference to a name",
    "name = string[]{/dev/null}
     t = HashTable() {key_dtype=DT_STRING, value_dtype=DT_INT64}
     fill = InitializeTableFromTextFile(t, name) {key_index=-2, value_index=-1}
     m = MutableHashTable() {key_dtype=DT_STRING, value_dtype=DT_INT64}
     mutable = InitializeTableFromTextFile(m, name) {key_index=-2, value_index=-1}",
    &[
        "run fill fails OUT_OF_RANGE Read less bytes than requested",
        "run mutable fails INVALID_ARGUMENT is not initializable",
    ],
);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let [delimiter] = attrs.str("delimiter")?.as_bytes() else {
        return Err(invalid_argument!("delimiter should be only 1 char"));
    };
    let format = Format {
        key: Place::of(attrs.int("key_index")?)?,
        value: Place::of(attrs.int("value_index")?)?,
        lines: u64::try_from(attrs.int("vocab_size")?).ok(),
        delimiter: *delimiter,
        offset: attrs.int("offset")?,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let table = table(ctx)?;
        let filled = table.fixed(|fixed| fixed.is_initialized);
        let is_filled = filled.ok_or_else(|| not_initializable(ctx, &table))?;
        let name = ctx.input(1)?;
        ensure!(
            name.rank() == 0,
            invalid_argument,
            "filename should be a single string, but got {}",
            name.shape()
        );
        let name = String::from_utf8_lossy(&name.to_scalar::<TString>()?).into_owned();
        ensure!(
            !name.is_empty(),
            invalid_argument,
            "filename cannot be empty."
        );
        check_places(&table, &format)?;
        let types = (table.key_dtype, table.value_dtype);
        let found = read(&name, &format, types, is_filled)?;
        let fill = table.fixed(|fixed| {
            // Whoever came first has filled it, from the same file we trust.
            if fixed.is_initialized {
                return Ok(());
            }
            fixed.fill(found.keys.elements(), |entries| {
                entries.insert(&found.keys, &found.values, Twice::MustAgree)?;
                found.broken.map_or(Ok(()), Err)
            })
        });
        fill.unwrap_or(Ok(()))
    })
}

/// Whether the table's types are those of the places in a line.
fn check_places(table: &Table, format: &Format) -> Result<()> {
    let (key, value) = (table.key_dtype, table.value_dtype);
    let of_line = |dtype| matches!(dtype, DType::I32 | DType::I64 | DType::String);
    let reason = if format.key == Place::LineNumber && key != DType::I64 {
        format!("Key index for line number requires table key dtype of int64, got {key}")
    } else if format.key == Place::WholeLine && !of_line(key) {
        format!("Key index for whole line requires string or integer table key, got {key}")
    } else if format.value == Place::LineNumber && value != DType::I64 {
        format!("Value index for line number requires table value dtype of int64, got {value}")
    } else if format.value == Place::WholeLine && !of_line(value) {
        format!(
            "Value index for whole line requires table value dtype of integer or string, got {value}"
        )
    } else {
        return Ok(());
    };
    Err(invalid_argument!("{reason}"))
}
