//! Files that real TensorFlow wrote (`tests/make_golden.py`), read and rewritten.

mod bundle;
mod files;

/// The path of a golden file.
fn golden(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}
