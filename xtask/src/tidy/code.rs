//! Rules on Rust sources, file by file.

use super::Finding;
use super::source::{Source, has_word, is_test_file, word_at};
use crate::tensorflow;

/// Packages in which `unsafe` may stand.
pub(super) const UNSAFE_PACKAGES: &[&str] = &["tensor", "math", "python"];

/// Above this many lines outside tests a file is named for review.
const REVIEW_LINES: usize = 500;
/// Above this many lines outside tests a file is refused.
const MOST_LINES: usize = 800;

/// Sources that handle data from the network, the disk or a client: they return errors.
const NO_PANIC: &[&str] = &[
    "crates/graph/src/",
    "crates/checkpoint/src/",
    "crates/input/src/",
    "crates/tensor/src/proto",
    "crates/rpc/src/",
    "crates/cluster/src/",
];

/// Checks one Rust file; generated files are only checked for what concerns everybody.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if is_generated(path, text) {
        return Vec::new();
    }
    let source = Source::new(path, text);
    let mut findings = Vec::new();
    findings.extend(head(path, text));
    findings.extend(unsafe_code(path, &source));
    findings.extend(leftovers(path, &source));
    findings.extend(size(path, &source));
    if text.contains(tensorflow::PYTHON_FOR_TESTS) || source.code.contains("reference::python(") {
        findings.extend(unselectable_tests(path, &source));
    }
    if path.starts_with("crates/ops/src/") {
        findings.extend(mutable_statics(path, &source));
    }
    if NO_PANIC.iter().any(|prefix| path.starts_with(prefix)) {
        findings.extend(panics(path, &source));
    }
    if path.starts_with("crates/cluster/src/") {
        findings.extend(outside_world(path, &source));
    }
    findings
}

fn is_generated(path: &str, text: &str) -> bool {
    path.contains("/generated/") || text.lines().take(3).any(|line| line.contains("@generated"))
}

/// The package folder of a path.
fn package(path: &str) -> &str {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or_default()
}

fn head(path: &str, text: &str) -> Option<Finding> {
    // The unit tests of a module have nothing to say that its name does not.
    if path.ends_with("/tests.rs") {
        return None;
    }
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    let good = first.is_some_and(|line| line.trim_start().starts_with("//!"));
    let remedy = "say in a `//!` comment at the top what the module is and the one thing to know";
    (!good).then(|| Finding::new(path, 1, "module without a head".to_owned(), remedy))
}

fn unsafe_code(path: &str, source: &Source) -> Vec<Finding> {
    if UNSAFE_PACKAGES.contains(&package(path)) {
        return Vec::new();
    }
    let lines = source
        .lines()
        .filter(|(_, code, _)| has_word(code, "unsafe"));
    lines
        .map(|(line, ..)| {
            let remedy = "move it behind a safe function of tensor or math";
            Finding::new(
                path,
                line + 1,
                "unsafe outside tensor, math and python".to_owned(),
                remedy,
            )
        })
        .collect()
}

fn leftovers(path: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, code, comment) in source.lines() {
        let mut add = |what: &str, remedy: &str| {
            findings.push(Finding::new(path, line + 1, what.to_owned(), remedy));
        };
        for name in ["todo!", "dbg!"] {
            if has_word(code, name) {
                add(
                    &format!("{name} left in the code"),
                    "finish it or return Status::unimplemented",
                );
            }
        }
        if let Some(mark) = bare_mark(comment) {
            add(
                &format!("bare {mark}"),
                "do it now, or name the issue in brackets behind the mark",
            );
        }
        let squeezed: String = code.split_whitespace().collect();
        if squeezed.contains("#[ignore]") {
            add("test ignored without a reason", "write #[ignore = \"why\"]");
        }
    }
    findings
}

/// A mark for later work that does not name its issue.
fn bare_mark(comment: &str) -> Option<&'static str> {
    ["TODO", "FIXME"].into_iter().find(|mark| {
        word_at(comment, mark).is_some_and(|at| !comment[at + mark.len()..].starts_with("(#"))
    })
}

fn size(path: &str, source: &Source) -> Option<Finding> {
    if is_test_file(path) {
        return None;
    }
    let lines = source.product_lines().count();
    let what = format!("{lines} lines outside tests");
    if lines > MOST_LINES {
        let remedy = format!("split it: {MOST_LINES} is the most");
        Some(Finding::new(path, 1, what, &remedy))
    } else if lines > REVIEW_LINES {
        let remedy =
            format!("think about splitting it: the aim is 300, review starts at {REVIEW_LINES}");
        Some(Finding::new(path, 1, what, &remedy).advice())
    } else {
        None
    }
}

