//! An example without dtypes stands for many: which ones.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use tensorfleet_graph::example::{Example, Lit};
use tensorfleet_graph::{Allowed, ArgKind, OpDef, Signature, TypeOf};
use tensorfleet_tensor::DType;

use crate::literal;

/// The dtypes chosen for type attributes.
pub(crate) type Types = BTreeMap<String, DType>;

/// The literals of one argument.
pub(crate) struct Arg<'a> {
    pub(crate) lits: &'a [Lit],
    pub(crate) is_list: bool,
    /// The type attribute or fixed type; `None` for lists of types.
    pub(crate) of: Option<TypeOf>,
}

/// Deals the literals of an example out to the op's arguments.
pub(crate) fn args<'a>(signature: &Signature, example: &'a Example) -> Result<Vec<Arg<'a>>> {
    let mut rest = example.inputs;
    let mut out = Vec::new();
    for (index, def) in signature.inputs.iter().enumerate() {
        let later_singles = signature.inputs[index + 1..]
            .iter()
            .filter(|arg| matches!(arg.kind, ArgKind::Single(_)))
            .count();
        let (count, is_list, of) = match &def.kind {
            ArgKind::Single(of) => (1, false, Some(of.clone())),
            ArgKind::Repeated { number, of } => {
                let given = example.attrs.iter().find(|(name, _)| *name == &**number);
                let count = match given {
                    Some((_, text)) => text.parse().context("the number attribute")?,
                    None => list_share(signature, index, rest.len())?,
                };
                (count, true, Some(of.clone()))
            }
            ArgKind::TypeList(_) => (rest.len().saturating_sub(later_singles), true, None),
        };
        if count > rest.len() {
            bail!("'{}' has no literal left", def.name);
        }
        let (lits, tail) = rest.split_at(count);
        rest = tail;
        out.push(Arg { lits, is_list, of });
    }
    if !rest.is_empty() {
        bail!("{} literals are left over", rest.len());
    }
    Ok(out)
}

/// How many of the remaining literals a list takes: lists with the same number attribute share evenly.
fn list_share(signature: &Signature, index: usize, left: usize) -> Result<usize> {
    let ArgKind::Repeated { number, .. } = &signature.inputs[index].kind else {
        bail!("no list")
    };
    let later = &signature.inputs[index + 1..];
    let singles = later
        .iter()
        .filter(|arg| matches!(arg.kind, ArgKind::Single(_)))
        .count();
    let sharing = 1 + later
        .iter()
        .filter(
            |arg| matches!(&arg.kind, ArgKind::Repeated { number: other, .. } if other == number),
        )
        .count();
    Ok(left.saturating_sub(singles) / sharing)
}

/// All the type assignments an example stands for.
pub(crate) fn assignments(
    def: &OpDef,
    signature: &Signature,
    example: &Example,
) -> Result<Vec<Types>> {
    let args = args(signature, example)?;
    let mut generic: BTreeMap<String, Vec<&Lit>> = BTreeMap::new();
    for arg in &args {
        for lit in arg.lits.iter().filter(|lit| lit.dtype.is_none()) {
            match &arg.of {
                Some(TypeOf::Attr(name)) => generic.entry(name.to_string()).or_default().push(lit),
                Some(TypeOf::Fixed(_)) => {}
                None => bail!("a literal of a list of types needs a dtype"),
            }
        }
    }
    generic.retain(|name, _| !example.attrs.iter().any(|(attr, _)| attr == name));
    // An attribute that also has a literal with a dtype is settled by it.
    for arg in &args {
        if let (Some(TypeOf::Attr(name)), Some(_)) =
            (&arg.of, arg.lits.iter().find_map(|lit| lit.dtype))
        {
            generic.remove(&**name);
        }
    }
    let mut all = vec![Types::new()];
    for (position, (name, lits)) in generic.iter().enumerate() {
        let mut choices: Vec<DType> = candidates(def, signature, name)
            .into_iter()
            .filter(|dtype| lits.iter().all(|lit| literal::fits(lit, *dtype)))
            .collect();
        if choices.is_empty() {
            bail!("no dtype of '{name}' can hold the literals");
        }
        // One attribute varies over all its dtypes; the others keep their first.
        if position > 0 {
            choices.truncate(1);
        }
        all = all
            .into_iter()
            .flat_map(|types| {
                choices.iter().map(move |dtype| {
                    let mut types = types.clone();
                    types.insert(name.clone(), *dtype);
                    types
                })
            })
            .collect();
    }
    Ok(all)
}

fn candidates(def: &OpDef, signature: &Signature, attr: &str) -> Vec<DType> {
    let by_kernel: Vec<DType> = def
        .kernels
        .iter()
        .flat_map(|kernel| kernel.types)
        .filter(|(name, _)| *name == attr)
        .flat_map(|(_, types)| types.iter().copied())
        .collect();
    let mut found = if by_kernel.is_empty() {
        match signature.attr(attr).map(|attr| &attr.allowed) {
            Some(Allowed::Types(types)) => types.clone(),
            _ => tensorfleet_ops::types::NUMBERS.to_vec(),
        }
    } else {
        by_kernel
    };
    // A kernel may take more than the signature lets through.
    if let Some(Allowed::Types(types)) = signature.attr(attr).map(|attr| &attr.allowed) {
        found.retain(|dtype| types.contains(dtype));
    }
    // The common types first: they are what stays when several attributes vary.
    let rank = |dtype: &DType| match dtype {
        DType::F32 => 0,
        DType::I32 => 1,
        DType::I64 => 2,
        _ => 3,
    };
    found.sort_by_key(|dtype| (rank(dtype), *dtype));
    found.dedup();
    found.retain(|dtype| dtype.is_plain() || *dtype == DType::String);
    found
}
