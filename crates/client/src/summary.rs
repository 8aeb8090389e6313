//! Summaries: nodes that turn values into what TensorBoard shows, as strings for an event file.
//!
//! ```
//! use tensorfleet_client::{Graph, Session, summary};
//!
//! let g = Graph::new();
//! let loss = g.constant(0.5f32);
//! summary::scalar("loss", &loss);
//! summary::histogram("values", &g.constant([1.0f32, 2.0]));
//! let all = summary::merge_all(&g).unwrap();
//! let bytes = Session::new(&g)?.run(&all)?;
//! assert_eq!(bytes.elements(), 1);
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

use crate::collection::keys;
use crate::graph::Graph;
use crate::ops;
use crate::output::{Operand, Output};

/// A number over time.
#[track_caller]
pub fn scalar(name: &str, value: impl Operand) -> Output {
    let value = value.to_output();
    summary(&value, name, |tag, node| {
        ops::scalar_summary(tag, &value).name(node).output()
    })
}

/// The distribution of values over time.
#[track_caller]
pub fn histogram(name: &str, values: impl Operand) -> Output {
    let values = values.to_output();
    summary(&values, name, |tag, node| {
        ops::histogram_summary(tag, &values).name(node).output()
    })
}

/// The first `max_outputs` images of a batch `[batch, height, width, channels]`; TensorFlow's default is 3.
#[track_caller]
pub fn image(name: &str, images: impl Operand, max_outputs: i64) -> Output {
    let images = images.to_output();
    summary(&images, name, |tag, node| {
        let node = ops::image_summary(tag, &images).name(node);
        node.max_images(max_outputs).output()
    })
}

/// Texts.
#[track_caller]
pub fn text(name: &str, texts: impl Operand) -> Output {
    // A SummaryMetadata message that names the plugin `text`.
    tensor_with(name, texts, "\n\u{6}\n\u{4}text")
}

/// A tensor of any kind, for TensorBoard's plugins.
#[track_caller]
pub fn tensor(name: &str, value: impl Operand) -> Output {
    tensor_with(name, value, "")
}

#[track_caller]
fn tensor_with(name: &str, value: impl Operand, metadata: &str) -> Output {
    let value = value.to_output();
    summary(&value, name, |tag, node| {
        let metadata = value.graph().constant(metadata);
        ops::tensor_summary_v2(tag, &value, metadata)
            .name(node)
            .output()
    })
}

/// One string with all these summaries.
#[track_caller]
pub fn merge(summaries: &[impl Operand]) -> Output {
    let merged = ops::merge_summary(summaries).name("MergeSummary");
    merged.output()
}

/// One string with all summaries of the graph; `None` if it has none.
#[track_caller]
pub fn merge_all(graph: &Graph) -> Option<Output> {
    merge_all_in(graph, keys::SUMMARIES)
}

/// One string with all summaries of a collection; `None` if it has none.
#[track_caller]
pub fn merge_all_in(graph: &Graph, key: &str) -> Option<Output> {
    let summaries = graph.outputs_in(key);
    (!summaries.is_empty()).then(|| {
        ops::merge_summary(&summaries)
            .name("Merge/MergeSummary")
            .output()
    })
}

/// Makes a summary under its own scope and collects it. The tag is the scope's name, so that two summaries of
/// one name stay apart. `make` gets the tag and the node's name.
#[track_caller]
fn summary(value: &Output, name: &str, make: impl FnOnce(Output, &str) -> Output) -> Output {
    let g = value.graph();
    let _scope = g.name_scope(&clean(name));
    let tag = g.current_name_scope();
    let tags = g.named_constant("tags", tag.as_str());
    let made = make(tags, &format!("{tag}/"));
    g.add_to_collection(keys::SUMMARIES, &made);
    made
}

/// What names may not contain becomes an underscore.
fn clean(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-/_.".contains(c);
    let name: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    name.trim_start_matches('/').to_owned()
}
