//! `DecodeCSV`: records of text as columns.
//!
//! TensorFlow: DecodeCSV(records: string, record_defaults: OUT_TYPE) -> output: OUT_TYPE, each of the shape of the records,
//! with attrs field_delim: string = ",", use_quote_delim: bool = true, na_value: string = "", select_cols: list(int) = []. A
//! default without elements means that the field must be there.

use std::borrow::Cow;

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, f64s, i32s, i64s, strs};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, TString, Tensor};

pub(crate) static OP: OpDef = OpDef {
    name: "DecodeCSV",
    inputs: &["records: string", "record_defaults: OUT_TYPE"],
    outputs: &["output: OUT_TYPE"],
    attrs: &[
        "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
        "field_delim: string = ','",
        "use_quote_delim: bool = true",
        "na_value: string = ''",
        "select_cols: list(int) = []",
    ],
    infer: infer_columns,
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "a column of each type",
            &[
                strs(
                    &[2],
                    &["1,2,3.5,4.25,five", "\n-6, 7 ,8e1,inf,\"n\"\"i, ne\""],
                ),
                i32s(&[0], &[]),
                i64s(&[], &[0]),
                f32s(&[0], &[]),
                f64s(&[1], &[0.0]),
                strs(&[0], &[]),
            ],
            &[
                i32s(&[2], &[1, -6]),
                i64s(&[2], &[2, 7]),
                f32s(&[2], &[3.5, 80.0]),
                f64s(&[2], &[4.25, f64::INFINITY]),
                strs(&[2], &["five", "n\"i, ne"]),
            ],
        ),
        ex_attrs(
            "defaults for what is missing",
            &[("na_value", "NA"), ("field_delim", "|")],
            &[
                strs(&[2, 1], &["NA|x", "3|"]),
                i32s(&[1], &[9]),
                strs(&[], &["none"]),
            ],
            &[i32s(&[2, 1], &[9, 3]), strs(&[2, 1], &["x", "none"])],
        ),
        ex_attrs(
            "some columns",
            &[("select_cols", "[0, 2]")],
            &[strs(&[], &["1,x,2,y"]), i32s(&[0], &[]), i32s(&[0], &[])],
            &[i32s(&[], &[1]), i32s(&[], &[2])],
        ),
        ex_attrs(
            "quotes are letters",
            &[("use_quote_delim", "false")],
            &[strs(&[1], &["\"a,b\""]), strs(&[0], &[]), strs(&[0], &[])],
            &[strs(&[1], &["\"a"]), strs(&[1], &["b\""])],
        ),
        ex(
            "no records",
            &[strs(&[0], &[]), i32s(&[0], &[])],
            &[i32s(&[0], &[])],
        ),
        ex_err(
            "too few fields",
            &[],
            &[strs(&[2], &["1,2", "3"]), i32s(&[0], &[]), i32s(&[0], &[])],
            Code::InvalidArgument,
            "Expect 2 fields but have 1 in record 1",
        ),
        ex_err(
            "required",
            &[],
            &[strs(&[1], &["1,"]), i32s(&[0], &[]), i32s(&[0], &[])],
            Code::InvalidArgument,
            "Field 1 is required but missing in record 0!",
        ),
        ex_err(
            "no number",
            &[],
            &[strs(&[1], &["1.5"]), i32s(&[0], &[])],
            Code::InvalidArgument,
            "Field 0 in record 0 is not a valid int32: 1.5",
        ),
        ex_err(
            "a quote inside",
            &[],
            &[strs(&[1], &["a\"b"]), strs(&[0], &[])],
            Code::InvalidArgument,
            "Unquoted fields cannot have quotes/CRLFs inside",
        ),
        ex_err(
            "a quote inside quotes",
            &[],
            &[strs(&[1], &["\"a\"b\""]), strs(&[0], &[])],
            Code::InvalidArgument,
            "Quote inside a string has to be escaped by another quote",
        ),
        ex_err(
            "a quote that is not closed",
            &[],
            &[strs(&[1], &["\"a"]), strs(&[0], &[])],
            Code::InvalidArgument,
            "Quoted field has to end with quote followed by delim or end",
        ),
        ex_err(
            "two defaults",
            &[],
            &[strs(&[1], &["a"]), strs(&[2], &["b", "c"])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "a long delimiter",
            &[("field_delim", "||")],
            &[strs(&[1], &["a"]), strs(&[0], &[])],
            Code::InvalidArgument,
            "field_delim should be only 1 char",
        ),
        ex_err(
            "columns out of order",
            &[("select_cols", "[1, 0]")],
            &[strs(&[1], &["a,b"]), strs(&[0], &[]), strs(&[0], &[])],
            Code::InvalidArgument,
            "select_cols should be strictly increasing indices",
        ),
    ],
    ..OpDef::BLANK
};

