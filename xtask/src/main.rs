//! `cargo xtask`: the project's own chores, written in Rust so that they run everywhere.

mod codegen;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("codegen") => codegen::run(),
        other => bail!("unknown task {other:?}; known tasks: codegen"),
    }
}
