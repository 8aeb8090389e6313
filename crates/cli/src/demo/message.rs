//! What a worker tells the demo: one JSON object a line, on the worker's stdout.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Message {
    /// The devices of the whole cluster, by their full names.
    Devices { devices: Vec<String> },
    /// There is a session to train in, for the first time or again; `step` is the global step it begins with.
    Session { step: u64 },
    /// Training goes on.
    Progress {
        /// The global step.
        step: u64,
        /// The loss of the last batch.
        loss: f64,
        /// Global steps that this worker made in a second, lately.
        steps_per_second: f64,
    },
    /// The model was tried on the test images.
    Accuracy { step: u64, accuracy: f64 },
    /// A checkpoint was written; `path` is its prefix.
    Saved { step: u64, path: String },
    /// This worker has done its part.
    Done { step: u64 },
}

impl Message {
    /// The line without its end.
    pub(super) fn to_line(&self) -> String {
        // No map in it has keys that are no strings, so it can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Nothing if it is no such line.
    pub(super) fn parse(line: &str) -> Option<Message> {
        serde_json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let messages = [
            Message::Devices {
                devices: vec!["/job:ps/replica:0/task:0/device:CPU:0".to_owned()],
            },
            Message::Progress {
                step: 7,
                loss: 0.5,
                steps_per_second: 12.0,
            },
            Message::Saved {
                step: 7,
                path: "two\nlines".to_owned(),
            },
        ];
        for message in messages {
            let line = message.to_line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Message::parse(&line), Some(message));
        }
        let line = Message::Done { step: 3 }.to_line();
        assert_eq!(line, r#"{"event":"done","step":3}"#);
        assert_eq!(Message::parse("hello"), None);
    }
}
