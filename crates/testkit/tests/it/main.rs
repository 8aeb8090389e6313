//! Walks the registry: every op keeps the rules, its examples hold here and in real TensorFlow.

mod examples;
mod gradients;
mod rules;
mod signatures;
mod tensorflow;