fn mutable_statics(path: &str, source: &Source) -> Vec<Finding> {
    let cells = [
        "OnceLock",
        "LazyLock",
        "OnceCell",
        "LazyCell",
        "Mutex",
        "RwLock",
        "Cell",
        "RefCell",
        "UnsafeCell",
    ];
    let mut findings = Vec::new();
    for (line, code, _) in source.product_lines() {
        let declaration = word_at(code, "static").map(|at| &code[at..]);
        // `&'static str` is a lifetime, `static NAME: …` a variable.
        let declaration = declaration.filter(|rest| {
            let at = code.len() - rest.len();
            !code[..at].ends_with('\'')
        });
        let held = declaration.is_some_and(|rest| {
            has_word(rest, "mut")
                || rest.contains("Atomic")
                || cells.iter().any(|cell| has_word(rest, cell))
        });
        if held || has_word(code, "thread_local!") {
            let remedy = "ops hold no state of their own: keep it in a resource or in the kernel";
            findings.push(Finding::new(
                path,
                line + 1,
                "mutable static in ops".to_owned(),
                remedy,
            ));
        }
    }
    findings
}

fn panics(path: &str, source: &Source) -> Vec<Finding> {
    let macros = [
        "panic!",
        "unreachable!",
        "assert!",
        "assert_eq!",
        "assert_ne!",
    ];
    let mut findings = Vec::new();
    let mut justified = false;
    // A chain may be broken over lines: what stood before `.unwrap()` is kept.
    let mut before = String::new();
    for (line, code, comment) in source.lines() {
        if comment.contains("INVARIANT:") {
            justified = true;
        }
        if code.trim().is_empty() {
            if comment.trim().is_empty() {
                justified = false;
            }
            continue;
        }
        let found = if source.test[line] {
            None
        } else {
            let panicking = macros.iter().find(|name| has_word(code, name)).copied();
            panicking.or_else(|| unwrapping(&before, code))
        };
        if let Some(what) = found.filter(|_| !justified) {
            let remedy = "return a Status, or say in an `// INVARIANT:` comment just above why it cannot happen";
            findings.push(Finding::new(
                path,
                line + 1,
                format!("{what} on what may be foreign data"),
                remedy,
            ));
        }
        if code.trim_end().ends_with([';', '{', '}', ',']) {
            justified = false;
        }
        before = code.trim().to_owned();
    }
    findings
}

/// `.unwrap()` or `.expect(`, unless of a lock, which only fails after another panic.
fn unwrapping(before: &str, code: &str) -> Option<&'static str> {
    for (pattern, name) in [(".unwrap()", "unwrap"), (".expect(", "expect")] {
        for (at, _) in code.match_indices(pattern) {
            let receiver = format!("{before}{}", code[..at].trim());
            let of_lock = [".lock()", ".read()", ".write()", ".into_inner()"];
            if !of_lock.iter().any(|lock| receiver.ends_with(lock)) {
                return Some(name);
            }
        }
    }
    None
}

fn outside_world(path: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, code, _) in source.product_lines() {
        for name in ["std::net", "tokio::net", "SystemTime::now", "Instant::now"] {
            if code.contains(name) {
                let what = format!("{name} in cluster, which opens no socket and reads no clock");
                let remedy = "take a Peers or a Clock from the caller";
                findings.push(Finding::new(path, line + 1, what, remedy));
            }
        }
    }
    findings
}

