//! [`Saver`]: variables into checkpoint files and back.
//!
//! | file | has |
//! |---|---|
//! | `nodes` | the nodes that save and restore |
//! | `kept` | which checkpoints exist, and which are deleted when there are too many |
//! | `export` | graphs into files |
//! | `compare` | whether a checkpoint fits a graph, before anything is changed |

mod compare;
mod export;
mod kept;
mod nodes;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tensorfleet_checkpoint::fs;
use tensorfleet_client::{Graph, Session, Tensor, Variable, keys};
use tensorfleet_proto as pb;
use tensorfleet_status::{Code, Result, Status, failed_precondition, invalid_argument};

pub use export::export_meta_graph;
pub use tensorfleet_checkpoint::state::latest_checkpoint;

use kept::Kept;
use nodes::{Saved, SaverNodes};

/// What a saver is made with.
#[must_use = "nothing is added to the graph before `build`"]
pub struct SaverBuilder {
    graph: Graph,
    variables: Option<Vec<(String, Variable)>>,
    max_to_keep: usize,
    keep_every: Duration,
    sharded: bool,
}

impl SaverBuilder {
    /// Only these variables, under their own names.
    pub fn variables(self, variables: &[Variable]) -> Self {
        let named = variables.iter().map(|v| (key_of(v), v.clone()));
        self.named_variables(named.collect())
    }

    /// Only these variables, under these names: to restore from a checkpoint that calls them otherwise.
    pub fn named_variables(mut self, variables: Vec<(String, Variable)>) -> Self {
        self.variables = Some(variables);
        self
    }

    /// Only variables that this checkpoint has with the same shape: to restore what can be.
    pub fn found_in(mut self, prefix: &str) -> Result<Self> {
        let all = self.variables.take().unwrap_or_else(|| all(&self.graph));
        self.variables = Some(compare::found_in(prefix, all)?);
        Ok(self)
    }

    /// How many of the newest checkpoints are kept; 0 for all. Five by default.
    pub fn max_to_keep(mut self, count: usize) -> Self {
        self.max_to_keep = count;
        self
    }

    /// Keeps one checkpoint of each such time for good.
    pub fn keep_checkpoint_every(mut self, time: Duration) -> Self {
        self.keep_every = time;
        self
    }

    /// Lets every task write its own variables. All of them must see the directory.
    pub fn sharded(mut self, sharded: bool) -> Self {
        self.sharded = sharded;
        self
    }

    /// Adds the nodes.
    pub fn build(self) -> Result<Saver> {
        let variables = self.variables.unwrap_or_else(|| all(&self.graph));
        if variables.is_empty() {
            return Err(invalid_argument!(
                "there are no variables to save; make the saver after the model"
            ));
        }
        let items: Vec<Saved> = variables
            .into_iter()
            .map(|(key, variable)| Saved { key, variable })
            .collect();
        let nodes = nodes::build(&self.graph, &items, self.sharded)?;
        let def = pb::SaverDef {
            filename_tensor_name: nodes.filename.name(),
            save_tensor_name: nodes.saved.name(),
            restore_op_name: nodes.restore.name(),
            max_to_keep: i32::try_from(self.max_to_keep).unwrap_or(i32::MAX),
            sharded: self.sharded,
            keep_checkpoint_every_n_hours: self.keep_every.as_secs_f32() / 3600.0,
            version: pb::saver_def::CheckpointFormatVersion::V2 as i32,
        };
        Ok(Saver {
            inner: Arc::new(Inner {
                graph: self.graph,
                items,
                nodes,
                def,
                kept: Mutex::new(Kept::new(self.max_to_keep, self.keep_every)),
            }),
        })
    }
}

/// Saves variables to checkpoints that TensorFlow reads, and restores them from its checkpoints and ours.
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::{Saver, latest_checkpoint};
///
/// let dir = tempfile::tempdir().unwrap();
/// let dir = dir.path().to_str().unwrap();
/// let g = Graph::new();
/// let w = g.variable("w", &[2]).initializer(init::ones()).build();
/// let saver = Saver::new(&g)?;
///
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// saver.save(&session, &format!("{dir}/model.ckpt"), Some(7))?;
///
/// let other = Session::new(&g)?;
/// let latest = latest_checkpoint(dir)?.unwrap();
/// assert!(latest.ends_with("model.ckpt-7"));
/// saver.restore(&other, &latest)?;
/// assert_eq!(other.run(&w)?.slice::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Saver {
    inner: Arc<Inner>,
}

