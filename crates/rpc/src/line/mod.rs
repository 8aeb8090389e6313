//! Lines: how tasks on one machine talk about their steps.
//!
//! A step over two tasks is a dozen small calls between them. As gRPC calls each is a stream of its own,
//! with headers, trailers and writes, on a connection for either direction. A line is one Unix socket
//! between two tasks that both call on. What is ready together leaves in one write and wakes the other
//! task once: its answers, and what it asks for in turn.
//!
//! ```text
//! task A ── gRPC /tensorfleet.Line/Open {host, A} ─────> task B
//!        <─ {B, name of its socket, secret} ────────────
//!        ── socket: secret, A, its task ────────────────>
//!        <─ welcome ────────────────────────────────────
//!        <═ records: calls, answers, cancels ══════════>
//! ```
//!
//! Calls keep their messages and their meaning; a line that breaks fails what waits on it, and whatever is
//! called next goes by gRPC until there is a new line. TensorFlow's servers do not know the question, and
//! tasks on other machines decline it.
//!
//! | file | what |
//! |---|---|
//! | `record` | what is written on the socket |
//! | `caller` | [`Line`]: calls that wait for their answers |
//! | `driver` | reads, answers and writes |
//! | `load` | how many calls are being answered |
//! | `lines` | [`Lines`]: opens and accepts |
//! | `to_task` | [`ToTask`]: the line to one task, opened when it is first wanted |

mod caller;
mod driver;
mod lines;
mod load;
mod record;
#[cfg(test)]
mod tests;
mod to_task;

pub(crate) use lines::{Lines, OPEN};
pub(crate) use record::Method;
pub(crate) use to_task::ToTask;
