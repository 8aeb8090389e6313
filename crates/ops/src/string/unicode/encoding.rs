//! [`Encoding`]: how bytes are read as characters, one by one and with the number of bytes of each.

use encoding_rs as web;
use tensorfleet_status::{Result, invalid_argument};

/// One character, or a malformed place.
pub(super) struct Symbol {
    pub(super) code: u32,
    /// How many bytes it took, with marks and escapes before it.
    pub(super) bytes: usize,
    pub(super) is_malformed: bool,
}

/// In which order the bytes of a unit stand; a mark at the start of the text may say so, else the largest comes first.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Big,
    Little,
    ByMark,
}

/// An encoding that texts may come in.
#[derive(Clone, Copy)]
pub(super) struct Encoding(Kind);

#[derive(Clone, Copy)]
enum Kind {
    Utf8,
    Utf16(Order),
    Utf32(Order),
    Ascii,
    Latin1,
    Web(&'static web::Encoding),
}

impl Encoding {
    /// The encoding of this name; case, hyphens and underscores do not count.
    pub(super) fn named(name: &str) -> Result<Encoding> {
        let key: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let kind = match key.to_ascii_lowercase().as_str() {
            "utf8" => Kind::Utf8,
            "utf16" | "ucs2" | "unicode" | "iso10646ucs2" => Kind::Utf16(Order::ByMark),
            "utf16be" | "xutf16be" | "unicodebigunmarked" => Kind::Utf16(Order::Big),
            "utf16le" | "xutf16le" | "unicodelittleunmarked" => Kind::Utf16(Order::Little),
            "utf32" | "ucs4" | "iso10646ucs4" => Kind::Utf32(Order::ByMark),
            "utf32be" => Kind::Utf32(Order::Big),
            "utf32le" => Kind::Utf32(Order::Little),
            "ascii" | "usascii" | "us" | "ascii7" | "iso646us" | "ansix341968" | "ibm367"
            | "cp367" => Kind::Ascii,
            "iso88591" | "88591" | "latin1" | "l1" | "isoir100" | "ibm819" | "cp819" => {
                Kind::Latin1
            }
            key => Kind::Web(of_web(key).ok_or_else(|| {
                invalid_argument!("Could not create converter for input encoding: {name}")
            })?),
        };
        Ok(Encoding(kind))
    }

    /// Hands every symbol of a text on, in order.
    pub(super) fn read(self, text: &[u8], mut each: impl FnMut(Symbol)) {
        match self.0 {
            Kind::Utf8 => read_utf8(text, each),
            Kind::Utf16(order) => read_units(text, order, 2, utf16, each),
            Kind::Utf32(order) => read_units(text, order, 4, utf32, each),
            Kind::Ascii => text.iter().for_each(|byte| match byte {
                0..0x80 => each(valid(u32::from(*byte), 1)),
                _ => each(malformed(1)),
            }),
            Kind::Latin1 => text
                .iter()
                .for_each(|byte| each(valid(u32::from(*byte), 1))),
            Kind::Web(encoding) => read_web(text, encoding, each),
        }
    }
}

/// The encodings of the Web under the names of ICU, without hyphens.
fn of_web(key: &str) -> Option<&'static web::Encoding> {
    Some(match key {
        "big5" | "big5hkscs" | "cnbig5" | "windows950" | "cp950" => web::BIG5,
        "eucjp" | "xeucjp" => web::EUC_JP,
        "euckr" | "ksc5601" | "ksc56011987" | "korean" | "windows949" | "cp949" => web::EUC_KR,
        "shiftjis" | "sjis" | "xsjis" | "mskanji" | "windows31j" | "windows932" | "cp932"
        | "csshiftjis" => web::SHIFT_JIS,
        "iso2022jp" => web::ISO_2022_JP,
        "gb18030" => web::GB18030,
        "gbk" | "gb2312" | "gb23121980" | "euccn" | "windows936" | "cp936" => web::GBK,
        "ibm866" | "cp866" | "866" => web::IBM866,
        "iso88592" | "latin2" | "l2" => web::ISO_8859_2,
        "iso88593" | "latin3" | "l3" => web::ISO_8859_3,
        "iso88594" | "latin4" | "l4" => web::ISO_8859_4,
        "iso88595" | "cyrillic" => web::ISO_8859_5,
        "iso88596" | "arabic" => web::ISO_8859_6,
        "iso88597" | "greek" | "greek8" => web::ISO_8859_7,
        "iso88598" | "hebrew" => web::ISO_8859_8,
        "iso88599" | "latin5" | "l5" | "windows1254" | "cp1254" => web::WINDOWS_1254,
        "iso885910" | "latin6" | "l6" => web::ISO_8859_10,
        "iso885913" => web::ISO_8859_13,
        "iso885914" | "latin8" | "l8" => web::ISO_8859_14,
        "iso885915" | "latin9" => web::ISO_8859_15,
        "koi8r" | "koi8" => web::KOI8_R,
        "koi8u" => web::KOI8_U,
        "macintosh" | "mac" | "macroman" => web::MACINTOSH,
        "xmaccyrillic" | "maccy" | "maccyrillic" => web::X_MAC_CYRILLIC,
        "tis620" | "iso885911" | "windows874" | "cp874" => web::WINDOWS_874,
        "windows1250" | "cp1250" => web::WINDOWS_1250,
        "windows1251" | "cp1251" => web::WINDOWS_1251,
        "windows1252" | "cp1252" => web::WINDOWS_1252,
        "windows1253" | "cp1253" => web::WINDOWS_1253,
        "windows1255" | "cp1255" => web::WINDOWS_1255,
        "windows1256" | "cp1256" => web::WINDOWS_1256,
        "windows1257" | "cp1257" => web::WINDOWS_1257,
        "windows1258" | "cp1258" => web::WINDOWS_1258,
        _ => return None,
    })
}

