//! Matrix products on strided slices.
