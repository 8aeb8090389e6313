//! `cargo run -p tensorfleet-testkit --bin write-builders`: writes the typed builders of `crates/client/src/ops`.
//! Part of `cargo xtask codegen`.

use anyhow::{Context, Result};
use tensorfleet_testkit::builders;

fn main() -> Result<()> {
    for (name, text) in builders::files()? {
        let path = builders::folder().join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
