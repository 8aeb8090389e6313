//! Rules on every text file: white space, traces of one machine, links in documents.

use super::Finding;

/// Beginnings of paths that exist on one machine only. Split, so that this file passes.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Checks white space and paths of any text file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let mut add = |what: String, remedy: &str| {
            findings.push(Finding::new(path, number + 1, what, remedy));
        };
        // Two spaces at the end are a line break in Markdown, but an invisible one.
        if line.ends_with([' ', '\t', '\r']) {
            add("white space at the end of the line".to_owned(), "remove it");
        }
        if let Some(found) = MACHINE_PATHS.iter().find(|start| has_path(line, start)) {
            add(
                format!("path of one machine: {found}…"),
                "use a path relative to the repository",
            );
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let line = text.lines().count();
        let what = "no newline at the end of the file".to_owned();
        findings.push(Finding::new(path, line, what, "add it"));
    }
    findings
}

/// Whether a path begins with `start` in the line, not just has it inside.
fn has_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}*".contains(c))
    })
}

/// Checks that links of a Markdown file to other files lead somewhere.
pub(super) fn check_links(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in link_targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.contains("://") || file.starts_with("mailto:");
            if file.is_empty() || elsewhere {
                continue;
            }
            let wanted = resolve(path, file);
            if !exists(&wanted) {
                let what = format!("link to a file that is not there: {target}");
                findings.push(Finding::new(
                    path,
                    number + 1,
                    what,
                    "correct or remove the link",
                ));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` in a line, outside code.
fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut from = 0;
    while let Some(at) = line[from..].find("](").map(|at| from + at) {
        let in_code = line[..at].matches('`').count() % 2 == 1;
        let rest = &line[at + 2..];
        let Some(end) = rest.find(')') else {
            break;
        };
        if !in_code {
            targets.push(rest[..end].split(' ').next().unwrap_or_default());
        }
        from = at + 2 + end;
    }
    targets
}

/// `target` as seen from the folder of `path`, both from the root.
fn resolve(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => path.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(findings: &[Finding]) -> Vec<(usize, &str)> {
        findings.iter().map(|f| (f.line, f.what.as_str())).collect()
    }

    #[test]
    fn finds_white_space() {
        let findings = check("a.md", "good\nbad \nbad\t\nlast");
        let at_end = "white space at the end of the line";
        assert_eq!(
            whats(&findings),
            [
                (2, at_end),
                (3, at_end),
                (4, "no newline at the end of the file")
            ]
        );
        assert!(check("a.md", "good\n\ngood\n").is_empty());
        assert!(check("empty", "").is_empty());
    }

    #[test]
    fn finds_machine_paths() {
        for start in MACHINE_PATHS {
            assert_eq!(
                check("a.md", &format!("see {start}x\n")).len(),
                1,
                "{start}"
            );
            assert_eq!(check("a.md", &format!("`{start}x`\n")).len(), 1, "{start}");
            assert_eq!(
                check("a.md", &format!("see target{start}x\n")).len(),
                0,
                "{start}"
            );
        }
        assert!(check("a.md", "/job:worker/task:0 https://x/worker/1\n").is_empty());
    }

    #[test]
    fn finds_dead_links() {
        let exists = |path: &str| ["docs/a.md", "README.md"].contains(&path);
        let text = "[a](a.md) [b](../README.md#top) [c](https://x.y/z) [d](gone.md)\n`[e](code.md)`\n```\n[f](fenced.md)\n```\n[g](#here) [h](sub/../a.md)\n";
        let findings = check_links("docs/b.md", text, exists);
        assert_eq!(
            whats(&findings),
            [(1, "link to a file that is not there: gone.md")]
        );
    }
}
