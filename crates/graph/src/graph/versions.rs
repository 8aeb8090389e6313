//! [`Versions`]: which code made a graph and which may read it.

/// The version numbers of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version of the code that made the graph.
    pub producer: i32,
    /// The least version of code that may read it.
    pub min_consumer: i32,
    /// Versions of code that may not read it.
    pub bad_consumers: Vec<i32>,
}

impl Versions {
    /// The graph version that this code speaks: TensorFlow 2.21's.
    pub const CURRENT: i32 = 2474;
}

impl Default for Versions {
    fn default() -> Versions {
        Versions {
            producer: Versions::CURRENT,
            min_consumer: 0,
            bad_consumers: Vec::new(),
        }
    }
}
