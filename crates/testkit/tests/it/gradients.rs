//! Gradient rules agree with central differences on the examples, in double.

use tensorfleet_testkit::gradient;

/// Examples whose values sit on a kink or where differences lose all digits: (op/example, why).
const EXEMPT: &[(&str, &str)] = &[
    ("Sign/signs", "the step at zero has no derivative"),
    (
        "Sin/large arguments",
        "the difference of two large angles loses its digits",
    ),
    (
        "Cos/large arguments",
        "the difference of two large angles loses its digits",
    ),
    ("Zeta/", "as in TensorFlow nothing flows to the exponent"),
    (
        "Betainc/",
        "as in TensorFlow nothing flows to the parameters",
    ),
];

#[test]
fn gradient_rules_agree_with_differences() {
    let registry = tensorfleet_ops::registry().unwrap();
    let mut wrong = Vec::new();
    for def in tensorfleet_ops::all().filter(|def| def.gradient.is_rule()) {
        match gradient::check(&registry, def) {
            Ok(found) => wrong.extend(found),
            Err(error) => wrong.push(format!("{}: {error:#}", def.name)),
        }
    }
    wrong.retain(|text| !EXEMPT.iter().any(|(name, _)| text.starts_with(name)));
    assert!(
        wrong.is_empty(),
        "{} gradients are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
