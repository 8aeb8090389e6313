//! Whole graphs in a session: what op examples cannot show.

mod files;
mod graphs;
mod lists;
mod pipelines;
mod queues;
mod readers;
mod variants;