fn infer_columns(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..ctx.num_outputs() {
        let default = ctx.input(index + 1);
        ensure!(
            default.rank().unwrap_or(0) <= 1 && default.dim(0).unwrap_or(0) <= 1,
            invalid_argument,
            "Shape of a default must be a length-0 or length-1 vector, or a scalar."
        );
        ctx.set(index, ctx.input(0).clone());
    }
    Ok(())
}

/// What the attributes say of a record.
struct Layout {
    delimiter: u8,
    quotes: bool,
    na: TString,
    /// Sorted; all columns if there are none.
    select: Vec<usize>,
    dtypes: Vec<DType>,
}

impl Layout {
    fn of(node: &NodeInfo) -> Result<Layout> {
        let attrs = &node.attrs;
        let dtypes = attrs.dtypes("OUT_TYPE")?;
        let select = attrs.ints("select_cols")?;
        ensure!(
            select.is_empty() || select.len() == dtypes.len(),
            invalid_argument,
            "select_cols should match output size"
        );
        ensure!(
            select.is_sorted_by(|a, b| a < b),
            invalid_argument,
            "select_cols should be strictly increasing indices"
        );
        let select = select.iter().map(|column| {
            usize::try_from(*column)
                .map_err(|_| invalid_argument!("select_cols should be non-negative indices"))
        });
        let [delimiter] = attrs.bytes("field_delim")?[..] else {
            return Err(invalid_argument!("field_delim should be only 1 char"));
        };
        Ok(Layout {
            delimiter,
            quotes: attrs.bool("use_quote_delim")?,
            na: attrs.bytes("na_value")?.into(),
            select: select.collect::<Result<_>>()?,
            dtypes,
        })
    }

    /// The fields of a record that are wanted, as far as it has them.
    fn fields<'a>(&self, record: &'a [u8], out: &mut Vec<Cow<'a, [u8]>>) -> Result<()> {
        let mut rest = record;
        let mut column = 0;
        let wanted = |column: usize, found: usize| {
            self.select.is_empty() || self.select.get(found) == Some(&column)
        };
        while let Some(first) = rest.first() {
            // Ends of lines count only within a field.
            if matches!(first, b'\n' | b'\r') {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let field = match self.quotes && *first == b'"' {
                true => self.quoted(&mut rest)?,
                false => Cow::Borrowed(self.unquoted(&mut rest)?),
            };
            if wanted(column, out.len()) {
                out.push(field);
                if out.len() == self.select.len() {
                    return Ok(());
                }
            }
            column += 1;
        }
        if record.last() == Some(&self.delimiter) && wanted(column, out.len()) {
            out.push(Cow::Borrowed(&[]));
        }
        Ok(())
    }

    fn unquoted<'a>(&self, rest: &mut &'a [u8]) -> Result<&'a [u8]> {
        let end = rest.iter().position(|byte| *byte == self.delimiter);
        let (field, behind) = rest.split_at(end.unwrap_or(rest.len()));
        *rest = behind.get(1..).unwrap_or_default();
        let refused = |byte: &u8| matches!(byte, b'\n' | b'\r') || (self.quotes && *byte == b'"');
        ensure!(
            !field.iter().any(refused),
            invalid_argument,
            "Unquoted fields cannot have quotes/CRLFs inside"
        );
        Ok(field)
    }

    /// A field from its quote on: it ends with a quote that stands before a delimiter or last.
    fn quoted(&self, rest: &mut &[u8]) -> Result<Cow<'static, [u8]>> {
        let body = rest.get(1..).unwrap_or_default();
        let mut field = Vec::new();
        let mut at = 0;
        loop {
            let end = match (body.get(at), body.get(at + 1)) {
                (Some(b'"'), Some(next)) if *next == self.delimiter => true,
                (Some(b'"'), Some(b'"')) => {
                    field.push(b'"');
                    at += 2;
                    continue;
                }
                (Some(b'"'), Some(_)) => {
                    return Err(invalid_argument!(
                        "Quote inside a string has to be escaped by another quote"
                    ));
                }
                (Some(b'"'), None) => true,
                (Some(byte), Some(_)) => {
                    field.push(*byte);
                    at += 1;
                    continue;
                }
                _ => false,
            };
            ensure!(
                end,
                invalid_argument,
                "Quoted field has to end with quote followed by delim or end"
            );
            *rest = body.get(at + 2..).unwrap_or_default();
            return Ok(Cow::Owned(field));
        }
    }
}

