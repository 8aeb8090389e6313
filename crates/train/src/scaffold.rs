//! [`Scaffold`]: the nodes around a model that sessions need: initialisation, readiness, saving.

use std::sync::{Arc, OnceLock};

use tensorfleet_client::{Graph, Item, Operation, Output, Session, Tensor, Variable, keys};
use tensorfleet_status::Result;

use crate::saver::Saver;

type InitFn = Arc<dyn Fn(&Session) -> Result<()> + Send + Sync>;

/// What a training session needs around a model. Whatever is not given is made when the session starts:
/// first looked for in the graph's collections, then built from its variables.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::Scaffold;
///
/// let g = Graph::new();
/// let w = g.variable("w", &[2]).build();
/// let scaffold = Scaffold::new().init_fn(|session| {
///     // restore a pretrained part …
///     Ok(())
/// });
/// let ready = scaffold.finalize(&g)?;
/// assert_eq!(ready.init_op.name(), "init");
/// assert!(g.is_finalized());
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Default)]
pub struct Scaffold {
    init_op: Option<Operation>,
    init_feed: Vec<(Output, Tensor)>,
    init_fn: Option<InitFn>,
    ready_op: Option<Output>,
    ready_for_local_init_op: Option<Output>,
    local_init_op: Option<Operation>,
    summary_op: Option<Output>,
    saver: Arc<OnceLock<Saver>>,
}

impl Scaffold {
    /// Everything by default.
    pub fn new() -> Scaffold {
        Scaffold::default()
    }

    /// Initialises what no checkpoint has.
    #[must_use]
    pub fn init_op(mut self, op: &Operation) -> Self {
        self.init_op = Some(op.clone());
        self
    }

    /// Fed to the init op.
    #[must_use]
    pub fn init_feed(mut self, tensor: &Output, value: Tensor) -> Self {
        self.init_feed.push((tensor.clone(), value));
        self
    }

    /// Called after the init op.
    #[must_use]
    pub fn init_fn(
        mut self,
        init: impl Fn(&Session) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.init_fn = Some(Arc::new(init));
        self
    }

    /// Gives the names of what is not initialised: a string vector, empty when all is ready.
    #[must_use]
    pub fn ready_op(mut self, op: &Output) -> Self {
        self.ready_op = Some(op.clone());
        self
    }

    /// The same for what must be initialised before local variables can be.
    #[must_use]
    pub fn ready_for_local_init_op(mut self, op: &Output) -> Self {
        self.ready_for_local_init_op = Some(op.clone());
        self
    }

    /// Initialises what is local to each process.
    #[must_use]
    pub fn local_init_op(mut self, op: &Operation) -> Self {
        self.local_init_op = Some(op.clone());
        self
    }

    /// Gives the summaries to write.
    #[must_use]
    pub fn summary_op(mut self, op: &Output) -> Self {
        self.summary_op = Some(op.clone());
        self
    }

    /// Saves and restores.
    #[must_use]
    pub fn saver(self, saver: Saver) -> Self {
        // A second saver changes nothing: the first one given wins.
        let _ = self.saver.set(saver);
        self
    }

    pub(crate) fn saver_slot(&self) -> Arc<OnceLock<Saver>> {
        self.saver.clone()
    }

