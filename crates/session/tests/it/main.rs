//! Whole graphs in a session: what op examples cannot show.

mod graphs;
mod lists;
mod queues;
