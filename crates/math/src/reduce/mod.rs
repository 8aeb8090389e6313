//! Reductions over any set of axes, and scans along one: [`apply`] with a [`Reduce`] op, [`any`], [`all`], [`arg_max`],
//! [`arg_min`], [`cumulate`], [`l2_loss`].
//!
//! [`Layout`] merges neighbouring axes of the same kind, so that a reduction is a sequence of alternately kept and reduced
//! dimensions. Long sums are blocked and paired, so errors grow with the logarithm of the length; results do not depend on the
//! number of threads.
//!
//! ```
//! use tensorfleet_math::{par::Serial, reduce::{self, Layout, Reduce}};
//! let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let rows = Layout::new(&[2, 3], &[1]);
//! let mut out = [0.0; 2];
//! reduce::apply(&Serial, Reduce::Sum, &rows, &x, &mut out);
//! assert_eq!(out, [6.0, 15.0]);
//! let mut out = vec![0.0; Layout::new(&[2, 3], &[0]).out_len()];
//! reduce::apply(&Serial, Reduce::Max, &Layout::new(&[2, 3], &[0]), &x, &mut out);
//! assert_eq!(out, [4.0, 5.0, 6.0]);
//! ```

mod arg;
mod engine;
mod layout;
mod ops;
mod scan;
#[cfg(test)]
mod tests;

pub use arg::{arg_max, arg_min};
pub use layout::{Axis, Layout};
pub use ops::{L2, Reduce, ReduceElement, all, any, apply, l2_loss};
pub use scan::{Scan, ScanElement, cumulate};
