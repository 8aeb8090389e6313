//! The network: two convolutions with pooling, then one dense layer, which makes ten numbers of an image.
//!
//! ```text
//! [N,64] → [N,8,8,1] →conv 3×3→ [N,8,8,16] →pool→ [N,4,4,16] →conv 3×3→ [N,4,4,32] →pool→ [N,2,2,32] →dense→ [N,10]
//! ```

use tensorfleet::layers::{self, Padding};
use tensorfleet::train::schedule::Polynomial;
use tensorfleet::train::{Adam, Minimize, Optimizer, get_or_create_global_step};
use tensorfleet::{
    DType, Graph, Operation, Output, Result, Reuse, Variable, init, losses, summary,
};

use super::data::{CLASSES, PIXELS, SIDE};

/// How fast it learns at first; towards the last step ever more slowly.
const LEARNING_RATE: f64 = 0.005;
/// The share of features that are left out of each step, so that the network does not rely on a few.
const DROPOUT: f64 = 0.3;

/// What a program feeds and fetches.
pub(super) struct Model {
    /// `[N, 64]`, from 0 to 1.
    pub(super) images: Output,
    /// `[N]`, from 0 to 9.
    pub(super) labels: Output,
    /// The mean cross entropy while training.
    pub(super) loss: Output,
    /// The share of images that are recognised.
    pub(super) accuracy: Output,
    /// Counts the updates of all workers.
    pub(super) global_step: Variable,
    /// One update by the fed batch.
    pub(super) train: Operation,
}

impl Model {
    /// Adds the network and its training up to `last_step` to a graph; nodes go where the graph's device scopes say.
    pub(super) fn new(g: &Graph, last_step: u64) -> Result<Model> {
        let global_step = get_or_create_global_step(g)?;
        let images = g.named_placeholder("images", DType::F32, &[-1, PIXELS as i64]);
        let labels = g.named_placeholder("labels", DType::I64, &[-1]);
        // The same variables twice: once to be trained, once to be tried.
        let scope = |reuse| g.variable_scope("network", reuse);
        let trained = scope(Reuse::Never).run(|| network(&images, true));
        let tried = scope(Reuse::Always).run(|| network(&images, false));
        let loss = losses::sparse_softmax_cross_entropy(&labels, &trained).output();
        let accuracy = g.name_scope("accuracy").run(|| {
            let right = tried.argmax(1).equal(&labels);
            right.cast(DType::F32).mean(&[])
        });
        let rate = Polynomial {
            initial: LEARNING_RATE,
            steps: last_step as f64,
            end: 0.0,
            power: 1.0,
            cycle: false,
        };
        let rate = rate.at(&global_step);
        summary::scalar("loss", &loss);
        summary::scalar("learning_rate", &rate);
        let options = Minimize::step(&global_step);
        let train = Adam::new(&rate).minimize_with(&loss, &options)?;
        Ok(Model {
            images,
            labels,
            loss,
            accuracy,
            global_step,
            train,
        })
    }
}

/// Ten numbers for each image; the largest says which digit it is.
fn network(images: &Output, training: bool) -> Output {
    let side = SIDE as i64;
    let x = images.reshape(&[-1, side, side, 1]);
    let x = convolution(&x, "conv1", 16);
    let x = convolution(&x, "conv2", 32);
    let features = layers::flatten(&x);
    let features = layers::dropout(&features, DROPOUT).training(training);
    let logits = layers::dense(features.output(), CLASSES as i64);
    logits.name("dense").output()
}

/// 3×3 and relu, then the largest of every 2×2.
fn convolution(x: &Output, name: &str, filters: i64) -> Output {
    let convolved = layers::conv2d(x, filters, [3, 3])
        .name(name)
        .padding(Padding::Same)
        .kernel_initializer(init::he_normal())
        .activation(Output::relu)
        .output();
    layers::max_pooling2d(&convolved, [2, 2]).output()
}

#[cfg(test)]
mod tests {
    use tensorfleet::Session;

    use super::*;
    use crate::demo::data::Digits;

    #[test]
    fn loss_falls_on_one_batch() {
        let digits = Digits::load().unwrap();
        let (images, labels) = digits.test.tensors().unwrap();
        let g = Graph::new();
        g.set_random_seed(1);
        let model = Model::new(&g, 100).unwrap();
        let session = Session::new(&g).unwrap();
        session.run(&g.global_variables_initializer()).unwrap();
        let feeds = [(&model.images, images), (&model.labels, labels)];
        let loss = || {
            let loss = session.run_fed(&feeds, &model.loss).unwrap();
            loss.to_scalar::<f32>().unwrap()
        };
        let before = loss();
        for _ in 0..5 {
            session.run_fed(&feeds, &model.train).unwrap();
        }
        assert!(loss() < before, "{} after {before}", loss());
        let step = session.run(&model.global_step).unwrap();
        assert_eq!(step.to_scalar::<i64>().unwrap(), 5);
    }
}
