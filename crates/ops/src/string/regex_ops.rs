//! `StaticRegexFullMatch`, `RegexFullMatch`, `StaticRegexReplace`, `RegexReplace`.
//!
//! TensorFlow uses RE2, whose language the `regex` crate shares. `\1` in a rewrite is the first group, `\0` the match.

use std::borrow::Cow;

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
        ],
        ..REGEX
    },
];

fn compile(pattern: &str) -> Result<Regex> {
    Regex::new(pattern)
        .map_err(|error| invalid_argument!("Invalid pattern: {pattern}, error: {error}"))
}

/// A regex that matches whole strings only.
fn compile_full(pattern: &str) -> Result<Regex> {
    compile(pattern)?;
    compile(&format!("\\A(?:{pattern})\\z"))
}

/// TensorFlow's `\1` as the regex crate's `${1}`; its `$` is an ordinary character.
fn rewrite_template(rewrite: &str) -> String {
    let mut template = String::new();
    let mut chars = rewrite.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    template.push_str(&format!("${{{digit}}}"));
                }
                Some(other) => template.push(other),
                None => template.push('\\'),
            },
            '$' => template.push_str("$$"),
            other => template.push(other),
        }
    }
    template
}

fn replace(regex: &Regex, template: &str, global: bool, value: &TString) -> TString {
    let limit = if global { 0 } else { 1 };
    match regex.replacen(value, limit, template.as_bytes()) {
        Cow::Borrowed(_) => value.clone(),
        Cow::Owned(replaced) => replaced.into(),
    }
}

fn scalar_text(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<String> {
    let tensor = ctx.input(index)?;
    if tensor.rank() != 0 {
        return Err(invalid_argument!(
            "{name} must be scalar, but received {}",
            tensor.shape()
        ));
    }
    Ok(String::from_utf8_lossy(&tensor.to_scalar::<TString>()?).into_owned())
}

fn build_static_match(node: &NodeInfo) -> Result<AnyKernel> {
    let regex = compile_full(node.attrs.str("pattern")?)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| map(ctx, |value| Ok(regex.is_match(value))))
}

fn build_match(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let regex = compile_full(&scalar_text(ctx, 1, "Pattern")?)?;
        map(ctx, |value| Ok(regex.is_match(value)))
    })
}

fn build_static_replace(node: &NodeInfo) -> Result<AnyKernel> {
    let regex = compile(node.attrs.str("pattern")?)?;
    let template = rewrite_template(node.attrs.str("rewrite")?);
    let global = node.attrs.bool("replace_global")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok(replace(&regex, &template, global, value)))
    })
}

fn build_replace(node: &NodeInfo) -> Result<AnyKernel> {
    let global = node.attrs.bool("replace_global")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let regex = compile(&scalar_text(ctx, 1, "Pattern")?)?;
        let template = rewrite_template(&scalar_text(ctx, 2, "Rewrite")?);
        map(ctx, |value| Ok(replace(&regex, &template, global, value)))
    })
}
