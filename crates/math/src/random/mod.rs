//! Random numbers, bit for bit those of TensorFlow's CPU kernels.
//!
//! A [`Philox`] is a place in a stream: [`Philox::new`] for stateful ops (keep it in the kernel and take
//! [`Philox::reserve_outputs`] per call), [`Philox::stateless`] for `seed` inputs, [`Philox::from_key_counter`] for `key` and
//! `counter` inputs. The `fill_*` functions take a copy and fill a slice; the result does not depend on the number of threads.
//!
//! | op | call |
//! |---|---|
//! | RandomUniform, StatelessRandomUniform(V2) | [`fill_uniform`] |
//! | RandomUniformInt, StatelessRandomUniformInt(V2) | [`fill_uniform_int`] |
//! | StatelessRandomUniformFullInt(V2) | [`fill_full_int`] |
//! | RandomStandardNormal, StatelessRandomNormal(V2) | [`fill_normal`] |
//! | TruncatedNormal, StatelessTruncatedNormal(V2) | [`fill_truncated_normal`] |
//! | RandomShuffle | [`shuffle_order`], reserving [`shuffle_samples`] |
//! | Multinomial, StatelessMultinomial | [`fill_multinomial`], reserving [`multinomial_outputs`] |
//! | RandomGamma, StatelessRandomGammaV2, RandomPoisson(V2) | [`fill_gamma`], [`fill_poisson`] |
//! | StatelessRandomBinomial, StatefulRandomBinomial | [`fill_binomial`] |
//! | ParameterizedTruncatedNormal and its stateless form | [`Sampler`] |
//! | RandomIndexShuffle | [`IndexShuffle`] |
//! | SobolSample | [`fill_sobol`] |
//! | candidate samplers | [`Words`] |

mod binomial;
mod bounded_normal;
mod fill;
mod gamma;
mod index_shuffle;
mod libm32;
mod multinomial;
mod normal;
mod philox;
mod shuffle;
mod sobol;
#[cfg(test)]
mod tests;
mod uniform;
mod words;

pub use binomial::{Binomial, fill_binomial};
pub use bounded_normal::{BoundedNormal, Bounds, Refused, Sampler};
pub use fill::Output;
pub use gamma::{FromDrawn, fill_gamma, fill_poisson};
pub use index_shuffle::IndexShuffle;
pub use multinomial::{fill_multinomial, multinomial_outputs};
pub use normal::{Drawn, Normal, fill_normal, fill_truncated_normal};
pub use philox::{Philox, RESERVED_SAMPLES_PER_OUTPUT};
pub use shuffle::{shuffle_order, shuffle_samples};
pub use sobol::{MOST_DIMENSIONS as MOST_SOBOL_DIMENSIONS, fill_sobol};
pub use uniform::{
    FullInt, UniformFloat, UniformInt, fill_full_int, fill_uniform, fill_uniform_int,
};
pub use words::Words;
