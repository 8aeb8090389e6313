//! Fused nodes against the graphs they are made of, where TensorFlow without oneDNN has nothing to compare with.

use tensorfleet_kernel::{AttrList, AttrValue, Value};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::state::tests::{Op, env, tensor};

/// What TensorFlow's master has been seen to send after the bias.
const ENDINGS: &[&[&str]] = &[
    &[],
    &["Relu"],
    &["Relu6"],
    &["Elu"],
    &["LeakyRelu"],
    &["Tanh"],
    &["Sigmoid"],
    &["_MklSwish"],
    &["_FusedHardSwish"],
    &["Mish"],
    &["_MklSwish", "LeakyRelu"],
    &["_FusedHardSwish", "LeakyRelu"],
    &["Add"],
    &["Add", "Relu"],
    &["Add", "Elu"],
    &["Add", "LeakyRelu"],
    &["Add", "Mish"],
];

fn run(op: &str, fused: &[&str], inputs: &[&Tensor]) -> Tensor {
    try_run(op, fused, inputs).unwrap()
}

fn try_run(op: &str, fused: &[&str], inputs: &[&Tensor]) -> Result<Tensor> {
    let args = inputs.len().saturating_sub(2) as i64;
    let names = fused.iter().map(|name| name.to_string().into()).collect();
    let attrs: [(&str, AttrValue); 14] = [
        ("T", DType::F32.into()),
        ("strides", vec![1i64, 1, 1, 1].into()),
        ("dilations", vec![1i64, 1, 1, 1].into()),
        ("padding", "SAME".into()),
        ("data_format", "NHWC".into()),
        ("filter_format", "HWIO".into()),
        ("epsilon", 0.001f32.into()),
        ("leakyrelu_alpha", 0.3f32.into()),
        ("alpha", 0.3f32.into()),
        ("transpose_a", false.into()),
        ("transpose_b", false.into()),
        ("num_args", args.into()),
        ("fused_ops", AttrValue::List(AttrList::S(names))),
        ("N", args.into()),
    ];
    let types = vec![DType::F32.into(); inputs.len()];
    let values: Vec<Value> = inputs.iter().map(|x| Value::from((*x).clone())).collect();
    Op::new(op, &attrs, &types).run(&env(), &values).map(tensor)
}

/// The graph that a list of functions was made of.
fn unfused(first: &str, fused: &[&str], inputs: &[&Tensor]) -> Tensor {
    let constant = |value: f32| Tensor::scalar(value);
    let [a, b, bias, addend] = inputs else {
        panic!("four inputs")
    };
    let mut x = run("BiasAdd", &[], &[&run(first, &[], &[a, b]), bias]);
    for name in fused {
        x = match *name {
            "Add" => run("AddV2", &[], &[&x, addend]),
            "_MklSwish" => run("Mul", &[], &[&x, &run("Sigmoid", &[], &[&x])]),
            "_FusedHardSwish" => {
                let above = run("AddV2", &[], &[&x, &constant(3.0)]);
                let product = run("Mul", &[], &[&x, &run("Relu6", &[], &[&above])]);
                run("Mul", &[], &[&product, &constant(1.0 / 6.0)])
            }
            "Mish" => {
                let gate = run("Tanh", &[], &[&run("Softplus", &[], &[&x])]);
                run("Mul", &[], &[&x, &gate])
            }
            other => run(other, &[], &[&x]),
        };
    }
    x
}

fn wave(dims: &[i64], pace: f32) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let values = (0..shape.elements()).map(|at| (at as f32 * pace).sin() * 2.0);
    Tensor::from_vec(shape.clone(), values.collect()).unwrap()
}

/// Both ways, with the bias as a vector and as a row that broadcasts.
fn compare(first: &str, op: &str, [a, b, bias, addend]: [&[i64]; 4]) {
    let (a, b, addend) = (wave(a, 0.7), wave(b, 1.3), wave(addend, 2.1));
    let vector = wave(bias, 0.9);
    let row = Shape::new(&[1, bias[0]]).unwrap();
    let row = vector.clone().reshaped(row).unwrap();
    for ending in ENDINGS {
        let want = unfused(first, ending, &[&a, &b, &vector, &addend]);
        let fused: Vec<&str> = ["BiasAdd"].iter().chain(*ending).copied().collect();
        for bias in [&vector, &row] {
            let mut inputs = vec![&a, &b, bias];
            inputs.extend(ending.contains(&"Add").then_some(&addend));
            let got = run(op, &fused, &inputs);
            assert_eq!(got.shape(), want.shape(), "{op} {fused:?}");
            let pairs = got.slice::<f32>().unwrap().iter();
            for (got, want) in pairs.zip(want.slice::<f32>().unwrap()) {
                let near = (got - want).abs() <= 1e-5 * want.abs().max(1.0);
                assert!(near, "{op} {fused:?}: {got} instead of {want}");
            }
        }
    }
}

