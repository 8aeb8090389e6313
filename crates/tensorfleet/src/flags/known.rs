//! Picks our flags out of a command line that has others too.

use std::collections::BTreeSet;

use clap::{Args, Command, FromArgMatches};
use tensorfleet_status::{Result, invalid_argument};

use super::ClusterFlags;

/// Our flags, and all other arguments in their order.
pub(super) fn parse(
    mut arguments: impl Iterator<Item = String>,
) -> Result<(ClusterFlags, Vec<String>)> {
    let command = Command::new("flags")
        .no_binary_name(true)
        .disable_help_flag(true);
    let mut command = ClusterFlags::augment_args(command);
    let names = names(&command);
    let (mut ours, mut rest) = (Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rest.push(argument);
            break;
        }
        let name = argument.strip_prefix("--").map(|flag| {
            flag.split_once('=')
                .map_or((flag, false), |(name, _)| (name, true))
        });
        match name {
            Some((name, has_value)) if names.contains(name) => {
                ours.push(argument);
                if !has_value {
                    ours.extend(arguments.next());
                }
            }
            _ => rest.push(argument),
        }
    }
    rest.extend(arguments);
    let flags = command
        .try_get_matches_from_mut(ours)
        .and_then(|matches| ClusterFlags::from_arg_matches(&matches))
        .map_err(|error| invalid_argument!("{}", reason(&error.to_string())))?;
    Ok((flags, rest))
}

/// All spellings of our flags.
fn names(command: &Command) -> BTreeSet<String> {
    let spellings = command.get_arguments().flat_map(|argument| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        aliases.into_iter().chain(argument.get_long())
    });
    spellings.map(str::to_owned).collect()
}

/// What was wrong, without the usage text that follows it.
fn reason(text: &str) -> &str {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    text.split("\n\n").next().unwrap_or(text).trim()
}
