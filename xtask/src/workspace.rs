//! Where things are, and how to start programs: the workspace root, cargo, git.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo, as the one that started us, in the workspace root.
pub(crate) fn cargo<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// What `cargo metadata` says of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let json = output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    serde_json::from_str(&json).context("cargo metadata printed something that is not JSON")
}

/// The target folder that cargo uses (it can be moved by the environment or a configuration file).
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let dir = metadata["target_directory"].as_str();
    Ok(dir
        .context("cargo metadata names no target_directory")?
        .into())
}

/// Builds a program of any package; its path.
///
/// With the features that the whole workspace needs, as tests are built: with those of its package alone, nearly every
/// crate would be compiled once more.
pub(crate) fn program(name: &str, release: bool) -> Result<PathBuf> {
    let mut build = cargo(["build", "--quiet", "--workspace", "--bin", name]);
    build.args(release.then_some("--release"));
    succeed(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(target_dir()?.join(profile).join(name))
}

/// Builds the examples of all packages, as [`program`] does; the folder they are in.
pub(crate) fn examples() -> Result<PathBuf> {
    succeed(&mut cargo([
        "build",
        "--quiet",
        "--workspace",
        "--examples",
    ]))?;
    Ok(target_dir()?.join("debug/examples"))
}

/// Paths, relative to the root, of all files that git tracks or would track.
pub(crate) fn files() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listing = output(git.current_dir(root()))?;
    let mut files: Vec<String> = listing
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Runs a program that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed", shown(command));
    }
    Ok(())
}

/// Standard output of a program that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let result = command
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !result.status.success() {
        let errors = String::from_utf8_lossy(&result.stderr);
        bail!("{} failed: {}", shown(command), errors.trim());
    }
    String::from_utf8(result.stdout)
        .with_context(|| format!("{} printed text that is not UTF-8", shown(command)))
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = match program.file_name() {
        Some(name) if name == "cargo" => "cargo".into(),
        _ => program.to_string_lossy(),
    };
    let mut text = name.into_owned();
    for arg in command.get_args() {
        let arg = arg.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@".contains(c);
        if arg.chars().all(plain) && !arg.is_empty() {
            text = format!("{text} {arg}");
        } else {
            text = format!("{text} '{arg}'");
        }
    }
    text
}