struct Inner {
    graph: Graph,
    items: Vec<Saved>,
    nodes: SaverNodes,
    def: pb::SaverDef,
    kept: Mutex<Kept>,
}

impl Saver {
    /// A saver of all global variables.
    pub fn new(g: &Graph) -> Result<Saver> {
        Saver::builder(g).build()
    }

    /// A saver to be told more.
    pub fn builder(g: &Graph) -> SaverBuilder {
        SaverBuilder {
            graph: g.clone(),
            variables: None,
            max_to_keep: 5,
            keep_every: Duration::from_secs(10_000 * 3600),
            sharded: false,
        }
    }

    /// The nodes' names and options, as MetaGraphs carry them.
    pub fn def(&self) -> &pb::SaverDef {
        &self.inner.def
    }

    /// Writes `<prefix>-<step>` (or `<prefix>`), its `.meta`, and the state file of the directory; deletes
    /// what is too old. Returns the path that [`restore`](Self::restore) takes.
    pub fn save(&self, session: &Session, prefix: &str, step: Option<i64>) -> Result<String> {
        let inner = &self.inner;
        let path = match step {
            Some(step) => format!("{prefix}-{step}"),
            None => prefix.to_owned(),
        };
        let dir = parent(&path);
        fs::for_path(dir)
            .and_then(|fs| fs.create_dir_all(dir))
            .map_err(|status| cannot_write(dir, status))?;
        let feed = [(&inner.nodes.filename, Tensor::string(path.clone()))];
        session
            .run_fed(&feed, inner.nodes.saved.op())
            .map_err(|status| cannot_write(dir, status))?;
        self.write_meta_graph(&path)?;
        let mut kept = inner.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.add(dir, &path)?;
        Ok(path)
    }

    /// Assigns the values of a checkpoint to all variables of this saver. A checkpoint that does not fit is
    /// refused before anything is changed, if this process can read it.
    pub fn restore(&self, session: &Session, path: &str) -> Result<()> {
        let inner = &self.inner;
        compare::check(path, &inner.items)?;
        let feed = [(&inner.nodes.filename, Tensor::string(path.to_owned()))];
        session
            .run_fed(&feed, &inner.nodes.restore)
            .map_err(|status| {
                let remedy = if status.code() == Code::DataLoss {
                    "It is damaged: `tensorfleet checkpoint verify` tells where; begin from an older one."
                } else {
                    "Does every task that holds variables see the file?"
                };
                status.append(format_args!("\nRestoring from checkpoint {path} failed. {remedy}"))
            })
    }

    /// Goes on counting and deleting checkpoints where an earlier run stopped.
    pub fn recover_last_checkpoints(&self, paths: &[String]) {
        let mut kept = self
            .inner
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.recover(paths);
    }

    /// The checkpoints that are kept, oldest first.
    pub fn last_checkpoints(&self) -> Vec<String> {
        let kept = self
            .inner
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.paths()
    }

    /// The graph with this saver, as `.meta` files have it.
    pub fn meta_graph(&self) -> Result<pb::MetaGraphDef> {
        let inner = &self.inner;
        inner.graph.meta_graph_def(Some(inner.def.clone()))
    }

    fn write_meta_graph(&self, path: &str) -> Result<()> {
        export::write(&format!("{path}.meta"), &self.meta_graph()?)
    }
}

impl std::fmt::Debug for Saver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Saver({} variables)", self.inner.items.len())
    }
}

/// The name of a variable in checkpoints: parts are found under the whole's.
fn key_of(variable: &Variable) -> String {
    let part = variable.part().map(|part| part.whole_name.clone());
    part.unwrap_or_else(|| variable.name().to_owned())
}

fn all(g: &Graph) -> Vec<(String, Variable)> {
    let variables = g.variables_in(keys::GLOBAL_VARIABLES);
    variables.into_iter().map(|v| (key_of(&v), v)).collect()
}

fn parent(path: &str) -> &str {
    let dir = Path::new(path).parent().and_then(Path::to_str);
    dir.filter(|dir| !dir.is_empty()).unwrap_or(".")
}

fn cannot_write(dir: &str, status: Status) -> Status {
    match status.code() {
        // A lost task is not the directory's fault, and is recovered from.
        Code::Aborted | Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => status,
        Code::FailedPrecondition => failed_precondition!("{}", status.message()),
        code => Status::new(
            code,
            format!(
                "cannot write a checkpoint into {dir}: {}; choose a directory that exists or can be made, and that the task which writes may write to",
                status.message()
            ),
        ),
    }
}
