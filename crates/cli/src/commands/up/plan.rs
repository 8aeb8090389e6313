//! The flags become a cluster: jobs, counts, ports.

use anyhow::{Context, Result};
use tensorfleet_rpc::free_ports;

use crate::args::UpArgs;
use crate::output::Misuse;
use crate::tasks::{EVALUATOR, Plan};

pub(super) fn plan(args: &UpArgs) -> Result<Plan> {
    let jobs = jobs(args)?;
    let count = jobs.iter().map(|(_, count)| *count as usize).sum();
    let ports = ports(args, count)?;
    Plan::new(&args.host, jobs, &ports)
}

/// Jobs and how many tasks each has, in the order in which they get their ports.
fn jobs(args: &UpArgs) -> Result<Vec<(String, u32)>> {
    let named = [
        ("chief", args.chief.then_some(1)),
        ("ps", args.ps),
        ("worker", args.workers),
    ];
    let mut jobs = Vec::new();
    for (job, count) in named {
        jobs.extend(count.map(|count| (job.to_owned(), count)));
    }
    for given in &args.jobs {
        let parsed = given.split_once('=');
        let parsed = parsed.and_then(|(job, count)| Some((job, count.parse().ok()?)));
        let (job, count) = parsed.ok_or_else(|| {
            Misuse(format!(
                "--job {given}: write a name and a number, such as --job reader=2"
            ))
        })?;
        if job == EVALUATOR {
            return Err(Misuse(format!(
                "--job {given}: an evaluator is outside the cluster and has no server; use --evaluator"
            ))
            .into());
        }
        jobs.push((job.to_owned(), count));
    }
    if jobs.is_empty() {
        return Ok(vec![("ps".to_owned(), 1), ("worker".to_owned(), 1)]);
    }
    jobs.retain(|(_, count)| *count > 0);
    if jobs.is_empty() {
        return Err(Misuse(
            "0 tasks were asked for: a cluster has at least one, such as --workers 1".to_owned(),
        )
        .into());
    }
    Ok(jobs)
}

fn ports(args: &UpArgs, count: usize) -> Result<Vec<u16>> {
    let Some(base) = args.base_port else {
        let host = args.bind_host();
        return free_ports(host, count).with_context(|| {
            format!("no free port on {host}: is it a name or address of this machine?")
        });
    };
    let ports = usize::from(base)..usize::from(base) + count;
    let ports: Option<Vec<u16>> = ports.map(|port| port.try_into().ok()).collect();
    let ports = ports.filter(|_| base > 0).ok_or_else(|| {
        Misuse(format!(
            "--base_port {base}: {count} tasks need ports from 1 to 65535"
        ))
    })?;
    Ok(ports)
}

impl UpArgs {
    /// Where the tasks listen.
    fn bind_host(&self) -> &str {
        self.server.bind.as_deref().unwrap_or(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        up: UpArgs,
    }

    fn planned(flags: &[&str]) -> Result<String, String> {
        let args = Typed::parse_from([&["up"], flags].concat()).up;
        plan(&args)
            .map(|plan| plan.cluster.to_string())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn ports_follow_the_base_in_the_order_of_the_flags() {
        let flags = ["--base_port=9000", "--chief", "--ps=2", "--workers=1"];
        assert_eq!(
            planned(&flags).unwrap(),
            "ClusterSpec({'chief': ['localhost:9000'], 'ps': ['localhost:9001', 'localhost:9002'], 'worker': ['localhost:9003']})"
        );
        let flags = ["--base_port=9000", "--host=127.0.0.1", "--job=reader=1"];
        assert_eq!(
            planned(&flags).unwrap(),
            "ClusterSpec({'reader': ['127.0.0.1:9000']})"
        );
        let default = planned(&["--base_port=9000"]).unwrap();
        assert_eq!(
            default,
            "ClusterSpec({'ps': ['localhost:9000'], 'worker': ['localhost:9001']})"
        );
    }

    #[test]
    fn none_of_a_job_is_none() {
        for none in ["--ps=0", "--job=ps=0", "--job=reader=0"] {
            let flags = ["--base_port=9000", "--workers=1", none];
            assert_eq!(
                planned(&flags).unwrap(),
                "ClusterSpec({'worker': ['localhost:9000']})"
            );
            let error = planned(&[none]).unwrap_err();
            assert!(error.contains("0 tasks"), "{error}");
        }
    }

    #[test]
    fn misuse_is_explained() {
        let check = |flags: &[&str], words: &str| {
            let error = planned(flags).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        check(&["--job=reader"], "--job reader=2");
        check(&["--job=reader=x"], "--job reader=2");
        check(&["--job=evaluator=1"], "--evaluator");
        check(&["--ps=1", "--job=ps=2"], "Duplicate job");
        check(&["--job=a b=1"], "job name");
        check(&["--base_port=65535", "--ps=2"], "65535");
        check(&["--base_port=0", "--ps=2"], "--base_port 0");
    }

    #[test]
    fn programs_learn_their_place() {
        let args = Typed::parse_from(["up", "--base_port=9000", "--ps=1"]).up;
        let plan = plan(&args).unwrap();
        assert_eq!(
            plan.tf_config(&plan.tasks[0]).to_string(),
            r#"{"cluster":{"ps":["localhost:9000"]},"task":{"type":"ps","index":0}}"#
        );
        assert_eq!(plan.cluster_flags(), ["--ps_hosts=localhost:9000"]);
        assert_eq!(plan.tasks[0].name(), "/job:ps/task:0");
    }
}
