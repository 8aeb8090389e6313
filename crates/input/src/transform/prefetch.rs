//! [`Dataset::prefetch`]: a thread computes elements before they are asked for.
//!
//! The thread belongs to the iteration. When that is dropped the channel closes, and the thread ends with the element
//! it is at; nobody waits for it, as what is below may block for as long as it likes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tensorfleet_status::{Result, internal, panic_text, resource_exhausted};

use crate::dataset::{Dataset, Stream};
use crate::element::Element;

impl Dataset {
    /// Computes up to `count` elements ahead, on a thread. Put it last, behind [`batch`](Dataset::batch): while a step
    /// runs, the next batches are made.
    ///
    /// An error arrives where it belongs, a panic as INTERNAL. `prefetch(0)` does nothing.
    ///
    /// ```
    /// use tensorfleet_input::Dataset;
    /// use tensorfleet_tensor::Tensor;
    ///
    /// let ahead = Dataset::from_elements((0..6i64).map(Tensor::scalar)).batch(2, true).prefetch(2);
    /// assert_eq!(ahead.iter().count(), 3);
    /// ```
    pub fn prefetch(self, count: usize) -> Dataset {
        if count == 0 {
            return self;
        }
        Dataset::new(move |pass| {
            // One element is in the hands of the thread, so a channel of one less holds what is wanted.
            let (sender, receiver) = sync_channel(count - 1);
            let dataset = self.clone();
            std::thread::Builder::new()
                .name("prefetch".to_owned())
                .spawn(move || produce(&dataset, pass, &sender))
                .map_err(|error| resource_exhausted!("prefetch: no thread: {error}"))?;
            Ok(Box::new(Prefetched { receiver }))
        })
    }
}

struct Prefetched {
    receiver: Receiver<Result<Element>>,
}

impl Iterator for Prefetched {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Result<Element>> {
        // The channel closes when the thread has ended.
        self.receiver.recv().ok()
    }
}

/// What the thread does.
fn produce(dataset: &Dataset, pass: u64, sender: &SyncSender<Result<Element>>) {
    let produced = catch_unwind(AssertUnwindSafe(|| match dataset.open(pass) {
        Ok(stream) => send_all(stream, sender),
        // Nobody may listen any more, here and below.
        Err(status) => drop(sender.send(Err(status))),
    }));
    if let Err(panic) = produced {
        let status = internal!("prefetch: the input panicked: {}", panic_text(&*panic));
        drop(sender.send(Err(status)));
    }
}

fn send_all(stream: Stream, sender: &SyncSender<Result<Element>>) {
    for element in stream {
        let failed = element.is_err();
        if sender.send(element).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use tensorfleet_status::Code;
    use tensorfleet_tensor::Tensor;

    use super::*;

    /// Long enough for any machine; nothing waits for it unless something is wrong.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn numbers() -> Dataset {
        Dataset::from_elements((0..1_000_000i64).map(Tensor::scalar))
    }

    #[test]
    fn elements_come_in_order() {
        let ahead = numbers().take(100).prefetch(7);
        for (element, expected) in ahead.iter().zip(0i64..) {
            let value = element.unwrap().at(0).unwrap().to_scalar::<i64>();
            assert_eq!(value.unwrap(), expected);
        }
        assert_eq!(numbers().take(10).prefetch(0).iter().count(), 10);
    }

    #[test]
    fn thread_ends_when_the_iteration_is_dropped() {
        struct Ended(std::sync::mpsc::Sender<()>);
        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        for taken in [0, 1, 5] {
            let (sender, receiver) = channel();
            let sender = std::sync::Mutex::new(sender);
            let data = Dataset::from_generator(move || {
                let ended = Ended(sender.lock().unwrap().clone());
                (0i64..).map(move |i| {
                    let _held = &ended;
                    Ok(Element::from(Tensor::scalar(i)))
                })
            });
            let mut elements = data.prefetch(2).iter();
            assert_eq!(elements.by_ref().take(taken).count(), taken);
            drop(elements);
            receiver.recv_timeout(PATIENCE).unwrap();
        }
    }

    #[test]
    fn errors_and_panics_arrive_in_their_place() {
        let failing = |panics: bool| {
            numbers().map(move |element| match element.at(0)?.to_scalar::<i64>()? {
                3 if panics => panic!("no way"),
                3 => Err(internal!("bad")),
                _ => Ok(element),
            })
        };
        for (panics, text) in [(false, "bad"), (true, "the input panicked: no way")] {
            let mut elements = failing(panics).prefetch(2).iter();
            assert_eq!(elements.by_ref().take(3).filter(Result::is_ok).count(), 3);
            let error = elements.next().unwrap().unwrap_err();
            assert_eq!(error.code(), Code::Internal);
            assert!(error.message().contains(text), "{error}");
            assert!(elements.next().is_none());
        }
        let broken = Dataset::broken(internal!("asked wrongly")).prefetch(2);
        assert!(broken.iter().next().unwrap().is_err());
    }
}
