//! Small graphs from text, run in a session.

use tensorfleet_graph::{Graph, GraphBuilder, NodeId, Output, text};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_tensor::{Element, Tensor};

/// A builder that knows every op.
pub(crate) fn builder() -> GraphBuilder {
    GraphBuilder::new(tensorfleet_ops::registry().unwrap())
}

/// The graph of a text in the language of op scripts.
pub(crate) fn graph(text: &str) -> Graph {
    let mut builder = builder();
    text::parse_graph(&mut builder, text).unwrap();
    builder.finish()
}

/// Lets input 1 of `merge` come from `next`, which a text cannot say.
pub(crate) fn close_loop(graph: &mut Graph, back_edges: &[(&str, &str)]) {
    for (merge, next) in back_edges {
        let merge: NodeId = graph.find(merge).unwrap();
        let next: NodeId = graph.find(next).unwrap();
        graph.set_input(merge, 1, Output::from(next)).unwrap();
    }
}

/// A session with this graph.
pub(crate) fn session(graph: &Graph) -> Session {
    let options = SessionOptions::default();
    let session = Session::with_registry(options, graph.registry().clone()).unwrap();
    session.extend(&graph.export().unwrap()).unwrap();
    session
}

/// The elements of a tensor.
pub(crate) fn values<T: Element>(tensor: &Tensor) -> Vec<T> {
    tensor.slice::<T>().unwrap().to_vec()
}
