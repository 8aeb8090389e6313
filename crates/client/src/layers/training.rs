//! [`Training`]: whether a layer trains, known when the graph is built or decided when it runs.

use crate::carried::Carried;
use crate::cond::cond;
use crate::output::Output;

/// Whether a layer trains: a `bool`, or a bool tensor that decides at each run.
///
/// With a placeholder one graph both trains and evaluates:
///
/// ```
/// use tensorfleet_client::{DType, Graph, Session, Tensor, layers};
///
/// let g = Graph::new();
/// let training = g.placeholder(DType::Bool, &[]);
/// let x = g.constant([1.0f32; 8]);
/// let y = layers::dropout(&x, 0.5).training(&training).seed(3).output();
///
/// let session = Session::new(&g)?;
/// let trained = session.run_fed(&[(&training, Tensor::scalar(true))], &y)?;
/// assert!(trained.slice::<f32>()?.iter().all(|value| [0.0, 2.0].contains(value)));
/// let evaluated = session.run_fed(&[(&training, Tensor::scalar(false))], &y)?;
/// assert_eq!(evaluated.slice::<f32>()?, [1.0; 8]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
pub enum Training {
    /// The same at every run: the other half is not in the graph.
    Always(bool),
    /// What the tensor says: both halves are in the graph, one of them runs.
    Decided(Output),
}

impl Training {
    /// Whether it never trains.
    pub(super) fn never(&self) -> bool {
        matches!(self, Training::Always(false))
    }

    /// What one closure builds while training, the other else.
    #[track_caller]
    pub(super) fn choose<T: Carried>(
        &self,
        training: impl FnOnce() -> T,
        evaluating: impl FnOnce() -> T,
    ) -> T {
        match self {
            Training::Always(true) => training(),
            Training::Always(false) => evaluating(),
            Training::Decided(decides) => cond(decides, training, evaluating),
        }
    }
}

impl From<bool> for Training {
    fn from(training: bool) -> Training {
        Training::Always(training)
    }
}

impl From<Output> for Training {
    fn from(decides: Output) -> Training {
        Training::Decided(decides)
    }
}

impl From<&Output> for Training {
    fn from(decides: &Output) -> Training {
        Training::Decided(decides.clone())
    }
}
