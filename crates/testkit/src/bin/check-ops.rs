//! `cargo run -p tensorfleet-testkit --bin check-ops -- [--tf] [--texts] [--grad] [OP…]`: examples of some ops, by hand.
//! `--texts` also shows where TensorFlow's error does not contain the text an example promises.
#![allow(clippy::print_stdout)]

use anyhow::{Context, Result};
use tensorfleet_session::SessionOptions;
use tensorfleet_testkit::{cases, compare, gradient, reference, run};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let registry = tensorfleet_ops::registry()?;
    let mut all = Vec::new();
    let mut failures = 0;
    for def in tensorfleet_ops::all()
        .filter(|def| wanted.is_empty() || wanted.iter().any(|name| *name == def.name))
    {
        if flag("--grad") && def.gradient.is_rule() {
            let wrong =
                gradient::check(&registry, def).unwrap_or_else(|error| vec![format!("{error:#}")]);
            failures += wrong.len();
            wrong.iter().for_each(|text| println!("GRADIENT {text}"));
        }
        match cases::cases_of(&registry, def) {
            Ok(cases) => all.extend(cases),
            Err(error) => {
                failures += 1;
                println!("BROKEN {error:#}");
            }
        }
    }
    let theirs = if flag("--tf") {
        let python = reference::python().context("set the variable to compare with TensorFlow")?;
        Some(reference::run_all(&python, &all)?)
    } else {
        None
    };
    for case in &all {
        let results = match run::run(case, SessionOptions::default()) {
            Ok(results) => results,
            Err(error) => {
                failures += 1;
                println!("FAIL {}: {error:#}", case.name);
                continue;
            }
        };
        for text in compare::judge(case, &results) {
            failures += 1;
            println!("FAIL {}: {text}", case.name);
        }
        if let Some(theirs) = &theirs {
            for text in compare::against(case, &results, theirs.get(&case.name)) {
                failures += 1;
                println!("DIFFERS {}: {text}", case.name);
            }
            if flag("--texts") {
                let theirs = theirs.get(&case.name).map_or(&[][..], Vec::as_slice);
                for text in other_texts(case, theirs) {
                    println!("TEXT {}: {text}", case.name);
                }
            }
        }
    }
    println!("{} cases, {failures} failures", all.len());
    std::process::exit(i32::from(failures > 0));
}

/// Where TensorFlow fails as promised, but with another text.
fn other_texts(case: &cases::Case, theirs: &[run::StepResult]) -> Vec<String> {
    if theirs.len() != case.steps.len() {
        return vec!["TensorFlow did not run all steps".to_owned()];
    }
    let steps = case.steps.iter().zip(theirs);
    let other = steps.filter_map(|(step, theirs)| match (&step.expect, theirs) {
        (cases::Expected::Error(_, text), Err(status)) if !status.message().contains(text) => {
            Some(format!("'{text}' is not in '{}'", status.message()))
        }
        _ => None,
    });
    other.collect()
}