/// Tests that drive TensorFlow but are not found by the word in their path.
fn unselectable_tests(path: &str, source: &Source) -> Vec<Finding> {
    // The file of a test binary is no part of a test's path, that of a module is.
    let module = path
        .split_once("/src/")
        .or_else(|| path.split_once("/tests/it/"));
    if module.is_some_and(|(_, module)| module.contains("tensorflow")) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut attribute = false;
    for (line, code, _) in source.lines() {
        let name = code.split_once("fn ").map(|(_, rest)| rest);
        if let Some(name) = name.filter(|_| attribute) {
            let name = name.split('(').next().unwrap_or_default();
            if !name.contains("tensorflow") {
                let what = format!("{name} drives TensorFlow, but its path does not say so");
                let remedy = "put `tensorflow` into its name: the comparison is selected by it";
                findings.push(Finding::new(path, line + 1, what, remedy));
            }
        }
        attribute = code.contains("#[test]") || (attribute && name.is_none());
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `line: what` of each finding in a file that has a head.
    fn found(path: &str, body: &str) -> Vec<String> {
        let text = format!("//! Head.\n{body}");
        let findings = check(path, &text);
        findings
            .iter()
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn wants_a_head() {
        assert_eq!(check("crates/x/src/a.rs", "fn a() {}\n").len(), 1);
        assert_eq!(check("crates/x/src/a/tests.rs", "fn a() {}\n").len(), 0);
        assert_eq!(
            check("crates/x/src/a.rs", "\n//! What.\nfn a() {}\n").len(),
            0
        );
        assert_eq!(check("crates/x/src/generated/a.rs", "fn a() {}\n").len(), 0);
    }

    #[test]
    fn finds_unsafe_outside_its_packages() {
        let body = "// unsafe\nfn a() { unsafe { b() } }\n";
        assert_eq!(
            found("crates/exec/src/a.rs", body),
            ["3: unsafe outside tensor, math and python"]
        );
        assert_eq!(found("crates/math/src/a.rs", body), [""; 0]);
    }

    #[test]
    fn finds_leftovers() {
        let body = "fn a() { todo!() }\n// TODO later\n// TODO(#3) later\nfn b() { dbg!(1); }\n#[test]\n#[ignore]\nfn c() {}\n#[test]\n#[ignore = \"slow\"]\nfn d() {}\n";
        let expected = [
            "2: todo! left in the code",
            "3: bare TODO",
            "5: dbg! left in the code",
            "7: test ignored without a reason",
        ];
        assert_eq!(found("crates/exec/src/a.rs", body), expected);
    }

    #[test]
    fn limits_the_size_outside_tests() {
        let lines = |n: usize| "fn a() {}\n".repeat(n);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(900));
        assert_eq!(found("crates/exec/src/a.rs", &tests), [""; 0]);
        let findings = check(
            "crates/exec/src/a.rs",
            &format!("//! Head.\n{}", lines(600)),
        );
        assert!(findings.len() == 1 && findings[0].advice_only);
        let findings = check(
            "crates/exec/src/a.rs",
            &format!("//! Head.\n{}", lines(801)),
        );
        assert!(findings.len() == 1 && !findings[0].advice_only);
    }

    #[test]
    fn finds_mutable_statics_in_ops_only() {
        let body = "static mut A: u8 = 0;\nstatic B: OnceLock<u8> = OnceLock::new();\nstatic C: AtomicU8 = AtomicU8::new(0);\nstatic OP: OpDef = OpDef { name: \"x\" };\nfn f(x: &'static Mutex<u8>) {}\npub static D: Mutex<u8> = Mutex::new(0);\nthread_local! {}\n";
        let lines: Vec<_> = check("crates/ops/src/a.rs", &format!("//! Head.\n{body}"))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [2, 3, 4, 7, 8]);
        assert_eq!(found("crates/exec/src/a.rs", body), [""; 0]);
    }

    #[test]
    fn finds_panics_on_foreign_data() {
        let body = "fn a() {\n    let x = b.unwrap();\n    let y = b\n        .expect(\"z\");\n    panic!(\"no\");\n}\n";
        let expected = [
            "3: unwrap on what may be foreign data",
            "5: expect on what may be foreign data",
            "6: panic! on what may be foreign data",
        ];
        assert_eq!(found("crates/graph/src/a.rs", body), expected);
        assert_eq!(found("crates/tensor/src/proto/a.rs", body).len(), 3);
        assert_eq!(found("crates/exec/src/a.rs", body), [""; 0]);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(found("crates/graph/src/a.rs", &tests), [""; 0]);
    }

    #[test]
    fn takes_an_invariant_for_one_statement() {
        let body = "fn a() {\n    // INVARIANT: checked above.\n    let x = b.unwrap();\n    let y = c.unwrap();\n}\n";
        assert_eq!(
            found("crates/graph/src/a.rs", body),
            ["5: unwrap on what may be foreign data"]
        );
        let same_line = "fn a() {\n    b.unwrap(); // INVARIANT: never empty.\n}\n";
        assert_eq!(found("crates/graph/src/a.rs", same_line), [""; 0]);
    }

    #[test]
    fn lets_locks_unwrap() {
        let body = "fn a() {\n    let x = b.lock().unwrap();\n    let y = b\n        .lock()\n        .unwrap();\n}\n";
        assert_eq!(found("crates/graph/src/a.rs", body), [""; 0]);
    }

    #[test]
    fn keeps_cluster_from_the_outside_world() {
        let body = "fn a() { let t = std::time::Instant::now(); }\n";
        assert_eq!(found("crates/cluster/src/a.rs", body).len(), 1);
        assert_eq!(found("crates/rpc/src/a.rs", body).len(), 0);
    }

    #[test]
    fn wants_comparisons_to_be_selectable() {
        let body = "#[test]\nfn adds() {\n    reference::python();\n}\n#[test]\nfn tensorflow_adds() {}\nfn helper() {}\n";
        let expected = ["3: adds drives TensorFlow, but its path does not say so"];
        assert_eq!(found("crates/ops/tests/registry.rs", body), expected);
        assert_eq!(found("crates/ops/tests/tensorflow.rs", body), expected);
        assert_eq!(found("crates/ops/tests/it/tensorflow.rs", body), [""; 0]);
    }
}
