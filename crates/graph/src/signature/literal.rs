//! Attribute values as text: `true`, `-1`, `0.5`, `'SAME'`, `DT_FLOAT`, `[1, 2]`, `{dim { size: 2 }}`.

use bytes::Bytes;
use tensorfleet_kernel::{AttrList, AttrValue, FuncRef};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use super::{AttrKind, Scalar};

/// Parses an attribute value of this kind. Shapes may also be written `[2,?]` and strings without quotes.
pub fn parse_attr_value(text: &str, kind: AttrKind) -> Result<AttrValue> {
    let mut cursor = Cursor::new(text);
    let parsed = value(&mut cursor, kind).filter(|_| cursor.at_end());
    if let Some(parsed) = parsed {
        return Ok(parsed);
    }
    if kind.scalar == Scalar::String && !kind.is_list {
        return Ok(AttrValue::S(Bytes::copy_from_slice(text.as_bytes())));
    }
    Err(invalid_argument!("'{text}' is no {}", kind.name()))
}

/// Reads a value of this kind.
pub(super) fn value(cursor: &mut Cursor<'_>, kind: AttrKind) -> Option<AttrValue> {
    if !kind.is_list {
        return scalar(cursor, kind.scalar);
    }
    if !cursor.eat("[") {
        return None;
    }
    let mut values = Vec::new();
    while !cursor.eat("]") {
        values.push(scalar(cursor, kind.scalar)?);
        cursor.eat(",");
    }
    Some(AttrValue::List(collect(values)?))
}

/// A list of values, all of the kind of the first.
pub(crate) fn collect(values: Vec<AttrValue>) -> Option<AttrList> {
    macro_rules! gather {
        ($variant:ident) => {
            AttrList::$variant(
                values
                    .into_iter()
                    .map(|value| match value {
                        AttrValue::$variant(inner) => Some(inner),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()?,
            )
        };
    }
    Some(match values.first() {
        None => AttrList::Empty,
        Some(AttrValue::S(_)) => gather!(S),
        Some(AttrValue::I(_)) => gather!(I),
        Some(AttrValue::F(_)) => gather!(F),
        Some(AttrValue::B(_)) => gather!(B),
        Some(AttrValue::Type(_)) => gather!(Type),
        Some(AttrValue::Shape(_)) => gather!(Shape),
        Some(AttrValue::Tensor(_)) => gather!(Tensor),
        Some(AttrValue::Func(_)) => gather!(Func),
        Some(AttrValue::List(_) | AttrValue::Placeholder(_)) => return None,
    })
}

fn scalar(cursor: &mut Cursor<'_>, kind: Scalar) -> Option<AttrValue> {
    Some(match kind {
        Scalar::String => AttrValue::S(cursor.quoted()?.into()),
        Scalar::Int => AttrValue::I(cursor.number()?.parse().ok()?),
        Scalar::Float => AttrValue::F(cursor.number()?.parse().ok()?),
        Scalar::Bool => AttrValue::B(match cursor.word()? {
            "true" => true,
            "false" => false,
            _ => return None,
        }),
        Scalar::Type => AttrValue::Type(DType::from_name(cursor.word()?)?.into()),
        Scalar::Shape => AttrValue::Shape(shape(cursor)?),
        Scalar::Tensor => AttrValue::Tensor(tensor(cursor)?),
        Scalar::Func => AttrValue::Func(FuncRef {
            name: cursor.word()?.into(),
            ..FuncRef::default()
        }),
    })
}

/// A shape: `[2,?]`, `?` for unknown rank, or the text-format fields `{dim { size: 2 }}`, `{unknown_rank: true}`.
fn shape(cursor: &mut Cursor<'_>) -> Option<PartialShape> {
    if cursor.eat("?") {
        return Some(PartialShape::unknown());
    }
    let mut dims = Vec::new();
    if cursor.eat("[") {
        while !cursor.eat("]") {
            dims.push(if cursor.eat("?") {
                -1
            } else {
                cursor.number()?.parse().ok()?
            });
            cursor.eat(",");
        }
        return Some(PartialShape::new(&dims));
    }
    if !cursor.eat("{") {
        return None;
    }
    while !cursor.eat("}") {
        if cursor.eat("unknown_rank") {
            (cursor.eat(":") && cursor.eat("true") && cursor.eat("}")).then_some(())?;
            return Some(PartialShape::unknown());
        }
        (cursor.eat("dim") && cursor.eat("{") && cursor.eat("size") && cursor.eat(":"))
            .then_some(())?;
        dims.push(cursor.number()?.parse().ok()?);
        cursor.eat("}").then_some(())?;
    }
    Some(PartialShape::new(&dims))
}

/// A tensor literal: `float[2]{1, 2}`.
fn tensor(cursor: &mut Cursor<'_>) -> Option<Tensor> {
    let start = cursor.rest;
    let end = start.find('}')? + 1;
    let parsed = crate::text::parse_literal(&start[..end]).ok()?;
    cursor.rest = &start[end..];
    Some(parsed)
}

/// Reads tokens off a text.
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text.trim() }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.trim_start().chars().next()
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest.trim().is_empty()
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> Option<&'a str> {
        let text = self.rest.trim_start();
        let end = text.find(|c| !accept(c)).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.take_while(|c| c.is_alphanumeric() || c == '_')
    }

    pub(super) fn number(&mut self) -> Option<&'a str> {
        self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'))
    }

    /// A single-quoted string with backslash escapes.
    pub(super) fn quoted(&mut self) -> Option<Vec<u8>> {
        self.eat("'").then_some(())?;
        let mut bytes = Vec::new();
        let mut chars = self.rest.char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '\'' => {
                    self.rest = &self.rest[index + 1..];
                    return Some(bytes);
                }
                '\\' => bytes.push(match chars.next()?.1 {
                    'n' => b'\n',
                    't' => b'\t',
                    'r' => b'\r',
                    other => u8::try_from(other).ok()?,
                }),
                _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        None
    }
}
