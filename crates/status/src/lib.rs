//! TensorFlow's canonical status codes and the one error type of TensorFleet.
//!
//! Every fallible function of every crate returns [`Result`]. A [`Status`] is one pointer wide, carries
//! the [`Code`] that travels on the wire, a text a person can act on, optional payloads
//! (type url → bytes) and the `derived` mark: *derived* errors are the echo of another failure
//! (a cancelled neighbour, an aborted rendezvous) and lose against a root error.
//!
//! ```
//! use tensorfleet_status::{Code, Result, invalid_argument};
//!
//! fn halve(n: i64) -> Result<i64> {
//!     if n % 2 != 0 {
//!         return Err(invalid_argument!("{n} is odd"));
//!     }
//!     Ok(n / 2)
//! }
//! assert_eq!(halve(3).unwrap_err().code(), Code::InvalidArgument);
//! ```

mod code;
mod macros;
mod panic;
mod status;

pub use code::Code;
pub use panic::panic_text;
pub use status::{DERIVED_STATUS_URL, Payload, Status};

/// The result type of every TensorFleet crate.
pub type Result<T, E = Status> = std::result::Result<T, E>;
