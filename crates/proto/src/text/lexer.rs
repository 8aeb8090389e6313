//! Cuts a text into tokens.

use super::ParseError;

/// One token; names and numbers are slices of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Ident(&'a str),
    /// An integer or float literal without sign, not yet checked.
    Number(&'a str),
    /// A quoted string with its escapes resolved.
    Quoted(Vec<u8>),
    Symbol(char),
    End,
}

impl Token<'_> {
    /// The token as shown in an error text.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Ident(text) | Token::Number(text) => format!("{text:?}"),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

/// A position in a text that yields one token after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// An error at byte offset `at`.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = before.get(line_start..).unwrap_or_default();
        ParseError {
            line: before.matches('\n').count() + 1,
            column: line_text.chars().count() + 1,
            message: message.into(),
        }
    }

    /// The next token and the byte offset at which it starts.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ParseError> {
        self.skip_blank();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else {
            return Ok((start, Token::End));
        };
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                Token::Ident(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))
            }
            '0'..='9' => Token::Number(self.number()),
            '.' if self
                .rest()
                .chars()
                .nth(1)
                .is_some_and(|c| c.is_ascii_digit()) =>
            {
                Token::Number(self.number())
            }
            '"' | '\'' => Token::Quoted(self.quoted(first)?),
            _ => {
                self.at += first.len_utf8();
                Token::Symbol(first)
            }
        };
        Ok((start, token))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn skip_blank(&mut self) {
        loop {
            self.take_while(|c| c.is_ascii_whitespace() || c == '\x0b');
            if !self.rest().starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    /// Takes all that can belong to a number; a sign only right after a decimal exponent mark.
    fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let is_hex = rest.starts_with("0x") || rest.starts_with("0X");
        let mut after_exponent_mark = false;
        let length = rest
            .find(|c: char| {
                let belongs = c.is_ascii_alphanumeric()
                    || c == '.'
                    || (after_exponent_mark && matches!(c, '+' | '-'));
                after_exponent_mark = !is_hex && matches!(c, 'e' | 'E');
                !belongs
            })
            .unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn quoted(&mut self, quote: char) -> Result<Vec<u8>, ParseError> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let plain = self.take_while(|c| c != quote && c != '\\' && c != '\n');
            out.extend_from_slice(plain.as_bytes());
            match self.rest().chars().next() {
                Some('\\') => self.escape(&mut out)?,
                Some(c) if c == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                _ => return Err(self.error(start, "the string has no closing quote")),
            }
        }
    }

    /// Resolves the escape that starts with the backslash at the current position.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), ParseError> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.rest().chars().next() else {
            return Err(self.error(start, "the string has no closing quote"));
        };
        if ('0'..='7').contains(&letter) {
            let value = self.digits(8, 3).unwrap_or_default();
            let byte = u8::try_from(value)
                .map_err(|_| self.error(start, format!("octal escape \\{value:o} is no byte")))?;
            out.push(byte);
            return Ok(());
        }
        self.at += letter.len_utf8();
        match letter {
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'a' => out.push(0x07),
            'b' => out.push(0x08),
            'f' => out.push(0x0c),
            'v' => out.push(0x0b),
            '\\' | '\'' | '"' | '?' => out.push(letter as u8),
            'x' | 'X' => match self
                .digits(16, 2)
                .and_then(|value| u8::try_from(value).ok())
            {
                Some(byte) => out.push(byte),
                None => return Err(self.error(start, "\\x needs a hexadecimal digit")),
            },
            'u' | 'U' => {
                let length = if letter == 'u' { 4 } else { 8 };
                let end = self.at + length;
                let value = self.digits(16, length).filter(|_| self.at == end);
                let Some(c) = value.and_then(char::from_u32) else {
                    return Err(self.error(
                        start,
                        format!("\\{letter} needs {length} digits of a character"),
                    ));
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err(self.error(start, format!("unknown escape \\{letter}"))),
        }
        Ok(())
    }

    /// Takes up to `limit` digits of a base; `None` if there is none.
    fn digits(&mut self, base: u32, limit: usize) -> Option<u32> {
        let taken = self
            .rest()
            .chars()
            .take(limit)
            .take_while(|c| c.is_digit(base))
            .count();
        let text = self.rest().get(..taken)?;
        self.at += taken;
        u32::from_str_radix(text, base).ok()
    }
}
