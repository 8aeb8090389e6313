//! Turns the wire bytes of a message into text.
//!
//! The bytes come from prost's own encoder, so they fit the schema; should they ever not, the
//! printer stops rather than guesses.

use std::fmt::Write as _;

use prost::encoding::{WireType, decode_key, decode_varint};

use super::schema::{Field, Kind, Message};

/// Appends the text of a message of type `schema`.
pub(super) fn print(schema: &'static Message, wire: &[u8], out: &mut String) {
    fields(schema, wire, 0, out);
}

/// One field's value as found on the wire.
#[derive(Clone, Copy)]
enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

fn fields(schema: &'static Message, wire: &[u8], indent: usize, out: &mut String) {
    let mut values = split(schema, wire).unwrap_or_default();
    if schema.is_map_entry {
        // Encoding leaves out a default key or value; the text shows both.
        for field in schema.fields {
            if !values
                .iter()
                .any(|(present, _)| present.number == field.number)
            {
                values.push((field, default_of(field.kind)));
            }
        }
    }
    // Members of a oneof are encoded together; the text goes by number.
    values.sort_by_key(|(field, _)| field.number);
    for (field, value) in values {
        print_field(field, value, indent, out);
    }
}

fn print_field(field: &Field, value: Value<'_>, indent: usize, out: &mut String) {
    let _ = write!(out, "{:indent$}{}", "", field.name);
    if let (Some(schema), Value::Bytes(body)) = (field.kind.message(), value) {
        out.push_str(" {\n");
        fields(schema, body, indent + 2, out);
        let _ = writeln!(out, "{:indent$}}}", "");
        return;
    }
    out.push_str(": ");
    scalar(field.kind, value, out);
    out.push('\n');
}

fn scalar(kind: Kind, value: Value<'_>, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match (kind, value) {
        (Kind::Bool, Value::Varint(v)) => write!(out, "{}", v != 0),
        (Kind::Int32, Value::Varint(v)) => write!(out, "{}", v as i32),
        (Kind::Int64, Value::Varint(v)) => write!(out, "{}", v as i64),
        (Kind::Enum(_), Value::Varint(v)) => {
            match kind.enumeration().and_then(|e| e.name_of(v as i32)) {
                Some(name) => write!(out, "{name}"),
                None => write!(out, "{}", v as i32),
            }
        }
        (Kind::Float, Value::Fixed32(v)) => float(shortest(f32::from_bits(v)), out),
        (Kind::Double, Value::Fixed64(v)) => float(f64::from_bits(v), out),
        (Kind::String | Kind::Bytes, Value::Bytes(v)) => {
            quote(v, kind == Kind::String, out);
            Ok(())
        }
        (_, Value::Varint(v) | Value::Fixed64(v)) => write!(out, "{v}"),
        (_, Value::Fixed32(v)) => write!(out, "{v}"),
        (_, Value::Bytes(_)) => Ok(()),
    };
}

/// Finds the decimal with six to nine digits that reads back as this float.
fn shortest(value: f32) -> f64 {
    let wide = f64::from(value);
    (6..9)
        .filter_map(|digits: usize| format!("{wide:.0$e}", digits - 1).parse::<f64>().ok())
        .find(|&decimal| decimal as f32 == value)
        .unwrap_or(wide)
}

/// Writes a float in Python's notation: plain from 1e-4 to 1e16, with an exponent outside.
fn float(value: f64, out: &mut String) -> std::fmt::Result {
    if value.is_nan() {
        return write!(out, "nan");
    }
    if value.is_infinite() {
        return write!(out, "{}", if value < 0.0 { "-inf" } else { "inf" });
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        // Debug adds ".0" to whole numbers; it changes to exponents at the same limits or later.
        return write!(out, "{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Writes a quoted string; only text may show its characters beyond ASCII as they are.
fn quote(bytes: &[u8], is_text: bool, out: &mut String) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '"' | '\'' | '\\' => out.extend(['\\', c]),
                ' '..='~' => out.push(c),
                _ if is_text && !c.is_ascii() => out.push(c),
                _ => octal(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
            }
        }
        octal(chunk.invalid(), out);
    }
    out.push('"');
}

fn octal(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "\\{byte:03o}");
    }
}

fn default_of(kind: Kind) -> Value<'static> {
    match kind {
        Kind::String | Kind::Bytes | Kind::Message(_) => Value::Bytes(&[]),
        Kind::Float | Kind::Fixed32 => Value::Fixed32(0),
        Kind::Double | Kind::Fixed64 => Value::Fixed64(0),
        _ => Value::Varint(0),
    }
}

/// Cuts a message into its field values, packed lists into their elements.
fn split<'a>(
    schema: &'static Message,
    mut wire: &'a [u8],
) -> Option<Vec<(&'static Field, Value<'a>)>> {
    let mut values = Vec::new();
    while !wire.is_empty() {
        let (number, wire_type) = decode_key(&mut wire).ok()?;
        let value = take(&mut wire, wire_type)?;
        let Some(field) = schema.field_numbered(number) else {
            continue;
        };
        match (value, natural_type(field.kind)) {
            (Value::Bytes(mut packed), element) if element != WireType::LengthDelimited => {
                while !packed.is_empty() {
                    values.push((field, take(&mut packed, element)?));
                }
            }
            _ => values.push((field, value)),
        }
    }
    Some(values)
}

fn take<'a>(wire: &mut &'a [u8], wire_type: WireType) -> Option<Value<'a>> {
    Some(match wire_type {
        WireType::Varint => Value::Varint(decode_varint(wire).ok()?),
        WireType::ThirtyTwoBit => {
            let (head, rest) = wire.split_first_chunk()?;
            *wire = rest;
            Value::Fixed32(u32::from_le_bytes(*head))
        }
        WireType::SixtyFourBit => {
            let (head, rest) = wire.split_first_chunk()?;
            *wire = rest;
            Value::Fixed64(u64::from_le_bytes(*head))
        }
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(wire).ok()?).ok()?;
            let (head, rest) = wire.split_at_checked(length)?;
            *wire = rest;
            Value::Bytes(head)
        }
        _ => return None,
    })
}

/// How an unpacked value of this kind is encoded.
fn natural_type(kind: Kind) -> WireType {
    match kind {
        Kind::String | Kind::Bytes | Kind::Message(_) => WireType::LengthDelimited,
        Kind::Float | Kind::Fixed32 => WireType::ThirtyTwoBit,
        Kind::Double | Kind::Fixed64 => WireType::SixtyFourBit,
        _ => WireType::Varint,
    }
}
