//! `cargo xtask tidy`: the invariants of `docs/ARCHITECTURE.md` and the house rules,
//! checked on `cargo metadata`, the manifests and the sources.
//!
//! A finding names the place, what is wrong and what to do. Exceptions stand in
//! `ALLOWED`, each with its reason; an exception that is no longer needed is a finding.

mod code;
mod layers;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Exceptions: a path, the beginning of what is found there, and why it may stay.
const ALLOWED: &[(&str, &str, &str)] = &[];

/// Something that breaks a rule.
#[derive(Debug)]
struct Finding {
    path: String,
    /// From 1; 0 stands for the whole file.
    line: usize,
    what: String,
    remedy: String,
    /// Said, but no reason to fail.
    advice_only: bool,
}

impl Finding {
    fn new(path: &str, line: usize, what: String, remedy: &str) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what,
            remedy: remedy.to_owned(),
            advice_only: false,
        }
    }

    fn advice(mut self) -> Self {
        self.advice_only = true;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.max(1);
        write!(f, "{}:{line}: {}; {}", self.path, self.what, self.remedy)
    }
}

/// Checks the whole workspace; prints what is found and fails if anything must change.
pub(crate) fn check_workspace() -> Result<()> {
    let files = workspace::files()?;
    let mut findings = layers::check_packages(&workspace::metadata()?);
    let known: BTreeSet<&str> = files.iter().flat_map(|path| with_folders(path)).collect();
    for path in &files {
        let bytes = fs::read(workspace::root().join(path))
            .with_context(|| format!("cannot read {path}"))?;
        if let Some(text) = as_text(path, bytes) {
            findings.extend(check_file(path, &text, &known));
        }
    }
    let findings = without_allowed(findings, ALLOWED);
    for finding in &findings {
        let prefix = if finding.advice_only { "advice: " } else { "" };
        println!("{prefix}{finding}");
    }
    let wrong = findings.iter().filter(|f| !f.advice_only).count();
    if wrong > 0 {
        bail!("tidy: {wrong} findings in {} files", files.len());
    }
    println!("tidy: {} files, nothing found", files.len());
    Ok(())
}

/// The contents of a file made to be read; `None` for data.
fn as_text(path: &str, bytes: Vec<u8>) -> Option<String> {
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    if matches!(extension, Some("pb" | "npy" | "npz" | "png")) || bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

fn check_file(path: &str, contents: &str, known: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = text::check(path, contents);
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    match extension {
        Some("rs") => findings.extend(code::check(path, contents)),
        Some("md") => {
            findings.extend(text::check_links(path, contents, |file| {
                known.contains(file)
            }));
        }
        Some("toml") => {
            if let Some(folder) = path.strip_suffix("/Cargo.toml") {
                let package = folder.rsplit('/').next().unwrap_or_default();
                let unsafe_allowed = code::UNSAFE_PACKAGES.contains(&package);
                findings.extend(layers::check_manifest(path, contents, unsafe_allowed));
            }
        }
        _ => {}
    }
    findings
}

/// A path and all folders it lies in.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.chain([path])
}

/// Drops what is allowed; adds a finding for each exception without a use.
fn without_allowed(mut findings: Vec<Finding>, allowed: &[(&str, &str, &str)]) -> Vec<Finding> {
    for (path, what, _) in allowed {
        let before = findings.len();
        findings.retain(|finding| finding.path != *path || !finding.what.starts_with(what));
        if findings.len() == before {
            let unused = format!("exception without a use: {path}: {what}");
            let remedy = "remove it from ALLOWED";
            findings.push(Finding::new("xtask/src/tidy/mod.rs", 0, unused, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_fault_and_remedy() {
        let finding = Finding::new("a/b.rs", 3, "wrong".to_owned(), "right it");
        assert_eq!(finding.to_string(), "a/b.rs:3: wrong; right it");
    }

    #[test]
    fn drops_exceptions_and_reports_stale_ones() {
        let findings = || vec![Finding::new("a.rs", 1, "900 lines".to_owned(), "")];
        assert!(without_allowed(findings(), &[("a.rs", "900", "why")]).is_empty());
        let left = without_allowed(findings(), &[("b.rs", "900", "why")]);
        assert_eq!(left.len(), 2);
        assert!(left[1].what.starts_with("exception without a use"));
    }

    #[test]
    fn leaves_data_alone() {
        assert!(as_text("a.pb", b"text ".to_vec()).is_none());
        assert!(as_text("a.index", b"a\0".to_vec()).is_none());
        assert!(as_text("a", b"\xff".to_vec()).is_none());
        assert!(as_text("a.txt", b"text ".to_vec()).is_some());
    }

    #[test]
    fn checks_each_kind_of_file() {
        let known = BTreeSet::from(["docs", "docs/a.md"]);
        assert_eq!(
            check_file("crates/x/src/a.rs", "fn a() {}\n", &known).len(),
            1
        );
        assert_eq!(
            check_file("README.md", "[a](docs/a.md) [d](docs/)\n", &known).len(),
            0
        );
        assert_eq!(check_file("README.md", "[a](docs/b.md)\n", &known).len(), 1);
        assert_eq!(
            check_file("crates/x/Cargo.toml", "[package]\n", &known).len(),
            1
        );
        assert_eq!(check_file("notes.txt", "x \n", &known).len(), 1);
    }
}
