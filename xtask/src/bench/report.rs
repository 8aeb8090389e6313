//! What was measured: one table row per case, one JSON file per case, the table in the docs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::machine;
use super::side::Round;

/// The table's first two lines.
pub(super) const HEAD: &str = "\
| case | TensorFleet | TensorFlow | ratio | lowest to highest | best to best | aim |
|---|---|---|---|---|---|---|";

const BEGIN: &str = "<!-- bench table: written by cargo xtask bench --update-docs -->";
const END: &str = "<!-- end of the bench table -->";

/// All rounds of one case.
#[derive(Debug)]
pub(super) struct Measured {
    spec: Value,
    pub(super) ours: Vec<Round>,
    pub(super) theirs: Vec<Round>,
}

impl Measured {
    pub(super) fn new(spec: Value) -> Self {
        Self {
            spec,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// TensorFlow's time over ours: the median over the rounds. Above 1 we are faster.
    pub(super) fn ratio(&self) -> f64 {
        median(&self.ratios())
    }

    fn ratios(&self) -> Vec<f64> {
        let pairs = self.ours.iter().zip(&self.theirs);
        pairs
            .map(|(ours, theirs)| theirs.median_ns / ours.median_ns)
            .collect()
    }

    fn units(&self) -> f64 {
        self.spec["units"]
            .as_f64()
            .filter(|units| *units > 0.0)
            .unwrap_or(1.0)
    }

    /// Nanoseconds per unit of work: the median over the rounds.
    fn per_unit(&self, rounds: &[Round]) -> f64 {
        let times: Vec<f64> = rounds.iter().map(|round| round.median_ns).collect();
        median(&times) / self.units()
    }

    /// The row of the table.
    pub(super) fn row(&self) -> String {
        let ratios = self.ratios();
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        let (ours, theirs) = (self.per_unit(&self.ours), self.per_unit(&self.theirs));
        format!(
            "| {} | {} | {} | **{:.2}** | {lowest:.2} to {highest:.2} | {:.2} | {} |",
            self.spec["case"].as_str().unwrap_or("?"),
            self.shown(ours),
            self.shown(theirs),
            self.ratio(),
            best(&self.theirs) / best(&self.ours),
            self.aim(ours),
        )
    }

    /// A time per unit, with the rate if the case has one.
    fn shown(&self, ns: f64) -> String {
        let time = duration(ns);
        let rate = |field: &str| self.spec[field].as_f64().filter(|amount| *amount > 0.0);
        match (rate("flops"), rate("bytes")) {
            (Some(flops), _) => format!("{time} ({:.0} Gflop/s)", flops / ns),
            (None, Some(bytes)) => format!("{time} ({:.1} GB/s)", bytes / ns),
            (None, None) => time,
        }
    }

    /// The aim and whether it is met.
    fn aim(&self, ours: f64) -> String {
        let want = &self.spec["want"];
        let (text, met) = if let Some(ratio) = want["ratio"].as_f64() {
            (format!("{ratio:.2}"), self.ratio() >= ratio)
        } else if let Some(ns) = want["ns"].as_f64() {
            let unit = self.spec["unit"].as_str().unwrap_or("step");
            (format!("{} per {unit}", duration(ns)), ours <= ns)
        } else {
            return String::new();
        };
        format!("{text} {}", if met { "met" } else { "**missed**" })
    }

    fn to_json(&self) -> Value {
        let rounds = |rounds: &[Round]| -> Vec<Value> {
            let one = |round: &Round| json!({"ns_per_iter": round.median_ns, "min_ns": round.min_ns, "iters": round.iters});
            rounds.iter().map(one).collect()
        };
        json!({
            "spec": self.spec,
            "ratio": self.ratio(),
            "ours": rounds(&self.ours),
            "tensorflow": rounds(&self.theirs),
        })
    }

    fn from_json(value: &Value) -> Self {
        let rounds = |value: &Value| -> Vec<Round> {
            let rounds = value.as_array().map_or(&[][..], Vec::as_slice);
            let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            let one = |round: &Value| Round {
                median_ns: number(&round["ns_per_iter"]),
                min_ns: number(&round["min_ns"]),
                iters: round["iters"].as_u64().unwrap_or(0),
            };
            rounds.iter().map(one).collect()
        };
        Self {
            spec: value["spec"].clone(),
            ours: rounds(&value["ours"]),
            theirs: rounds(&value["tensorflow"]),
        }
    }

    /// Writes the rounds to `folder`, from where the docs take them.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let name = self.spec["case"]
            .as_str()
            .context("a case without a name")?;
        let path = folder.join(format!("{name}.json"));
        fs::write(&path, format!("{:#}\n", self.to_json()))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Writes the table of all cases measured so far into the page.
pub(super) fn update_docs(page: &Path, folder: &Path, names: &[String]) -> Result<()> {
    let mut table = format!("{}\n\n{HEAD}\n", machine::describe());
    for name in names {
        if let Ok(text) = fs::read_to_string(folder.join(format!("{name}.json"))) {
            let value = serde_json::from_str(&text).with_context(|| format!("{name}.json"))?;
            table += &Measured::from_json(&value).row();
            table.push('\n');
        }
    }
    let old = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let new = with_table(&old, &table).with_context(|| page.display().to_string())?;
    fs::write(page, new).with_context(|| page.display().to_string())
}

/// The page with what stands between the two marks replaced.
fn with_table(page: &str, table: &str) -> Result<String> {
    let begin = page.find(BEGIN).context("no mark where the table begins")? + BEGIN.len();
    let end = page[begin..]
        .find(END)
        .context("no mark where the table ends")?
        + begin;
    Ok(format!("{}\n\n{table}\n{}", &page[..begin], &page[end..]))
}

fn best(rounds: &[Round]) -> f64 {
    rounds
        .iter()
        .map(|round| round.min_ns)
        .fold(f64::INFINITY, f64::min)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Three significant digits with the fitting unit.
fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ns: f64) -> Round {
        Round {
            median_ns: ns,
            min_ns: ns / 2.0,
            iters: 9,
        }
    }

    fn measured() -> Measured {
        let spec = json!({"case": "add", "units": 10, "unit": "op", "bytes": 1000, "want": {"ratio": 1.5}});
        Measured {
            spec,
            ours: vec![round(1000.0), round(2000.0), round(1000.0)],
            theirs: vec![round(3000.0), round(2000.0), round(1000.0)],
        }
    }

    #[test]
    fn shows_medians_of_ratios() {
        let row = "| add | 100 ns (10.0 GB/s) | 200 ns (5.0 GB/s) | **1.00** | 1.00 to 3.00 | 1.00 | 1.50 **missed** |";
        assert_eq!(measured().row(), row);
    }

    #[test]
    fn survives_json() {
        let before = measured();
        let after = Measured::from_json(&before.to_json());
        assert_eq!(before.row(), after.row());
        assert_eq!(before.ours, after.ours);
    }

    #[test]
    fn replaces_only_the_table() {
        let page = format!("before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n");
        let new = with_table(&page, "new\n").unwrap();
        assert_eq!(new, format!("before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"));
        assert_eq!(with_table(&new, "new\n").unwrap(), new);
        assert!(with_table("no marks", "new").is_err());
    }

    #[test]
    fn writes_times() {
        for (ns, text) in [
            (4.256, "4.26 ns"),
            (99.94, "99.9 ns"),
            (12_345.0, "12.3 µs"),
            (250e6, "250 ms"),
            (1.5e9, "1.50 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn takes_medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
