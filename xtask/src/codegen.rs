//! `cargo xtask codegen`: turns `crates/proto/protos` into the Rust code checked in under
//! `crates/proto/src/gen`, and the registry of ops into the builders in `crates/client/src/ops`.
//! The latter is done by a program of the `testkit` crate, which may know the ops.
//!
//! Generation is pure Rust (protox parses, prost-build writes) and depends on nothing but the
//! `.proto` files, so the same input gives the same bytes on every machine. A test holds the
//! checked-in files to that.

mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use protox::prost_reflect::DescriptorPool;

use crate::workspace;

/// Regenerates the checked-in code of the `proto` and `client` crates.
pub(crate) fn run() -> Result<()> {
    let proto = proto_crate();
    let gen_dir = proto.join("src/gen");
    if gen_dir.exists() {
        fs::remove_dir_all(&gen_dir).with_context(|| format!("clearing {}", gen_dir.display()))?;
    }
    generate(&proto.join("protos"), &gen_dir)?;
    let builders = workspace::program("write-builders", false)?;
    workspace::succeed(Command::new(builders).current_dir(workspace::root()))
}

fn proto_crate() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/proto")
}

/// Writes the Rust code for every `.proto` file below `protos` into `out`.
fn generate(protos: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    let files = proto_files(protos)?;
    let descriptors = protox::compile(&files, [protos]).context("reading the .proto files")?;

    let pool = DescriptorPool::from_file_descriptor_set(descriptors.clone())?;
    fs::write(out.join("schema.rs"), schema::write(&pool)?).context("writing schema.rs")?;

    prost_build::Config::new()
        .out_dir(out)
        .bytes(["."])
        .btree_map(["."])
        .enable_type_names()
        .compile_well_known_types()
        .compile_fds(descriptors)
        .context("writing the Rust code")
}

/// All `.proto` files below `root`, sorted so that the output does not depend on the file system.
fn proto_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "proto")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(folder: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(&path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn checked_in_code_is_fresh() {
        let proto = proto_crate();
        let fresh = tempfile::tempdir().unwrap();
        generate(&proto.join("protos"), fresh.path()).unwrap();
        let (fresh, kept) = (read_all(fresh.path()), read_all(&proto.join("src/gen")));
        let names = |files: &[(String, String)]| -> Vec<String> {
            files.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&fresh), names(&kept), "run `cargo xtask codegen`");
        for ((name, fresh), (_, kept)) in fresh.iter().zip(&kept) {
            assert!(fresh == kept, "{name} is stale: run `cargo xtask codegen`");
        }
    }
}
