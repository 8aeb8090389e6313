//! Convolutions on NHWC slices.
