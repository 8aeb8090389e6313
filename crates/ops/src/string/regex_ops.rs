//! `StaticRegexFullMatch`, `RegexFullMatch`, `StaticRegexReplace`, `RegexReplace`.
//!
//! TensorFlow uses RE2, whose language the `regex` crate shares, but for a brace that begins no repetition: there it stands for itself.
//! `\1` in a rewrite is the first group, `\0` the match. A rewrite that names a group that is not there changes nothing, and one that is
//! damaged otherwise nothing either, or, if all matches are to be replaced, is read up to the damage.

use regex::bytes::Regex;
use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::TString;

use super::map;

const REGEX: OpDef = OpDef {
    infer: infer::same_as_first,
    gradient: Gradient::Stop("text is not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "StaticRegexFullMatch",
        inputs: &["input: string"],
        outputs: &["output: bool"],
        attrs: &["pattern: string"],
        kernels: &[cpu(&[], build_static_match)],
        examples: &[
            ex_attrs(
                "whole strings only",
                &[("pattern", "'^s3://.*'")],
                &[strs(&[3], &["s3://a/b", "a s3://", ""])],
                &[bools(&[3], &[true, false, false])],
            ),
            ex_attrs(
                "alternatives",
                &[("pattern", "'a|ab'")],
                &[strs(&[2], &["ab", "abc"])],
                &[bools(&[2], &[true, false])],
            ),
            ex_err(
                "bad pattern",
                &[("pattern", "'a('")],
                &[strs(&[1], &["a"])],
                Code::InvalidArgument,
                "pattern",
            ),
        ],
        ..REGEX
    },
    OpDef {
        name: "RegexFullMatch",
        inputs: &["input: string", "pattern: string"],
        outputs: &["output: bool"],
        kernels: &[cpu(&[], build_match)],
        examples: &[ex(
            "digits",
            &[strs(&[2], &["12", "1x"]), strs(&[], &["[0-9]+"])],
            &[bools(&[2], &[true, false])],
        )],
        ..REGEX
    },
    OpDef {
        name: "StaticRegexReplace",
        inputs: &["input: string"],
        outputs: &["output: string"],
        attrs: &[
            "pattern: string",
            "rewrite: string",
            "replace_global: bool = true",
        ],
        kernels: &[cpu(&[], build_static_replace)],
        examples: &[ex_attrs(
            "all",
            &[("pattern", "'a'"), ("rewrite", "'b'")],
            &[strs(&[2], &["banana", "x"])],
            &[strs(&[2], &["bbnbnb", "x"])],
        )],
        ..REGEX
    },
    OpDef {
        name: "RegexReplace",
        inputs: &["input: string", "pattern: string", "rewrite: string"],
        outputs: &["output: string"],
        attrs: &["replace_global: bool = true"],
        kernels: &[cpu(&[], build_replace)],
        examples: &[
            ex(
                "groups",
                &[
                    strs(&[1], &["k=v"]),
                    strs(&[], &["(\\w)=(\\w)"]),
                    strs(&[], &["\\2:\\1"]),
                ],
                &[strs(&[1], &["v:k"])],
            ),
            ex_attrs(
                "first only",
                &[("replace_global", "false")],
                &[strs(&[1], &["aaa"]), strs(&[], &["a"]), strs(&[], &["b"])],
                &[strs(&[1], &["baa"])],
            ),
            ex(
                "nothing, between characters",
                &[
                    strs(&[3], &["", "aé", "xy"]),
                    strs(&[], &["x*"]),
                    strs(&[], &["-"]),
                ],
                &[strs(&[3], &["-", "-a-é-", "-y-"])],
            ),
            ex(
                "braces that repeat nothing",
                &[
                    strs(&[2], &["a{2 a{,3}", "aaaa{x}"]),
                    strs(&[], &["a{2}|a{|{,|{x}"]),
                    strs(&[], &["\\\\"]),
                ],
                &[strs(&[2], &["\\2 \\,3}", "\\\\\\"])],
            ),
            ex(
                "no such group",
                &[
                    strs(&[1], &["a,b"]),
                    strs(&[], &["(a)"]),
                    strs(&[], &["\\2"]),
                ],
                &[strs(&[1], &["a,b"])],
            ),
            ex(
                "a damaged rewrite of all",
                &[
                    strs(&[1], &["a,b"]),
                    strs(&[], &["a"]),
                    strs(&[], &["x\\yz"]),
                ],
                &[strs(&[1], &["x,b"])],
            ),
            ex_attrs(
                "a damaged rewrite of the first",
                &[("replace_global", "false")],
                &[
                    strs(&[1], &["a,b"]),
                    strs(&[], &["a"]),
                    strs(&[], &["x\\yz"]),
                ],
                &[strs(&[1], &["a,b"])],
            ),
        ],
        ..REGEX
    },
];

fn compile(pattern: &[u8]) -> Result<Regex> {
    let shown = || String::from_utf8_lossy(pattern);
    let text = std::str::from_utf8(pattern)
        .map_err(|_| invalid_argument!("Invalid pattern: {}, error: invalid UTF-8", shown()))?;
    Regex::new(&with_plain_braces(text))
        .map_err(|error| invalid_argument!("Invalid pattern: {text}, error: {error}"))
}

