//! Where elements come from, but for files: arrays and iterators.

mod arrays;
mod iterators;
