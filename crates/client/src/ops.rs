//! A typed builder function for every op.
