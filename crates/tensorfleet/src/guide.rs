//! The programs in `docs/` and in the README, compiled and run as doc tests.

#[doc = include_str!("../../../docs/guide/1-graph-and-session.md")]
mod graph_and_session {}
#[doc = include_str!("../../../docs/guide/2-training.md")]
mod training {}
#[doc = include_str!("../../../docs/guide/3-cluster.md")]
mod cluster {}
#[doc = include_str!("../../../docs/guide/4-many-machines.md")]
mod many_machines {}
#[doc = include_str!("../../../docs/guide/5-synchronous.md")]
mod synchronous {}
#[doc = include_str!("../../../docs/guide/6-recovery.md")]
mod recovery {}
#[doc = include_str!("../../../docs/guide/7-tensorflow.md")]
mod tensorflow {}

#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    const PAGE: &str = include_str!("../../../docs/from-tensorflow.md");

    /// Crates whose names the page may use.
    const CRATES: [&str; 7] = [
        "client",
        "cluster",
        "input",
        "proto",
        "rpc",
        "tensorfleet",
        "train",
    ];

    #[test]
    fn the_names_of_the_page_for_tensorflow_users_exist() {
        let mut known = BTreeSet::new();
        for name in CRATES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
            add_words(&path.join("src"), &mut known);
        }
        let named = names(PAGE);
        assert!(named.len() > 200, "{} names only", named.len());
        let missing: Vec<_> = named.difference(&known).collect();
        assert!(missing.is_empty(), "not in the sources: {missing:?}");
    }

    /// The words of code in the second column of all tables.
    fn names(page: &str) -> BTreeSet<String> {
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let cells = rows.filter_map(|row| row.split(" | ").nth(1));
        let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        // What stands in quotes is somebody's own name.
        let code = spans.flat_map(|span| span.split('"').step_by(2));
        code.flat_map(words).collect()
    }

    fn words(code: &str) -> impl Iterator<Item = String> {
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words
            .filter(|word| word.starts_with(char::is_alphabetic))
            .map(str::to_owned)
    }

    fn add_words(path: &Path, known: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add_words(&path, known);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                known.extend(code.flat_map(words));
            }
        }
    }
}
