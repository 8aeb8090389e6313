//! Turns a text into the wire bytes of a message.

use prost::encoding::{WireType, encode_key, encode_varint};

use super::ParseError;
use super::lexer::{Lexer, Token};
use super::schema::{Field, Kind, Message};

/// Blocks may be nested this deep, as in binary messages.
const MAX_DEPTH: usize = 100;

/// Reads `text` as a message of type `schema`; the result is its wire form.
pub(super) fn parse(schema: &'static Message, text: &str) -> Result<Vec<u8>, ParseError> {
    let mut lexer = Lexer::new(text);
    let (at, token) = lexer.next()?;
    let mut parser = Parser {
        lexer,
        at,
        token,
        depth: 0,
    };
    parser.fields(schema, None)
}

/// A lexer with one token of look-ahead.
struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Where `token` starts.
    at: usize,
    token: Token<'a>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, message: impl Into<String>) -> ParseError {
        self.lexer.error(self.at, message)
    }

    fn advance(&mut self) -> Result<Token<'a>, ParseError> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Takes `symbol` if it comes next.
    fn accept(&mut self, symbol: char) -> Result<bool, ParseError> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: char) -> Result<(), ParseError> {
        if self.accept(symbol)? {
            return Ok(());
        }
        Err(self.error(format!(
            "expected {symbol:?}, found {}",
            self.token.describe()
        )))
    }

    /// Reads fields up to the closing symbol, or up to the end of the text if there is none.
    fn fields(
        &mut self,
        schema: &'static Message,
        close: Option<char>,
    ) -> Result<Vec<u8>, ParseError> {
        let mut wire = Vec::new();
        let mut seen = Vec::new();
        loop {
            match (&self.token, close) {
                (Token::End, None) => return Ok(wire),
                (Token::Symbol(symbol), Some(close)) if *symbol == close => {
                    self.advance()?;
                    return Ok(wire);
                }
                (Token::Symbol('['), _) => self.expanded_any(schema, &mut wire)?,
                (Token::Ident(name), _) => {
                    let name = *name;
                    let Some(field) = schema.field_named(name) else {
                        return Err(self.error(format!("{} has no field {name:?}", schema.name)));
                    };
                    self.check_single(schema, field, &mut seen)?;
                    self.advance()?;
                    self.values(field, &mut wire)?;
                }
                (token, _) => {
                    let wanted = close.map_or(String::new(), |close| format!(" or {close:?}"));
                    let found = token.describe();
                    return Err(self.error(format!("expected a field name{wanted}, found {found}")));
                }
            }
            if !self.accept(',')? {
                self.accept(';')?;
            }
        }
    }

    /// Rejects a second value for a single field, or for the oneof that it belongs to.
    fn check_single(
        &self,
        schema: &Message,
        field: &'static Field,
        seen: &mut Vec<&'static Field>,
    ) -> Result<(), ParseError> {
        if field.repeated {
            return Ok(());
        }
        for earlier in seen.iter() {
            if earlier.number == field.number {
                return Err(self.error(format!("{} has one {:?} only", schema.name, field.name)));
            }
            if earlier.oneof.is_some() && earlier.oneof == field.oneof {
                return Err(self.error(format!(
                    "{} cannot have both {:?} and {:?}",
                    schema.name, earlier.name, field.name
                )));
            }
        }
        seen.push(field);
        Ok(())
    }

    /// Reads what follows a field's name: one value or a bracketed list of values.
    fn values(&mut self, field: &'static Field, wire: &mut Vec<u8>) -> Result<(), ParseError> {
        let colon = self.accept(':')?;
        if !colon && field.kind.message().is_none() {
            self.expect(':')?;
        }
        if !field.repeated || !self.accept('[')? {
            return self.value(field, wire);
        }
        if self.accept(']')? {
            return Ok(());
        }
        loop {
            self.value(field, wire)?;
            if self.accept(']')? {
                return Ok(());
            }
            self.expect(',')?;
        }
    }

    fn value(&mut self, field: &'static Field, wire: &mut Vec<u8>) -> Result<(), ParseError> {
        match field.kind.message() {
            Some(schema) => {
                let body = self.block(schema)?;
                write_bytes(field.number, &body, wire);
                Ok(())
            }
            None => self.scalar(field, wire),
        }
    }

    /// Reads `{…}` or `<…>`.
    fn block(&mut self, schema: &'static Message) -> Result<Vec<u8>, ParseError> {
        let close = if self.token == Token::Symbol('<') {
            '>'
        } else {
            '}'
        };
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("blocks are nested deeper than {MAX_DEPTH}")));
        }
        if close == '>' {
            self.advance()?;
        } else {
            self.expect('{')?;
        }
        self.depth += 1;
        let body = self.fields(schema, Some(close))?;
        self.depth -= 1;
        Ok(body)
    }

    /// Reads `[host/full.name] {…}`, the content of an `Any` spelled out.
    fn expanded_any(
        &mut self,
        schema: &'static Message,
        wire: &mut Vec<u8>,
    ) -> Result<(), ParseError> {
        let start = self.at;
        self.expect('[')?;
        let mut url = String::new();
        while !self.accept(']')? {
            match self.advance()? {
                Token::Ident(text) | Token::Number(text) => url.push_str(text),
                Token::Symbol(symbol @ ('.' | '/' | '-')) => url.push(symbol),
                other => {
                    let found = other.describe();
                    return Err(self
                        .lexer
                        .error(start, format!("a type name cannot have {found}")));
                }
            }
        }
        let name = url.rsplit('/').next().unwrap_or_default();
        let content = Message::find(name).filter(|_| schema.name == "google.protobuf.Any");
        let Some(content) = content else {
            return Err(self
                .lexer
                .error(start, format!("{} has no field [{url}]", schema.name)));
        };
        self.accept(':')?;
        let body = self.block(content)?;
        write_bytes(1, url.as_bytes(), wire);
        write_bytes(2, &body, wire);
        Ok(())
    }

    fn scalar(&mut self, field: &Field, wire: &mut Vec<u8>) -> Result<(), ParseError> {
        let number = field.number;
        match field.kind {
            Kind::Int32 | Kind::Enum(_) if matches!(self.token, Token::Ident(_)) => {
                let value = self.enum_name(field)?;
                write_varint(number, i64::from(value) as u64, wire);
            }
            Kind::Int32 | Kind::Enum(_) => {
                let value = self.integer(i32::MIN.into(), i32::MAX.into())?;
                write_varint(number, value as i64 as u64, wire);
            }
            Kind::Int64 => {
                let value = self.integer(i64::MIN.into(), i64::MAX.into())?;
                write_varint(number, value as i64 as u64, wire);
            }
            Kind::Uint32 => write_varint(number, self.integer(0, u32::MAX.into())? as u64, wire),
            Kind::Uint64 => write_varint(number, self.integer(0, u64::MAX.into())? as u64, wire),
            Kind::Fixed32 => {
                let value = self.integer(0, u32::MAX.into())? as u32;
                encode_key(number, WireType::ThirtyTwoBit, wire);
                wire.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Fixed64 => {
                let value = self.integer(0, u64::MAX.into())? as u64;
                encode_key(number, WireType::SixtyFourBit, wire);
                wire.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Float => {
                let value = self.float()? as f32;
                encode_key(number, WireType::ThirtyTwoBit, wire);
                wire.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Double => {
                let value = self.float()?;
                encode_key(number, WireType::SixtyFourBit, wire);
                wire.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Bool => write_varint(number, self.boolean()?.into(), wire),
            Kind::String | Kind::Bytes => {
                let at = self.at;
                let value = self.quoted()?;
                if field.kind == Kind::String && std::str::from_utf8(&value).is_err() {
                    return Err(self
                        .lexer
                        .error(at, format!("{:?} is not UTF-8", field.name)));
                }
                write_bytes(number, &value, wire);
            }
            Kind::Message(_) => return Err(self.error("expected a block")),
        }
        Ok(())
    }

    fn enum_name(&mut self, field: &Field) -> Result<i32, ParseError> {
        let (Token::Ident(name), Some(enumeration)) = (&self.token, field.kind.enumeration())
        else {
            return Err(self.error(format!(
                "expected a number, found {}",
                self.token.describe()
            )));
        };
        let Some(number) = enumeration.number_of(name) else {
            return Err(self.error(format!("{} has no value {name:?}", enumeration.name)));
        };
        self.advance()?;
        Ok(number)
    }

    fn integer(&mut self, min: i128, max: i128) -> Result<i128, ParseError> {
        let start = self.at;
        let negative = self.accept('-')?;
        let Token::Number(text) = self.token else {
            return Err(self.error(format!(
                "expected an integer, found {}",
                self.token.describe()
            )));
        };
        let (digits, base) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (text.get(2..), 16),
            [b'0', _, ..] => (text.get(1..), 8),
            _ => (Some(text), 10),
        };
        let parsed = digits.and_then(|digits| i128::from_str_radix(digits, base).ok());
        let Some(magnitude) = parsed else {
            return Err(self.error(format!("{text:?} is no integer")));
        };
        let value = if negative { -magnitude } else { magnitude };
        if value < min || value > max {
            let message = format!("{value} is not in the range {min} to {max}");
            return Err(self.lexer.error(start, message));
        }
        self.advance()?;
        Ok(value)
    }

    fn float(&mut self) -> Result<f64, ParseError> {
        let negative = self.accept('-')?;
        let value = match self.token {
            Token::Number(text) => {
                let digits = text.strip_suffix(['f', 'F']).unwrap_or(text);
                digits.parse().ok()
            }
            Token::Ident(text) if text.eq_ignore_ascii_case("nan") => Some(f64::NAN),
            Token::Ident(text)
                if text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity") =>
            {
                Some(f64::INFINITY)
            }
            _ => None,
        };
        let Some(value) = value else {
            return Err(self.error(format!(
                "expected a number, found {}",
                self.token.describe()
            )));
        };
        self.advance()?;
        Ok(if negative { -value } else { value })
    }

    fn boolean(&mut self) -> Result<bool, ParseError> {
        let value = match self.token {
            Token::Ident("true" | "True" | "t") | Token::Number("1") => true,
            Token::Ident("false" | "False" | "f") | Token::Number("0") => false,
            _ => {
                let found = self.token.describe();
                return Err(self.error(format!("expected true or false, found {found}")));
            }
        };
        self.advance()?;
        Ok(value)
    }

    /// Reads one or more adjacent strings, which count as one.
    fn quoted(&mut self) -> Result<Vec<u8>, ParseError> {
        let mut value = Vec::new();
        let mut found = false;
        while let Token::Quoted(part) = &mut self.token {
            value.append(part);
            found = true;
            self.advance()?;
        }
        if found {
            return Ok(value);
        }
        Err(self.error(format!(
            "expected a string, found {}",
            self.token.describe()
        )))
    }
}

fn write_varint(number: u32, value: u64, wire: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, wire);
    encode_varint(value, wire);
}

fn write_bytes(number: u32, value: &[u8], wire: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, wire);
    encode_varint(value.len() as u64, wire);
    wire.extend_from_slice(value);
}
