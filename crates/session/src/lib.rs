//! The in-process session: feeds and fetches by name, passes, plans, steps. No network.
//!
//! ```
//! use tensorfleet_graph::GraphBuilder;
//! use tensorfleet_session::{Session, SessionOptions};
//! use tensorfleet_tensor::Tensor;
//!
//! let session = Session::new(SessionOptions::default())?;
//! let mut g = GraphBuilder::new(session.registry().clone());
//! let x = g.op("Placeholder").name("x").attr("dtype", tensorfleet_tensor::DType::F32).output()?;
//! g.op("Identity").name("y").input(x).build()?;
//! session.extend(&g.finish().export()?)?;
//! let y = session.run(&[("x:0", Tensor::scalar(2.0f32))], &["y:0"], &[])?;
//! assert_eq!(y[0].to_scalar::<f32>()?, 2.0);
//! # Ok::<(), tensorfleet_status::Status>(())
//! ```

mod callable;
mod metadata;
mod optimizer;
mod options;
mod partial;
mod prepared;
mod progress;
mod session;

pub use callable::{Callable, CallableOptions};
pub use metadata::{NodeTiming, RunMetadata};
pub use optimizer::optimizer;
pub use options::{RunOptions, SessionOptions};
pub use partial::PartialRun;
pub use progress::PartialProgress;
pub use session::Session;
