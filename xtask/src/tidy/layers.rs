//! Which crate may know which: the workspace's layers, checked on `cargo metadata` and
//! the manifests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Finding;

/// For each package folder, the packages it stands directly upon. A package may depend on
/// these and on all that they stand upon, never on anything else of the workspace.
const LAYERS: &[(&str, &[&str])] = &[
    ("status", &[]),
    ("proto", &[]),
    ("math", &[]),
    ("tensor", &["status", "proto"]),
    ("kernel", &["tensor", "math", "status"]),
    ("graph", &["kernel", "tensor", "proto", "status"]),
    ("checkpoint", &["tensor", "proto", "status"]),
    ("ops", &["graph", "kernel", "math", "checkpoint"]),
    ("passes", &["graph", "kernel"]),
    ("exec", &["graph", "kernel"]),
    ("session", &["ops", "passes", "exec"]),
    ("cluster", &["session"]),
    ("rpc", &["cluster"]),
    ("input", &["checkpoint", "math"]),
    ("client", &["graph", "ops", "session", "rpc"]),
    ("train", &["client", "input"]),
    ("tensorfleet", &["train"]),
    ("dashboard", &["status"]),
    ("cli", &["tensorfleet", "dashboard", "rpc"]),
    ("python", &["tensorfleet", "dashboard"]),
    ("testkit", &["tensorfleet", "rpc"]),
    ("xtask", &[]),
];

/// Foreign crates that only some packages may use outside tests, and why.
const FOREIGN: &[(&[&str], &[&str], &str)] = &[
    (
        &["tonic", "tonic-prost", "tonic-build", "hyper", "h2", "http"],
        &["rpc"],
        "only rpc knows gRPC",
    ),
    (
        &[
            "tokio",
            "tokio-util",
            "tokio-stream",
            "futures",
            "futures-util",
        ],
        &[
            "cluster",
            "rpc",
            "input",
            "train",
            "dashboard",
            "cli",
            "tensorfleet",
            "python",
            "testkit",
        ],
        "exec and all below it are synchronous",
    ),
    (
        &["object_store"],
        &["input"],
        "datasets alone read from object stores, behind a feature",
    ),
    (
        &["anyhow"],
        &["cli", "testkit", "xtask"],
        "libraries return Status",
    ),
    (
        &["clap"],
        &["tensorfleet", "cli", "testkit"],
        "only programs, and the flags made for them, parse a command line",
    ),
    (
        &["rand", "rand_core", "fastrand"],
        &[],
        "random numbers come from Philox in math, bit for bit TensorFlow's",
    ),
];

/// Packages only tests may use.
const FOR_TESTS_ONLY: &str = "testkit";

/// Checks all packages of `cargo metadata --no-deps`.
pub(super) fn check_packages(metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in list(&metadata["packages"]) {
        let manifest = text(&package["manifest_path"]);
        let Some(name) = folder(manifest) else {
            continue;
        };
        let dependencies: Vec<Dependency> = list(&package["dependencies"])
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                folder: folder(text(&dependency["path"])),
                test_only: text(&dependency["kind"]) == "dev",
            })
            .collect();
        findings.extend(check_package(name, &dependencies));
    }
    findings
}

struct Dependency<'a> {
    name: &'a str,
    /// The folder's name if it is one of our own packages.
    folder: Option<&'a str>,
    test_only: bool,
}

