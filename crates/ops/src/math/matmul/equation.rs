//! Equations of `Einsum`: `ij,jk->ik`, one or two inputs, `...` for dimensions that are broadcast.

use smallvec::SmallVec;
use tensorfleet_status::{Result, invalid_argument};

/// The name of a dimension: a character, or for a dimension of an ellipsis its distance from the last as a negative number.
pub(super) type Label = i64;

/// The labels of one tensor.
pub(super) type Labels = SmallVec<[Label; 8]>;

/// A checked equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Equation {
    pub(super) inputs: SmallVec<[Subscript; 2]>,
    pub(super) output: Subscript,
}

/// The labels of one tensor, with the place of the ellipsis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscript {
    labels: Labels,
    ellipsis: Option<usize>,
}

impl Equation {
    pub(super) fn parse(text: &str, inputs: usize) -> Result<Equation> {
        let sides: SmallVec<[&str; 2]> = text.split("->").collect();
        let [left, right] = sides.as_slice() else {
            return Err(invalid_argument!(
                "Expecting exactly one '->' in einsum equation: {text}"
            ));
        };
        let terms: SmallVec<[&str; 2]> = left.split(',').collect();
        if terms.len() > 2 {
            return Err(invalid_argument!(
                "Expecting 1 or 2 input subscripts in equation '{text}' but got: {}",
                terms.len()
            ));
        }
        if terms.len() != inputs {
            return Err(invalid_argument!(
                "Expected {} inputs for equation {text} but got: {inputs}",
                terms.len()
            ));
        }
        let equation = Equation {
            inputs: terms
                .into_iter()
                .map(Subscript::parse)
                .collect::<Result<_>>()?,
            output: Subscript::parse(right)?,
        };
        for label in &equation.output.labels {
            let is_known = |input: &Subscript| input.labels.contains(label);
            if !equation.inputs.iter().any(is_known) {
                let name = u32::try_from(*label).ok().and_then(char::from_u32);
                return Err(invalid_argument!(
                    "Einsum output subscripts for equation '{text}' has label '{}' which is not present in the input subscripts",
                    name.unwrap_or('?')
                ));
            }
        }
        Ok(equation)
    }
}

impl Subscript {
    fn parse(text: &str) -> Result<Subscript> {
        let periods = text.chars().filter(|c| *c == '.').count();
        let (before, after, has_ellipsis) = match text.split_once("...") {
            Some((before, after)) if periods == 3 => (before, after, true),
            None if periods == 0 => (text, "", false),
            _ => {
                return Err(invalid_argument!(
                    "Expected at most one ellipsis (...), but found {periods} periods (.) in the input subscript: {text}"
                ));
            }
        };
        let label = |c: char| Label::from(u32::from(c));
        let mut labels: Labels = before.chars().map(label).collect();
        let ellipsis = has_ellipsis.then_some(labels.len());
        labels.extend(after.chars().map(label));
        Ok(Subscript { labels, ellipsis })
    }

    /// The labels of input `index` of this rank.
    pub(super) fn of_rank(&self, index: usize, rank: usize) -> Result<Labels> {
        match (self.ellipsis, rank.checked_sub(self.labels.len())) {
            (None, Some(0)) => Ok(self.labels.clone()),
            (None, _) => Err(invalid_argument!(
                "Expected input {index} to have rank {} but got: {rank}",
                self.labels.len()
            )),
            (Some(_), Some(more)) => Ok(self.with_broadcast(more)),
            (Some(_), None) => Err(invalid_argument!(
                "Expected input {index} to have rank at least {} but got: {rank}",
                self.labels.len()
            )),
        }
    }

    /// The labels of the output when the inputs have `count` broadcast dimensions.
    pub(super) fn of_output(&self, count: usize) -> Result<Labels> {
        if self.ellipsis.is_none() && count > 0 {
            return Err(invalid_argument!(
                "Output contains {count} broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts."
            ));
        }
        Ok(self.with_broadcast(count))
    }

    fn with_broadcast(&self, count: usize) -> Labels {
        let at = self.ellipsis.unwrap_or(0);
        let mut labels = Labels::from_slice(&self.labels[..at]);
        labels.extend((1..=count as i64).rev().map(|distance| -distance));
        labels.extend_from_slice(&self.labels[at..]);
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellipses_align_at_the_end() {
        let equation = Equation::parse("a...b,...->b...", 2).unwrap();
        assert_eq!(
            equation.inputs[0].of_rank(0, 4).unwrap().as_slice(),
            &[97, -2, -1, 98]
        );
        assert_eq!(equation.inputs[1].of_rank(1, 1).unwrap().as_slice(), &[-1]);
        assert_eq!(
            equation.output.of_output(2).unwrap().as_slice(),
            &[98, -2, -1]
        );
        assert!(equation.inputs[0].of_rank(0, 1).is_err());
    }

    #[test]
    fn refuses_what_is_no_equation() {
        for (text, inputs) in [
            ("", 1),
            ("ij", 1),
            ("i->->i", 1),
            ("i,j,k->ijk", 3),
            ("i,j->ij", 1),
            ("i->j", 1),
            ("..i->i", 1),
            ("i...j...->i", 1),
            ("i.j->i", 1),
        ] {
            assert!(Equation::parse(text, inputs).is_err(), "{text}");
        }
        let equation = Equation::parse("...i->i", 1).unwrap();
        assert!(equation.output.of_output(1).is_err());
        assert!(
            Equation::parse("i->i", 1).unwrap().inputs[0]
                .of_rank(0, 2)
                .is_err()
        );
    }
}
