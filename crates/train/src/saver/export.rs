//! Graphs into files.

use prost::Message;
use tensorfleet_checkpoint::fs;
use tensorfleet_client::Graph;
use tensorfleet_proto as pb;
use tensorfleet_status::Result;

/// Writes a graph with its variables and collections into a file that TensorFlow's `tf.train.import_meta_graph`
/// reads.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::export_meta_graph;
///
/// let g = Graph::new();
/// g.variable("w", &[2]).initializer(init::zeros()).build();
/// let path = std::env::temp_dir().join(format!("model-{}.meta", std::process::id()));
/// export_meta_graph(&g, &path.to_string_lossy())?;
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn export_meta_graph(graph: &Graph, path: &str) -> Result<()> {
    write(path, &graph.meta_graph_def(None)?)
}

pub(super) fn write(path: &str, meta_graph: &pb::MetaGraphDef) -> Result<()> {
    fs::for_path(path)?.write_atomic(path, &meta_graph.encode_to_vec())
}
