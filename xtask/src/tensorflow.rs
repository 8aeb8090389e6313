//! A Python interpreter with the pinned TensorFlow: `TF_PYTHON` if set, else a
//! virtual environment under the target folder, made once per pin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The environment variable through which tests find the interpreter.
pub(crate) const PYTHON_FOR_TESTS: &str = "TENSORFLEET_TF_PYTHON";

const REQUIREMENTS: &str = "tests/reference/requirements.txt";

/// The path of an interpreter that can import TensorFlow.
pub(crate) fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("TF_PYTHON") {
        let python = PathBuf::from(python);
        check(&python).context("TF_PYTHON is set")?;
        return Ok(python);
    }
    let requirements = fs::read_to_string(workspace::root().join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let venv = workspace::target_dir()?.join("tensorflow-venv");
    let python = venv.join("bin/python");
    let stamp = venv.join("requirements.stamp");
    if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == requirements) {
        return Ok(python);
    }
    install(&venv, &python)?;
    check(&python)?;
    fs::write(&stamp, requirements).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

/// What is recorded of TensorFlow, and the program that records it.
const RECORDS: &[(&str, &str)] = &[
    (
        "tests/reference/tensorflow_ops.txt",
        "tests/reference/op_defs.py",
    ),
    (
        "tests/reference/tensorflow_kernels.txt",
        "tests/reference/kernels.py",
    ),
];

/// Fails if the installed TensorFlow is not as recorded.
pub(crate) fn check_records() -> Result<()> {
    let python = python()?;
    for (record, program) in RECORDS {
        println!("{} {program}", python.display());
        let kept = fs::read_to_string(workspace::root().join(record))
            .with_context(|| format!("cannot read {record}"))?;
        let fresh = workspace::output(
            Command::new(&python)
                .arg(program)
                .env("TF_CPP_MIN_LOG_LEVEL", "3")
                .current_dir(workspace::root()),
        )?;
        if let Some((line, was, is)) = first_difference(&kept, &fresh) {
            bail!(
                "{record}:{line}: recorded `{was}`, TensorFlow says `{is}`; run: python {program} > {record}"
            );
        }
    }
    Ok(())
}

/// The number (from 1) of the first line that differs, and the two lines.
fn first_difference<'a>(a: &'a str, b: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let (mut a, mut b) = (a.lines(), b.lines());
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (left, right) if left == right => {}
            (left, right) => {
                let end = "(end of the file)";
                return Some((line, left.unwrap_or(end), right.unwrap_or(end)));
            }
        }
    }
    None
}

fn install(venv: &Path, python: &Path) -> Result<()> {
    println!("making {} from {REQUIREMENTS}", venv.display());
    if venv.exists() {
        fs::remove_dir_all(venv).with_context(|| format!("cannot remove {}", venv.display()))?;
    }
    workspace::succeed(Command::new("python3").args(["-m", "venv"]).arg(venv))
        .context("no virtual environment (on Debian: apt install python3-venv)")?;
    workspace::succeed(Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--requirement", REQUIREMENTS])
        .current_dir(workspace::root()))
    .context("TensorFlow could not be installed (set TF_PYTHON to an interpreter that has it, or pass --no-tf)")
}

/// Fails unless the interpreter imports TensorFlow; says so if it is another version than the pin.
fn check(python: &Path) -> Result<()> {
    let mut import = Command::new(python);
    import.env("TF_CPP_MIN_LOG_LEVEL", "3");
    import.args(["-c", "import tensorflow; print(tensorflow.__version__)"]);
    let version = workspace::output(&mut import)?;
    let version = version.trim();
    let pinned = fs::read_to_string(workspace::root().join(REQUIREMENTS))?;
    if !pinned.contains(&format!("=={version}\n")) {
        println!(
            "note: {} has TensorFlow {version}, not the version in {REQUIREMENTS}",
            python.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_difference() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(
            first_difference("a\n", "a\nc\n"),
            Some((2, "(end of the file)", "c"))
        );
    }
}
