//! Reading graphs: GraphDef or MetaGraphDef, binary or text.

use std::path::Path;

use anyhow::{Context, Result};
use prost::Message;
use tensorfleet_proto::{GraphDef, MetaGraphDef, text};

use crate::output::Misuse;

/// Reads a graph by what its name ends with: .pb, .pbtxt, .meta.
pub(crate) fn read(path: &Path) -> Result<GraphDef> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("pbtxt" | "prototxt") => {
            let source =
                String::from_utf8(bytes).with_context(|| format!("{shown} is not text"))?;
            text::parse(&source).map_err(|error| anyhow::anyhow!("{shown}:{error}"))
        }
        Some("meta") => {
            let meta = MetaGraphDef::decode(bytes.as_slice())
                .with_context(|| format!("{shown} is no MetaGraphDef"))?;
            meta.graph_def
                .with_context(|| format!("{shown} holds no graph"))
        }
        Some("pb") => {
            GraphDef::decode(bytes.as_slice()).with_context(|| format!("{shown} is no GraphDef"))
        }
        _ => Err(Misuse(format!(
            "{shown}: the name must end with .pb, .pbtxt or .meta, so that the format is known"
        ))
        .into()),
    }
}
