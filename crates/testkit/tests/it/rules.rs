//! Rules that every op definition keeps.

use std::collections::BTreeSet;
use std::path::Path;

/// Ops of the runtime itself and ops whose effects only a test of their own can show.
fn needs_no_example(name: &str) -> bool {
    let by_calls = [
        "PartitionedCall",
        "StatefulPartitionedCall",
        "If",
        "StatelessIf",
        "Case",
        "StatelessCase",
        "While",
        "StatelessWhile",
        "For",
        "RemoteCall",
        "SymbolicGradient",
        "BatchFunction",
    ];
    name.starts_with('_') || name == "Abort" || by_calls.contains(&name)
}

#[test]
fn every_op_has_a_kernel_and_shows_what_it_does() {
    let mut wrong = Vec::new();
    for def in tensorfleet_ops::all() {
        if def.kernels.is_empty() {
            wrong.push(format!("{} has no kernel", def.name));
        }
        if def.examples.is_empty() && def.scripts.is_empty() && !needs_no_example(def.name) {
            wrong.push(format!("{} has neither example nor script", def.name));
        }
        let names: Vec<&str> = def
            .examples
            .iter()
            .map(|example| example.name)
            .chain(def.scripts.iter().map(|script| script.name))
            .collect();
        if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
            wrong.push(format!("{} has two examples of one name", def.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kernel_tables_name_attributes_that_exist() {
    let registry = tensorfleet_ops::registry().unwrap();
    for def in tensorfleet_ops::all() {
        let signature = &registry.get(def.name).unwrap().signature;
        for (attr, types) in def.kernels.iter().flat_map(|kernel| kernel.types) {
            assert!(
                signature.attr(attr).is_some(),
                "{}: the kernel names attr {attr}",
                def.name
            );
            assert!(!types.is_empty(), "{}: no dtypes for attr {attr}", def.name);
        }
    }
}

#[test]
fn op_files_exist_in_their_folders() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops/src");
    for family in tensorfleet_ops::FAMILIES {
        assert!(
            source.join(family.name).is_dir(),
            "family {} has no folder of its name",
            family.name
        );
    }
}