#[test]
fn fused_products_are_the_graphs_they_were_made_of() {
    let shapes: [&[i64]; 4] = [&[5, 7], &[7, 19], &[19], &[5, 19]];
    compare("MatMul", "_FusedMatMul", shapes);
}

#[test]
fn fused_convolutions_are_the_graphs_they_were_made_of() {
    let shapes: [&[i64]; 4] = [&[2, 6, 5, 3], &[3, 3, 3, 18], &[18], &[2, 6, 5, 18]];
    compare("Conv2D", "_FusedConv2D", shapes);
}

#[test]
fn fused_convolutions_by_channel_are_the_graphs_they_were_made_of() {
    for multiplier in [1, 2] {
        let outputs = 9 * multiplier;
        let shapes: [&[i64]; 4] = [
            &[2, 6, 5, 9],
            &[3, 3, 9, multiplier],
            &[outputs],
            &[2, 6, 5, outputs],
        ];
        compare(
            "DepthwiseConv2dNative",
            "_FusedDepthwiseConv2dNative",
            shapes,
        );
    }
}

#[test]
fn refuses_arguments_that_do_not_fit() {
    let (image, filter) = (wave(&[1, 3, 3, 2], 0.7), wave(&[2, 2, 2, 1], 1.3));
    let (matrix, bias) = (wave(&[2, 2], 0.5), wave(&[2], 0.9));
    let (scalar, long) = (Tensor::scalar(1.0f32), wave(&[3], 0.9));
    let depthwise = "_FusedDepthwiseConv2dNative";
    let one = wave(&[1], 0.9);
    for (op, inputs) in [
        ("_FusedMatMul", [&matrix, &matrix, &long, &matrix]),
        ("_FusedMatMul", [&matrix, &matrix, &scalar, &matrix]),
        ("_FusedMatMul", [&matrix, &matrix, &matrix, &matrix]),
        ("_FusedMatMul", [&matrix, &matrix, &bias, &bias]),
        ("_FusedConv2D", [&image, &filter, &long, &image]),
        ("_FusedConv2D", [&image, &filter, &scalar, &image]),
        ("_FusedConv2D", [&image, &filter, &one, &image]),
        (depthwise, [&image, &filter, &long, &image]),
        (depthwise, [&image, &filter, &bias, &filter]),
        (depthwise, [&image, &image, &bias, &image]),
        (depthwise, [&matrix, &filter, &bias, &image]),
    ] {
        let status = try_run(op, &["BiasAdd", "Add"], &inputs).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{op}: {status}");
    }
}

/// All outputs of a normalisation of one image, or how its node fails.
fn normalise(op: &str, is_training: bool, activation: &str, sides: i64) -> Result<[Tensor; 6]> {
    let attrs: [(&str, AttrValue); 8] = [
        ("T", DType::F32.into()),
        ("U", DType::F32.into()),
        ("epsilon", 0.001f32.into()),
        ("exponential_avg_factor", 0.5f32.into()),
        ("data_format", "NCHW".into()),
        ("is_training", is_training.into()),
        ("activation_mode", activation.into()),
        ("num_side_inputs", sides.into()),
    ];
    let inputs = [0.3, 0.7, 1.1, 1.7].map(|pace| wave(&[3], pace));
    let mut values = vec![Value::from(wave(&[2, 3, 4, 2], 0.7))];
    values.extend(inputs.map(Value::from));
    let types = vec![DType::F32.into(); values.len()];
    Op::try_new(op, &attrs, &types)?
        .outputs(&env(), &values)
        .map(|all| all.map(tensor))
}

#[test]
fn fused_normalisations_are_the_graphs_they_were_made_of() {
    for is_training in [true, false] {
        let plain = normalise("FusedBatchNormV3", is_training, "", 0).unwrap();
        for activation in ["Identity", "Relu"] {
            let fused = normalise("_FusedBatchNormEx", is_training, activation, 0).unwrap();
            for (port, (plain, fused)) in plain.iter().zip(fused).enumerate() {
                let mut want = plain.clone();
                if port == 0 && activation == "Relu" {
                    want = run("Relu", &[], &[&want]);
                }
                assert_eq!(fused.bytes(), want.bytes(), "{activation} {port}");
            }
        }
    }
}

#[test]
fn refuses_normalisations_of_gpus() {
    for (activation, sides) in [("Relu", 1), ("Elu", 0)] {
        let status = normalise("_FusedBatchNormEx", false, activation, sides).unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{status}");
    }
}
