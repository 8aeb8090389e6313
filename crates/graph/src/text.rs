//! Small graphs and literal tensors as text: for examples, tests and the command line.

use std::sync::Arc;

use tensorfleet_kernel::AttrValue;
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{Bytes, Complex32, Complex64, DType, Shape, TString, Tensor, bf16, f16};

use crate::builder::GraphBuilder;
use crate::function_def::FunctionWriter;
use crate::graph::{NodeId, Output};
use crate::signature::parse_attr_value;

/// Adds the nodes of a text to a graph, one per line:
/// `name = Op(input, other:1, [list, of, inputs], ^control) {attr=value, other='text'} @device` or
/// `name = float[2,2]{1, 2, 3, 4}`. Empty lines and lines that start with `#` are skipped. Functions are such lines between
/// `fn name(x: int64, y: string) -> z, other:1 {` and `}`, before the nodes that name them.
pub fn parse_graph(builder: &mut GraphBuilder, text: &str) -> Result<()> {
    let mut lines = text.lines().map(str::trim).enumerate();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = match line.strip_prefix("fn ") {
            Some(head) => {
                let body = lines.by_ref().map(|(_, line)| line);
                let body: Vec<&str> = body.take_while(|line| *line != "}").collect();
                parse_function(builder, head, &body)
            }
            None => parse_line(builder, line).map(drop),
        };
        parsed.map_err(|status| status.context(format!("line {}: {line}", number + 1)))?;
    }
    Ok(())
}

/// Adds a function to the graph's library: its head without `fn`, and the lines of its body.
fn parse_function(builder: &mut GraphBuilder, head: &str, body: &[&str]) -> Result<()> {
    let bad = || invalid_argument!("'fn name(x: dtype, …) -> result, … {{' was expected");
    let (head, rets) = head.split_once("->").ok_or_else(bad)?;
    let rets = rets.trim().strip_suffix('{').ok_or_else(bad)?;
    let (name, _) = head.split_once('(').ok_or_else(bad)?;
    let (args, _) = bracketed(&head[name.len()..], '(', ')')?;
    let mut inside = GraphBuilder::new(builder.graph().registry().clone());
    let library = builder.graph().library().clone();
    inside.graph_mut().set_library(library.clone());
    let mut taken = Vec::new();
    for arg in split_top_level(args) {
        let (name, dtype) = arg.split_once(':').ok_or_else(bad)?;
        let dtype = DType::from_name(dtype.trim()).ok_or_else(bad)?;
        let node = inside.op("Placeholder").name(name.trim());
        taken.push((dtype, node.attr("dtype", dtype).output()?));
    }
    parse_graph(&mut inside, &body.join("\n"))?;
    let rets: Vec<Output> = split_top_level(rets)
        .map(|ret| find(&inside, ret))
        .collect::<Result<_>>()?;
    let mut function = FunctionWriter::new(inside.graph());
    for (dtype, stands_for) in taken {
        function = function.arg(dtype, Some(stands_for));
    }
    let library_def = pb::FunctionDefLibrary {
        function: vec![function.rets(&rets).write(name.trim())?],
        ..pb::FunctionDefLibrary::default()
    };
    let merged = library.merged(&library_def, builder.graph().registry())?;
    builder.graph_mut().set_library(Arc::new(merged));
    Ok(())
}

fn parse_line(builder: &mut GraphBuilder, line: &str) -> Result<NodeId> {
    let (name, rest) = line
        .split_once('=')
        .ok_or_else(|| invalid_argument!("'name = …' was expected"))?;
    let (name, rest) = (name.trim(), rest.trim());
    let op_end = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    if rest[op_end..].starts_with('[') {
        let tensor = parse_literal(rest)?;
        return builder
            .op("Const")
            .name(name)
            .attr("dtype", tensor.dtype())
            .attr("value", tensor)
            .build();
    }
    let op_name = &rest[..op_end];
    let (args, rest) = bracketed(&rest[op_end..], '(', ')')?;
    let (attrs, rest) = bracketed(rest, '{', '}')?;
    let device = rest.trim().strip_prefix('@').unwrap_or_default().trim();

    let mut inputs: Vec<std::result::Result<Output, Vec<Output>>> = Vec::new();
    let mut controls = Vec::new();
    for arg in split_top_level(args) {
        if let Some(control) = arg.strip_prefix('^') {
            let id = builder
                .graph()
                .find(control)
                .ok_or_else(|| invalid_argument!("there is no node '{control}'"))?;
            controls.push(id);
        } else if let Some(list) = arg.strip_prefix('[').and_then(|arg| arg.strip_suffix(']')) {
            inputs.push(Err(split_top_level(list)
                .map(|item| find(builder, item))
                .collect::<Result<_>>()?));
        } else {
            inputs.push(Ok(find(builder, arg)?));
        }
    }
    let signature = builder.graph().lookup_op(op_name)?.signature.clone();
    let mut node = builder.op(op_name).name(name).device(device);
    for input in inputs {
        node = match input {
            Ok(output) => node.input(output),
            Err(list) => node.list(&list),
        };
    }
    for control in controls {
        node = node.control(control);
    }
    for attr in split_top_level(attrs) {
        let (key, value) = attr
            .split_once('=')
            .ok_or_else(|| invalid_argument!("'{attr}' is no 'attr=value'"))?;
        let value: AttrValue = match signature.attr(key.trim()) {
            Some(def) => parse_attr_value(value.trim(), def.kind)?,
            None => AttrValue::S(Bytes::copy_from_slice(value.trim().as_bytes())),
        };
        node = node.attr(key.trim(), value);
    }
    node.build()
}

