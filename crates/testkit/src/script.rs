//! Scripts as cases.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tensorfleet_graph::example::Script;
use tensorfleet_graph::{GraphBuilder, OpDef, Registry, text};
use tensorfleet_status::Code;

use crate::cases::{Case, Expected, Step};
use crate::literal;

pub(crate) fn case(registry: &Arc<Registry>, def: &'static OpDef, script: &Script) -> Result<Case> {
    let mut builder = GraphBuilder::new(registry.clone());
    text::parse_graph(&mut builder, script.graph)?;
    let steps = script
        .steps
        .iter()
        .map(|text| step(text).with_context(|| format!("step '{text}'")))
        .collect::<Result<_>>()?;
    Ok(Case {
        name: format!("{}/{}", def.name, script.name),
        graph: builder.finish(),
        steps,
        exactness: def.exactness,
        node: None,
    })
}

fn step(text: &str) -> Result<Step> {
    let (verb, rest) = text
        .split_once(' ')
        .context("'run …' or 'fetch …' was expected")?;
    let (names, expect) = if let Some((names, values)) = rest.split_once("=>") {
        (names, expected(values)?)
    } else if let Some((names, error)) = rest.split_once(" fails ") {
        let (code, text) = error.trim().split_once(' ').unwrap_or((error.trim(), ""));
        (
            names,
            Expected::Error(code_named(code)?, text.trim().to_owned()),
        )
    } else {
        (rest, Expected::Tensors(Vec::new()))
    };
    let names: Vec<String> = names
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    Ok(match verb {
        "run" => Step {
            fetches: Vec::new(),
            targets: names,
            expect,
        },
        "fetch" => Step {
            fetches: names,
            targets: Vec::new(),
            expect,
        },
        other => bail!("'{other}' is neither run nor fetch"),
    })
}

fn expected(text: &str) -> Result<Expected> {
    if text.trim() == "?" {
        return Ok(Expected::Reference);
    }
    let tensors = text
        .split(';')
        .map(|literal| literal::parse(literal.trim()));
    Ok(Expected::Tensors(tensors.collect::<Result<_>>()?))
}

fn code_named(name: &str) -> Result<Code> {
    (0..=16)
        .map(Code::from_number)
        .find(|code| code.name() == name)
        .with_context(|| format!("'{name}' is no code"))
}