fn valid(code: u32, bytes: usize) -> Symbol {
    Symbol {
        code,
        bytes,
        is_malformed: false,
    }
}

fn malformed(bytes: usize) -> Symbol {
    Symbol {
        code: u32::from(char::REPLACEMENT_CHARACTER),
        bytes,
        is_malformed: true,
    }
}

/// A malformed place is as long as what could still have become a character.
fn read_utf8(text: &[u8], mut each: impl FnMut(Symbol)) {
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            each(valid(u32::from(character), character.len_utf8()));
        }
        if !chunk.invalid().is_empty() {
            each(malformed(chunk.invalid().len()));
        }
    }
}

/// Text in units of `size` bytes, of which `next` takes as many as make up a symbol.
fn read_units(
    text: &[u8],
    order: Order,
    size: usize,
    next: fn(&[u8], Order) -> Symbol,
    mut each: impl FnMut(Symbol),
) {
    let (mut order, mut skipped) = (order, 0);
    if order == Order::ByMark {
        (order, skipped) = match (size, text) {
            (2, [0xfe, 0xff, ..]) | (4, [0, 0, 0xfe, 0xff, ..]) => (Order::Big, size),
            (2, [0xff, 0xfe, ..]) | (4, [0xff, 0xfe, 0, 0, ..]) => (Order::Little, size),
            _ => (Order::Big, 0),
        };
        // ICU has no answer for a mark alone but its end sign, and TensorFlow takes that for a character.
        if skipped == text.len() && skipped > 0 {
            return each(valid(0xffff, skipped));
        }
    }
    let mut rest = text.get(skipped..).unwrap_or_default();
    while !rest.is_empty() {
        let mut symbol = next(rest, order);
        rest = rest.get(symbol.bytes..).unwrap_or_default();
        symbol.bytes += std::mem::take(&mut skipped);
        each(symbol);
    }
}

fn utf16(rest: &[u8], order: Order) -> Symbol {
    let unit = |at: usize| match (rest.get(at), rest.get(at + 1), order) {
        (Some(low), Some(high), Order::Little) => Some(u16::from_le_bytes([*low, *high])),
        (Some(high), Some(low), _) => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    };
    match (unit(0), unit(2)) {
        (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
            let code = 0x1_0000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
            valid(code, 4)
        }
        // Cut off: what is left cannot become a character.
        (None | Some(0xd800..0xdc00), None) => malformed(rest.len()),
        (Some(0xd800..0xe000), _) => malformed(2),
        (Some(unit), _) => valid(u32::from(unit), 2),
        (None, Some(_)) => malformed(rest.len()),
    }
}

fn utf32(rest: &[u8], order: Order) -> Symbol {
    let Some(unit) = rest.first_chunk::<4>() else {
        return malformed(rest.len());
    };
    let code = match order {
        Order::Little => u32::from_le_bytes(*unit),
        _ => u32::from_be_bytes(*unit),
    };
    match char::from_u32(code) {
        Some(_) => valid(code, 4),
        None => malformed(4),
    }
}

/// The decoder is given one byte at a time, so that it is known which ones a character took.
fn read_web(text: &[u8], encoding: &'static web::Encoding, mut each: impl FnMut(Symbol)) {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut units = [0u16; 16];
    let (mut at, mut start) = (0, 0);
    loop {
        let next = text.get(at..at + 1).unwrap_or_default();
        let is_last = next.is_empty();
        let (result, read, written) =
            decoder.decode_to_utf16_without_replacement(next, &mut units, is_last);
        at += read;
        for code in char::decode_utf16(units.iter().copied().take(written)) {
            let code = code.map_or(u32::from(char::REPLACEMENT_CHARACTER), u32::from);
            each(valid(code, at - start));
            start = at;
        }
        match result {
            web::DecoderResult::Malformed(..) => {
                each(malformed(at - start));
                start = at;
            }
            web::DecoderResult::InputEmpty if is_last => return,
            web::DecoderResult::InputEmpty => {}
            // Cannot be, with room for sixteen.
            web::DecoderResult::OutputFull => return,
        }
    }
}