fn check_package(name: &str, dependencies: &[Dependency<'_>]) -> Vec<Finding> {
    let path = if name == "xtask" || name == "python" {
        format!("{name}/Cargo.toml")
    } else {
        format!("crates/{name}/Cargo.toml")
    };
    let finding = |what: String, remedy: &str| Finding::new(&path, 0, what, remedy);
    if !LAYERS.iter().any(|(layer, _)| *layer == name) {
        let what = format!("package {name} has no place among the layers");
        return vec![finding(
            what,
            "add it to LAYERS in xtask/src/tidy/layers.rs",
        )];
    }
    let allowed = below(name);
    let mut findings = Vec::new();
    for dependency in dependencies.iter().filter(|d| !d.test_only) {
        if let Some(own) = dependency.folder {
            if own == FOR_TESTS_ONLY {
                let what = format!("{name} depends on {own} outside tests");
                findings.push(finding(what, "make it a dev-dependency"));
            } else if !allowed.contains(own) {
                let what = format!("{name} may not know {own}");
                let remedy = format!(
                    "pass what it needs in as a trait or value; {name} may use: {}",
                    allowed.iter().copied().collect::<Vec<_>>().join(", ")
                );
                findings.push(finding(what, &remedy));
            }
        }
        for (crates, users, why) in FOREIGN {
            if crates.contains(&dependency.name) && !users.contains(&name) {
                let what = format!("{name} depends on {}: {why}", dependency.name);
                findings.push(finding(what, "remove the dependency"));
            }
        }
    }
    findings
}

/// All packages that `name` stands upon, directly or not.
fn below(name: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let row = LAYERS.iter().find(|(layer, _)| *layer == next);
        for lower in row.map_or(&[][..], |(_, lower)| lower) {
            if found.insert(*lower) {
                open.push(lower);
            }
        }
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The last folder of a path to a package or to its manifest.
fn folder(path: &str) -> Option<&str> {
    let path = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

/// Checks one package's manifest: versions in one place, lint tables.
pub(super) fn check_manifest(path: &str, text: &str, unsafe_allowed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut section = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let names_version = section.ends_with("dependencies]")
            && !line.is_empty()
            && !line.starts_with('#')
            && !line.contains("workspace = true");
        if names_version {
            let what = format!("dependency outside the common table: {line}");
            let remedy =
                "put the version into [workspace.dependencies] and write `.workspace = true` here";
            findings.push(Finding::new(path, number + 1, what, remedy));
        }
    }
    let has = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
    if unsafe_allowed {
        for lint in [
            "unsafe_op_in_unsafe_fn",
            "undocumented_unsafe_blocks",
            "multiple_unsafe_ops_per_block",
        ] {
            if !has(&format!("{lint} = \"deny\"")) {
                let what = format!("unsafe is allowed here but {lint} is not denied");
                findings.push(Finding::new(path, 0, what, "deny it in the lint table"));
            }
        }
    } else if !(has("[lints]") && has("workspace = true") || has("lints.workspace = true")) {
        let what = "does not take the workspace's lints".to_owned();
        let remedy = "add `[lints]` with `workspace = true`";
        findings.push(Finding::new(path, 0, what, remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Vec<String> {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, folder, test_only)| Dependency {
                name,
                folder: *folder,
                test_only: *test_only,
            })
            .collect();
        let found = check_package(name, &dependencies);
        found.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn lower_crates_never_know_upper_ones() {
        for (index, (name, _)) in LAYERS.iter().enumerate() {
            for lower in below(name) {
                let place = LAYERS.iter().position(|(layer, _)| *layer == lower);
                assert!(
                    place.is_some_and(|place| place < index),
                    "{name} -> {lower}"
                );
            }
        }
    }

    #[test]
    fn refuses_an_upward_edge() {
        let upward = [("tensorfleet-ops", Some("ops"), false)];
        assert_eq!(findings("exec", &upward), ["exec may not know ops"]);
        assert_eq!(findings("session", &upward), [""; 0]);
        let in_tests = [("tensorfleet-ops", Some("ops"), true)];
        assert_eq!(findings("exec", &in_tests), [""; 0]);
    }

    #[test]
    fn refuses_testkit_outside_tests() {
        let found = findings(
            "session",
            &[("tensorfleet-testkit", Some("testkit"), false)],
        );
        assert_eq!(found, ["session depends on testkit outside tests"]);
    }

    #[test]
    fn refuses_foreign_crates_in_the_wrong_place() {
        assert_eq!(findings("exec", &[("tokio", None, false)]).len(), 1);
        assert_eq!(findings("exec", &[("tokio", None, true)]).len(), 0);
        assert_eq!(
            findings("rpc", &[("tokio", None, false), ("tonic", None, false)]).len(),
            0
        );
        assert_eq!(findings("cluster", &[("tonic", None, false)]).len(), 1);
        assert_eq!(findings("math", &[("rand", None, false)]).len(), 1);
    }

    #[test]
    fn wants_every_package_in_the_table() {
        assert_eq!(
            findings("helpers", &[]),
            ["package helpers has no place among the layers"]
        );
    }

    #[test]
    fn reads_metadata() {
        let metadata = serde_json::json!({"packages": [{
            "manifest_path": "/x/crates/graph/Cargo.toml",
            "dependencies": [
                {"name": "tensorfleet-exec", "path": "/x/crates/exec", "kind": null},
                {"name": "tokio", "kind": "dev"},
            ],
        }]});
        let found = check_packages(&metadata);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "graph may not know exec");
        assert_eq!(found[0].path, "crates/graph/Cargo.toml");
    }

    #[test]
    fn checks_manifests() {
        let good = "[package]\nversion = \"1\"\n[dependencies]\nbytes.workspace = true\n\n[lints]\nworkspace = true\n";
        assert!(check_manifest("p", good, false).is_empty());
        let bad = "[dependencies]\nbytes = \"1\"\n";
        assert_eq!(check_manifest("p", bad, false).len(), 2);
        assert_eq!(check_manifest("p", good, true).len(), 3);
    }
}