/// A regex that matches whole strings only.
fn compile_full(pattern: &[u8]) -> Result<Regex> {
    compile(pattern)?;
    compile(&[b"\\A(?:", pattern, b")\\z"].concat())
}

/// A pattern whose braces that begin no repetition are escaped.
fn with_plain_braces(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                out.push(c);
                let Some(class) = rest.next() else { break };
                out.push(class);
                if matches!(class, 'p' | 'P' | 'x') && rest.as_str().starts_with('{') {
                    rest.next();
                    out.push('{');
                }
            }
            '{' if !is_repetition(rest.as_str()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

/// Whether this goes on as `2}`, `2,}` or `2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    match inside.split_once(',') {
        None => is_number(inside),
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
    }
}

/// What matches are replaced by.
struct Rewrite {
    pieces: Vec<Piece>,
    /// The largest group that is named.
    group: usize,
    is_damaged: bool,
}

enum Piece {
    Text(u8),
    Group(usize),
}

impl Rewrite {
    fn new(rewrite: &[u8]) -> Rewrite {
        let (mut pieces, mut group, mut is_damaged) = (Vec::new(), 0, false);
        let mut rest = rewrite.iter();
        while let Some(byte) = rest.next() {
            let piece = match byte {
                b'\\' => match rest.next() {
                    Some(digit @ b'0'..=b'9') => Some(Piece::Group(usize::from(digit - b'0'))),
                    Some(b'\\') => Some(Piece::Text(b'\\')),
                    _ => None,
                },
                byte => Some(Piece::Text(*byte)),
            };
            if let Some(Piece::Group(found)) = piece {
                group = group.max(found);
            }
            is_damaged |= piece.is_none();
            pieces.extend(piece.filter(|_| !is_damaged));
        }
        Rewrite {
            pieces,
            group,
            is_damaged,
        }
    }
}

fn replace(regex: &Regex, rewrite: &Rewrite, global: bool, value: &TString) -> TString {
    let has_groups = rewrite.group < regex.captures_len();
    if !has_groups || rewrite.is_damaged && !global {
        return value.clone();
    }
    let mut found = regex.capture_locations();
    let (mut out, mut at, mut last, mut count) = (Vec::new(), 0, None, 0);
    while at <= value.len() && (global || count == 0) {
        let Some(whole) = regex.captures_read_at(&mut found, value, at) else {
            break;
        };
        out.extend_from_slice(&value[at..whole.start()]);
        if whole.is_empty() && last == Some(whole.start()) {
            // Nothing where the last match ended is none: on by a character.
            let next = whole.start() + character(&value[whole.start()..]);
            out.extend_from_slice(&value[whole.start()..next.min(value.len())]);
            at = next;
            continue;
        }
        for piece in &rewrite.pieces {
            match piece {
                Piece::Text(byte) => out.push(*byte),
                Piece::Group(group) => {
                    let span = found.get(*group).unwrap_or((0, 0));
                    out.extend_from_slice(&value[span.0..span.1]);
                }
            }
        }
        (at, last, count) = (whole.end(), Some(whole.end()), count + 1);
    }
    if count == 0 {
        return value.clone();
    }
    out.extend_from_slice(value.get(at..).unwrap_or_default());
    out.into()
}

/// The length of the first character, 1 where there is none.
fn character(text: &[u8]) -> usize {
    let chunk = text.utf8_chunks().next();
    let first = chunk.and_then(|chunk| chunk.valid().chars().next());
    first.map_or(1, char::len_utf8)
}

fn scalar_text(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<TString> {
    let tensor = ctx.input(index)?;
    if tensor.rank() != 0 {
        return Err(invalid_argument!(
            "{name} must be scalar, but received {}",
            tensor.shape()
        ));
    }
    tensor.to_scalar::<TString>()
}

fn build_static_match(node: &NodeInfo) -> Result<AnyKernel> {
    let regex = compile_full(node.attrs.bytes("pattern")?)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| map(ctx, |value| Ok(regex.is_match(value))))
}

fn build_match(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let regex = compile_full(&scalar_text(ctx, 1, "Pattern")?)?;
        map(ctx, |value| Ok(regex.is_match(value)))
    })
}

fn build_static_replace(node: &NodeInfo) -> Result<AnyKernel> {
    let regex = compile(node.attrs.bytes("pattern")?)?;
    let rewrite = Rewrite::new(node.attrs.bytes("rewrite")?);
    let global = node.attrs.bool("replace_global")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok(replace(&regex, &rewrite, global, value)))
    })
}

fn build_replace(node: &NodeInfo) -> Result<AnyKernel> {
    let global = node.attrs.bool("replace_global")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let regex = compile(&scalar_text(ctx, 1, "Pattern")?)?;
        let rewrite = Rewrite::new(&scalar_text(ctx, 2, "Rewrite")?);
        map(ctx, |value| Ok(replace(&regex, &rewrite, global, value)))
    })
}
