//! Characters: texts of any encoding taken apart, put together and written in another one.
//!
//! TensorFlow leaves this to ICU. Here the Unicode encodings, ASCII and ISO-8859-1 are decoded as ICU does, the older ones that
//! the Web knows by `encoding_rs`; encodings that nobody else has (EBCDIC, UTF-7, SCSU, …) are refused.

pub(super) mod decode;
pub(super) mod encode;
mod encoding;
pub(super) mod script;
mod script_table;
pub(super) mod transcode;

use tensorfleet_graph::{Exactness, Gradient, OpDef};
use tensorfleet_kernel::Attrs;
use tensorfleet_status::{Result, Status, ensure, invalid_argument};
use tensorfleet_tensor::TString;

use encoding::Symbol;

/// What all these ops have in common.
const UNICODE: OpDef = OpDef {
    gradient: Gradient::Stop("text is not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// The largest code point.
const LAST: u32 = 0x10_ffff;

/// What becomes of malformed places.
#[derive(Clone, Copy)]
struct Repair {
    is_strict: bool,
    ignores: bool,
    replacement: u32,
    /// Control characters count as malformed.
    control: bool,
}

impl Repair {
    fn of(attrs: &Attrs) -> Result<Repair> {
        let errors = attrs.str("errors")?;
        let replacement = u32::try_from(attrs.int("replacement_char")?).unwrap_or(u32::MAX);
        ensure!(
            replacement <= LAST,
            invalid_argument,
            "replacement_char out of unicode codepoint range"
        );
        Ok(Repair {
            is_strict: errors == "strict",
            ignores: errors == "ignore",
            replacement,
            control: attrs.get("replace_control_characters").is_some()
                && attrs.bool("replace_control_characters")?,
        })
    }

    /// The code point that stands for a symbol: none if it is to be left out.
    fn apply(&self, symbol: &Symbol) -> Option<u32> {
        match self.is_bad(symbol) {
            false => Some(symbol.code),
            true if self.ignores => None,
            true => Some(self.replacement),
        }
    }

    fn is_bad(&self, symbol: &Symbol) -> bool {
        symbol.is_malformed || (self.control && symbol.code <= 0x1f)
    }
}

#[cold]
fn malformed() -> Status {
    invalid_argument!("Invalid formatting on input string")
}

/// How text is written.
#[derive(Clone, Copy)]
enum Writing {
    Utf8,
    Utf16,
    Utf32,
}

impl Writing {
    /// The attr `output_encoding`.
    fn of(attrs: &Attrs) -> Result<Writing> {
        match attrs.str("output_encoding")? {
            "UTF-8" => Ok(Writing::Utf8),
            "UTF-16-BE" => Ok(Writing::Utf16),
            "UTF-32-BE" => Ok(Writing::Utf32),
            other => Err(invalid_argument!(
                "Invalid encoding \"{other}\": Should be one of: UTF-8, UTF-16-BE, UTF-32-BE"
            )),
        }
    }

    /// The text of these code points, none above the largest. Surrogates, which only a replacement can be, are written as they
    /// are where the encoding has a way to.
    fn text(self, codes: &[u32]) -> TString {
        let mut out = Vec::with_capacity(codes.len());
        for code in codes {
            let character = char::from_u32(*code);
            match self {
                Writing::Utf8 => {
                    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Writing::Utf16 => match character {
                    Some(character) => character
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| out.extend_from_slice(&unit.to_be_bytes())),
                    None => out.extend_from_slice(&(*code as u16).to_be_bytes()),
                },
                Writing::Utf32 => out.extend_from_slice(&code.to_be_bytes()),
            }
        }
        out.into()
    }
}
