//! What `doctor` prints.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::Patient;
use super::judge::Finding;
use crate::output;

pub(super) fn text(patients: &[Patient], general: &[Finding], out: &mut dyn Write) -> Result<()> {
    let head = [
        "task",
        "address",
        "server",
        "devices",
        "round trip",
        "clock",
        "state",
    ];
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = [head].into_iter().chain(patients.iter().map(row)).collect();
    output::table(out, &rows)?;
    let mut warnings = 0;
    let own = patients.iter().flat_map(|patient| {
        let name = match patient.task() {
            Some(_) => format!("{} at {}: ", task(patient), patient.address),
            None => format!("{}: ", patient.address),
        };
        let named = move |finding| (name.clone(), finding);
        patient.findings.iter().map(named)
    });
    let general = general.iter().map(|finding| (String::new(), finding));
    for (place, finding) in own.chain(general) {
        let kind = if finding.serious {
            "problem"
        } else {
            "warning"
        };
        warnings += usize::from(!finding.serious);
        writeln!(out, "\n{kind}: {place}{}", finding.what)?;
        writeln!(out, "  {}", finding.remedy)?;
    }
    if patients.iter().all(Patient::is_well) {
        let warnings = match warnings {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            many => format!(", {many} warnings"),
        };
        let tasks = match patients.len() {
            1 => "1 task".to_owned(),
            many => format!("{many} tasks"),
        };
        writeln!(out, "\nthe cluster is well: {tasks}{warnings}")?;
    }
    Ok(())
}

fn row(patient: &Patient) -> Vec<String> {
    let examined = &patient.examined;
    let state = match (patient.is_well(), patient.findings.is_empty()) {
        (true, true) => "ok",
        (true, false) => "warning",
        (false, _) => "problem",
    };
    let unknown = || "-".to_owned();
    let milliseconds = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    vec![
        task(patient),
        patient.address.clone(),
        server(patient).unwrap_or_else(unknown),
        match examined.devices.len() {
            0 => unknown(),
            count => count.to_string(),
        },
        examined.round_trip.map_or_else(unknown, milliseconds),
        examined.skew.map_or_else(unknown, clock),
        state.to_owned(),
    ]
}

fn clock(ahead: f64) -> String {
    match (ahead * 100.0).round() / 100.0 {
        0.0 => "0.00 s".to_owned(),
        ahead => format!("{ahead:+.2} s"),
    }
}

/// `/job:ps/task:0`, or that nobody knows.
fn task(patient: &Patient) -> String {
    match patient.task() {
        Some(task) => format!("/job:{}/task:{}", task.job, task.index),
        None => "-".to_owned(),
    }
}

fn server(patient: &Patient) -> Option<String> {
    patient.examined.client.as_ref()?;
    Some(match &patient.examined.status {
        Some(status) => format!("tensorfleet {}", status.version),
        None => "tensorflow".to_owned(),
    })
}

pub(super) fn json(patients: &[Patient], general: &[Finding], out: &mut dyn Write) -> Result<()> {
    let tasks: Vec<Value> = patients.iter().map(described).collect();
    let value = json!({
        "well": patients.iter().all(Patient::is_well),
        "tasks": tasks,
        "findings": findings(general),
    });
    output::json(out, &value)
}

fn described(patient: &Patient) -> Value {
    let examined = &patient.examined;
    let status = examined.status.as_ref();
    let resolved: Vec<String> = examined.resolved.iter().map(ToString::to_string).collect();
    json!({
        "task": patient.task().map(|_| task(patient)),
        "address": patient.address,
        "well": patient.is_well(),
        "resolved": resolved,
        "answers_as": examined.task.as_ref().map(ToString::to_string),
        "server": examined.client.as_ref().map(|_| match status {
            Some(_) => "tensorfleet",
            None => "tensorflow",
        }),
        "version": status.map(|status| status.version.as_str()),
        "uptime_seconds": status.map(|status| status.uptime_seconds),
        "sessions": status.map(|status| status.sessions),
        "devices": examined.devices,
        "round_trip_seconds": examined.round_trip.map(|time| time.as_secs_f64()),
        "clock_ahead_seconds": examined.skew,
        "findings": findings(&patient.findings),
    })
}

fn findings(findings: &[Finding]) -> Vec<Value> {
    let kind = |finding: &Finding| {
        if finding.serious {
            "problem"
        } else {
            "warning"
        }
    };
    findings
        .iter()
        .map(|finding| {
            json!({"kind": kind(finding), "what": finding.what, "remedy": finding.remedy})
        })
        .collect()
}