    /// Makes what is missing and finalizes the graph.
    pub fn finalize(&self, g: &Graph) -> Result<FinalScaffold> {
        let globals = g.global_variables();
        let locals = g.local_variables();
        let init_op = find_or_make(
            g,
            self.init_op.as_ref(),
            keys::INIT_OP,
            Graph::operations_in,
            || g.global_variables_initializer(),
        );
        let ready_op = find_or_make(
            g,
            self.ready_op.as_ref(),
            keys::READY_OP,
            Graph::outputs_in,
            || {
                report_uninitialized(
                    g,
                    "report_uninitialized_variables",
                    globals.iter().chain(&locals),
                )
            },
        );
        let ready_for_local_init_op = find_or_make(
            g,
            self.ready_for_local_init_op.as_ref(),
            keys::READY_FOR_LOCAL_INIT_OP,
            Graph::outputs_in,
            || report_uninitialized(g, "report_uninitialized_global_variables", &globals),
        );
        let local_init_op = find_or_make(
            g,
            self.local_init_op.as_ref(),
            keys::LOCAL_INIT_OP,
            Graph::operations_in,
            || {
                let tables = g.operations_in(keys::TABLE_INITIALIZERS);
                let variables = g.local_variables_initializer();
                g.group("init_all_local", tables.iter().chain([&variables]))
            },
        );
        let summary_op = self.find_summary_op(g);
        if self.saver.get().is_none() && !globals.is_empty() {
            let _ = self.saver.set(Saver::builder(g).sharded(true).build()?);
        }
        g.check()?;
        g.finalize();
        Ok(FinalScaffold {
            init_op,
            init_feed: self.init_feed.clone(),
            init_fn: self.init_fn.clone(),
            ready_op,
            ready_for_local_init_op,
            local_init_op,
            summary_op,
            saver: self.saver.get().cloned(),
        })
    }

    fn find_summary_op(&self, g: &Graph) -> Option<Output> {
        let known = self.summary_op.clone();
        let known = known.or_else(|| g.outputs_in(keys::SUMMARY_OP).into_iter().next());
        if known.is_some() {
            return known;
        }
        let summaries = g.outputs_in(keys::SUMMARIES);
        if summaries.is_empty() {
            return None;
        }
        let merged = g
            .op("MergeSummary")
            .name("Merge/MergeSummary")
            .list(&summaries)
            .output();
        g.add_to_collection(keys::SUMMARY_OP, &merged);
        Some(merged)
    }
}

/// What was given, else what the collection has, else what `make` makes, which is added to the collection.
fn find_or_make<T: Clone>(
    g: &Graph,
    given: Option<&T>,
    key: &str,
    find: fn(&Graph, &str) -> Vec<T>,
    make: impl FnOnce() -> T,
) -> T
where
    for<'a> &'a T: Into<Item>,
{
    let known = given.cloned().or_else(|| find(g, key).into_iter().next());
    known.unwrap_or_else(|| {
        let made = make();
        g.add_to_collection(key, &made);
        made
    })
}

/// A scaffold with everything in place.
#[derive(Clone)]
pub struct FinalScaffold {
    /// Initialises what no checkpoint has.
    pub init_op: Operation,
    /// Fed to it.
    pub init_feed: Vec<(Output, Tensor)>,
    /// Called after it.
    pub init_fn: Option<InitFn>,
    /// Gives the names of what is not initialised.
    pub ready_op: Output,
    /// The same before local initialisation.
    pub ready_for_local_init_op: Output,
    /// Initialises what is local.
    pub local_init_op: Operation,
    /// Gives the summaries to write, if there are any.
    pub summary_op: Option<Output>,
    /// Saves and restores; `None` if there are no variables.
    pub saver: Option<Saver>,
}

/// The names of those variables that have no value yet, as a string vector.
pub fn report_uninitialized<'a>(
    g: &Graph,
    name: &str,
    variables: impl IntoIterator<Item = &'a Variable>,
) -> Output {
    let _scope = g.name_scope(name);
    let _free = g.no_control_dependencies();
    let variables: Vec<&Variable> = variables.into_iter().collect();
    let names: Vec<String> = variables.iter().map(|v| v.name().to_owned()).collect();
    // On the session's own task: what is asked of other tasks is one bool per variable.
    let _here = g.device("");
    let _cpu = g.device("/cpu:0");
    let names = g.constant(&names[..]);
    if variables.is_empty() {
        return names.identity();
    }
    let known: Vec<Output> = variables
        .iter()
        .map(|variable| variable.is_initialized())
        .collect();
    let missing = g.op("Pack").list(&known).output().logical_not();
    let where_ = g.op("Where").input(&missing).output().squeeze(&[1]);
    names.gather(&where_)
}