/// A column while records are read.
enum Column {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Text(Vec<TString>),
}

impl Column {
    fn of(dtype: DType) -> Column {
        match dtype {
            DType::F32 => Column::F32(Vec::new()),
            DType::F64 => Column::F64(Vec::new()),
            DType::I32 => Column::I32(Vec::new()),
            DType::I64 => Column::I64(Vec::new()),
            _ => Column::Text(Vec::new()),
        }
    }

    /// Adds a field, or the default; false if it is no such value.
    fn push(&mut self, field: Option<&[u8]>, default: &Tensor) -> Result<bool> {
        match self {
            Column::F32(values) => put(values, field, default, number),
            Column::F64(values) => put(values, field, default, number),
            Column::I32(values) => put(values, field, default, number),
            Column::I64(values) => put(values, field, default, number),
            Column::Text(values) => put(values, field, default, |field| {
                Some(TString::copy_from_slice(field))
            }),
        }
    }

    fn finish(self, shape: Shape) -> Result<Tensor> {
        match self {
            Column::F32(values) => Tensor::from_vec(shape, values),
            Column::F64(values) => Tensor::from_vec(shape, values),
            Column::I32(values) => Tensor::from_vec(shape, values),
            Column::I64(values) => Tensor::from_vec(shape, values),
            Column::Text(values) => Tensor::from_vec(shape, values),
        }
    }
}

fn put<T: Element>(
    values: &mut Vec<T>,
    field: Option<&[u8]>,
    default: &Tensor,
    read: fn(&[u8]) -> Option<T>,
) -> Result<bool> {
    let value = match field {
        Some(field) => read(field),
        None => default.slice::<T>()?.first().cloned(),
    };
    let found = value.is_some();
    values.extend(value);
    Ok(found)
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.trim().parse().ok()
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let layout = Layout::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let records = ctx.input(0)?;
        let mut columns: Vec<Column> = layout.dtypes.iter().copied().map(Column::of).collect();
        for index in 0..columns.len() {
            let default = ctx.input(index + 1)?;
            ensure!(
                default.rank() <= 1,
                invalid_argument,
                "Each record default should be at most rank 1"
            );
            ensure!(
                default.elements() < 2,
                invalid_argument,
                "There should only be 1 default per field but field {index} has {}",
                default.elements()
            );
        }
        let mut fields = Vec::new();
        for (row, record) in records.slice::<TString>()?.iter().enumerate() {
            fields.clear();
            layout.fields(record, &mut fields)?;
            ensure!(
                fields.len() == columns.len(),
                invalid_argument,
                "Expect {} fields but have {} in record {row}",
                columns.len(),
                fields.len()
            );
            for (index, (field, column)) in fields.drain(..).zip(&mut columns).enumerate() {
                let default = ctx.input(index + 1)?;
                let is_missing = field.is_empty() || *field == *layout.na;
                ensure!(
                    !is_missing || !default.is_empty(),
                    invalid_argument,
                    "Field {index} is required but missing in record {row}!"
                );
                ensure!(
                    column.push((!is_missing).then_some(&*field), default)?,
                    invalid_argument,
                    "Field {index} in record {row} is not a valid {}: {}",
                    default.dtype(),
                    String::from_utf8_lossy(&field)
                );
            }
        }
        let shape = records.shape().clone();
        for (index, column) in columns.into_iter().enumerate() {
            ctx.set(index, column.finish(shape.clone())?);
        }
        Ok(())
    })
}
