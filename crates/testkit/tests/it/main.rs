//! Walks the registry: every op keeps the rules, its examples hold here and in real TensorFlow. And the simulation.

mod builders;
mod examples;
mod gradients;
mod rules;
mod signatures;
mod sim;
mod tensorflow;
