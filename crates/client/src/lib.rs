//! The client's side of TensorFleet: graphs built with handles, and sessions that run them.
//!
//! A [`Graph`] is a cheap handle. So are the [`Output`]s and [`Operation`]s that its methods return,
//! which makes arithmetic read as arithmetic:
//!
//! ```
//! use tensorfleet_client::{DType, Graph, Session, Tensor};
//!
//! let g = Graph::new();
//! let x = g.placeholder(DType::F32, &[-1, 3]);
//! let w = g.constant([[1.0f32], [2.0], [3.0]]);
//! let y = x.matmul(&w) * 2.0 + 1.0;
//!
//! let session = Session::new(&g)?;
//! let fed = Tensor::from_slice(tensorfleet_client::Shape::new(&[1, 3])?, &[1.0f32, 0.0, 1.0])?;
//! let value = session.run_fed(&[(&x, fed)], &y)?;
//! assert_eq!(value.slice::<f32>()?, [9.0]);
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```
//!
//! # Mistakes
//!
//! Building functions return handles, not `Result`s. The first mistake (a wrong type, an unknown name)
//! is kept in the graph together with the line of the program that made it; what was built from it is void.
//! Whatever next can fail returns it: [`Graph::check`], [`Graph::graph_def`], [`Session::run`].
//!
//! # The parts
//!
//! | module | has |
//! |---|---|
//! | [`graph`](Graph) | the handle, what it keeps, names, export |
//! | `scope` | name scopes, devices, control dependencies, colocation |
//! | `operation`, `output` | handles of nodes and tensors, and the builder that makes them |
//! | `operators`, `methods` | `+ - * /`, and what is often done with a tensor |
//! | [`ops`] | a typed builder for every op |
//! | `variable`, [`init`] | variables, variable scopes, initial values |
//! | `cond`, `while_loop` | conditionals and loops, out of closures |
//! | `partition`, `embedding` | variables in parts, rows of them by id |
//! | [`layers`], [`losses`], [`regularizers`], [`metrics`], [`summary`] | what models are made of |
//! | `gradients` | gradients of a graph as part of the graph |
//! | `collection` | named lists of things a graph carries along |
//! | `import`, `meta_graph` | going on with graphs that were written, as TensorFlow writes them |
//! | `session`, `fetch` | running it, in this process or on a server |

mod body;
mod carried;
mod collection;
mod cond;
mod device;
mod embedding;
mod fetch;
mod gradients;
mod graph;
mod import;
pub mod init;
pub mod layers;
pub mod losses;
mod meta_graph;
mod methods;
pub mod metrics;
mod operation;
mod operators;
pub mod ops;
mod output;
mod partition;
pub mod regularizers;
mod scope;
mod session;
mod shapes;
pub mod summary;
mod value;
mod variable;
mod variable_def;
mod variable_scope;
mod while_loop;

pub use carried::Carried;
pub use collection::{Item, keys};
pub use cond::{case, cond, switch_case};
pub use device::{DeviceFunction, NodeUnderPlacement};
pub use embedding::{
    Combiner, EmbeddingTable, Lookup, Rows, SparseIds, SparseLookup, Strategy, embedding_lookup,
    embedding_lookup_sparse,
};
pub use fetch::{Fetch, FetchList, Fetched};
pub use gradients::{Gradient, IndexedSlices, gradients, gradients_from};
pub use graph::Graph;
pub use operation::{OpBuilder, Operation};
pub use output::{Operand, Output};
pub use partition::{
    PartitionedBuilder, PartitionedVariable, Partitioner, fixed_size_partitioner,
    min_max_variable_partitioner, variable_axis_size_partitioner,
};
pub use scope::Scope;
pub use session::{Session, SessionOptions};
pub use value::IntoTensor;
pub use variable::{Part, Variable, VariableBuilder};
pub use variable_scope::Reuse;
pub use while_loop::{WhileLoop, while_loop};

pub use tensorfleet_kernel::{AttrValue, FuncRef};
pub use tensorfleet_session::RunOptions;
pub use tensorfleet_status::{Code, Result, Status};
pub use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};