fn find(builder: &GraphBuilder, text: &str) -> Result<Output> {
    builder
        .graph()
        .find_output(text)
        .ok_or_else(|| invalid_argument!("there is no output '{text}'"))
}

/// Splits off a leading bracketed part, if there is one: (inside, after).
fn bracketed(text: &str, open: char, close: char) -> Result<(&str, &str)> {
    let text = text.trim_start();
    if !text.starts_with(open) {
        return Ok(("", text));
    }
    let mut depth = 0usize;
    for (index, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Ok((&text[1..index], &text[index + 1..]));
            }
        }
    }
    Err(invalid_argument!("'{open}' is never closed"))
}

/// Splits at commas outside of brackets and quotes.
fn split_top_level(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = Vec::new();
    let (mut depth, mut quoted, mut start) = (0i32, false, 0);
    for (index, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Parses a literal tensor: `float[2,2]{1, 2, 3, 4}`, `int32[]{3}`, `string[2]{a, b}`. One value stands for all.
pub fn parse_literal(text: &str) -> Result<Tensor> {
    let bad = || invalid_argument!("'{text}' is no literal tensor such as float[2]{{1, 2}}");
    let (dtype, rest) = text.trim().split_once('[').ok_or_else(bad)?;
    let dtype =
        DType::from_name(dtype.trim()).ok_or_else(|| invalid_argument!("'{dtype}' is no dtype"))?;
    let (dims, rest) = rest.split_once(']').ok_or_else(bad)?;
    let dims: Vec<i64> = dims
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().map_err(|_| bad()))
        .collect::<Result<_>>()?;
    let values = rest
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(bad)?;
    let mut values: Vec<&str> = split_top_level(values).collect();
    let shape = Shape::new(&dims)?;
    if dtype == DType::String && values.is_empty() && shape.elements() == 1 {
        values.push("");
    }
    if values.len() == 1 && shape.elements() > 1 {
        values = vec![values[0]; shape.elements()];
    }
    literal(dtype, shape, &values)
}

fn literal(dtype: DType, shape: Shape, texts: &[&str]) -> Result<Tensor> {
    fn number<T: std::str::FromStr>(text: &&str) -> Result<T> {
        text.parse()
            .map_err(|_| invalid_argument!("'{text}' is no such number"))
    }
    macro_rules! numbers {
        ($type:ty) => {
            Tensor::from_vec(
                shape,
                texts.iter().map(number::<$type>).collect::<Result<_>>()?,
            )
        };
    }
    let complex = |text: &&str| -> Result<(f64, f64)> {
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        let (re, im) = inner
            .split_once(',')
            .or_else(|| inner.split_once(' '))
            .unwrap_or((inner, "0"));
        Ok((number(&re.trim())?, number(&im.trim())?))
    };
    match dtype {
        DType::F32 => numbers!(f32),
        DType::F64 => numbers!(f64),
        DType::I8 => numbers!(i8),
        DType::I16 => numbers!(i16),
        DType::I32 => numbers!(i32),
        DType::I64 => numbers!(i64),
        DType::U8 => numbers!(u8),
        DType::U16 => numbers!(u16),
        DType::U32 => numbers!(u32),
        DType::U64 => numbers!(u64),
        DType::Bool => numbers!(bool),
        DType::F16 => Tensor::from_vec(
            shape,
            texts
                .iter()
                .map(|t| Ok::<_, Status>(f16::from_f64(number(t)?)))
                .collect::<Result<_>>()?,
        ),
        DType::BF16 => Tensor::from_vec(
            shape,
            texts
                .iter()
                .map(|t| Ok::<_, Status>(bf16::from_f64(number(t)?)))
                .collect::<Result<_>>()?,
        ),
        DType::C64 => {
            let values = texts
                .iter()
                .map(|t| complex(t).map(|(re, im)| Complex32::new(re as f32, im as f32)));
            Tensor::from_vec(shape, values.collect::<Result<_>>()?)
        }
        DType::C128 => {
            let values = texts
                .iter()
                .map(|t| complex(t).map(|(re, im)| Complex64::new(re, im)));
            Tensor::from_vec(shape, values.collect::<Result<_>>()?)
        }
        DType::String => Tensor::from_vec(
            shape,
            texts
                .iter()
                .map(|text| TString::copy_from_slice(text.trim_matches('\'').as_bytes()))
                .collect(),
        ),
        other => Err(invalid_argument!(
            "literals of dtype {other} cannot be written"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_many_types() {
        let t = parse_literal("float[2,2]{1, 2.5, -3, 4}").unwrap();
        assert_eq!(t.slice::<f32>().unwrap(), &[1.0, 2.5, -3.0, 4.0]);
        assert_eq!(
            parse_literal("int64[3]{7}")
                .unwrap()
                .slice::<i64>()
                .unwrap(),
            &[7, 7, 7]
        );
        assert_eq!(
            parse_literal("string[2]{a, 'b, c'}")
                .unwrap()
                .slice::<TString>()
                .unwrap()[1],
            TString::from("b, c")
        );
        assert_eq!(
            parse_literal("complex64[]{(1,-2)}")
                .unwrap()
                .to_scalar::<Complex32>()
                .unwrap(),
            Complex32::new(1.0, -2.0)
        );
        assert_eq!(parse_literal("float[0]{}").unwrap().elements(), 0);
        for bad in [
            "float[2]{1}x",
            "float{1}",
            "what[1]{1}",
            "float[2]{1, 2, 3}",
            "int32[]{1.5}",
        ] {
            assert!(parse_literal(bad).is_err(), "{bad}");
        }
    }
}
