//! The checked-in builders of the client are what would be written today.

use std::collections::BTreeMap;

use tensorfleet_testkit::builders;

/// Written by hand.
const BY_HAND: &[&str] = &["mod.rs", "builder.rs"];

#[test]
fn checked_in_builders_are_fresh() {
    let fresh = builders::files().unwrap();
    let kept: BTreeMap<String, String> = std::fs::read_dir(builders::folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .filter(|(name, _)| !BY_HAND.contains(&name.as_str()))
        .collect();
    assert!(
        fresh.keys().eq(kept.keys()),
        "other files than {:?}: run `cargo xtask codegen`",
        fresh.keys()
    );
    for (name, text) in &fresh {
        assert!(
            kept[name] == *text,
            "{name} is stale: run `cargo xtask codegen`"
        );
    }
}
