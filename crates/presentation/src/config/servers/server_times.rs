//! Variables with which other clients limit the times of their MCP servers. They are defaults with the lowest
//! precedence.

use crate::config::{
    layers::{ResolvedSettings, environment::EnvironmentVariables},
    tree::{origin::Origin, problem::Problem, value::ValidatedConfigValue},
};

/// Name of each variable, whose unit is milliseconds; the key of `[mcp_servers.NAME]` for which it is a default; the
/// maximum of that key in seconds.
const VARIABLES: &[(&str, &str, u64)] =
    &[("MCP_TIMEOUT", "connect_timeout_seconds", 3_600), ("MCP_TOOL_TIMEOUT", "timeout_seconds", 86_400)];

/// Sets the defaults from the variables. Adds a note for each invalid value.
pub(in crate::config) fn fill_in(
    resolved: &mut ResolvedSettings,
    environment: &EnvironmentVariables,
    notes: &mut Vec<Problem>,
) {
    for (variable, key, most) in VARIABLES {
        let Some(text) = environment.get(variable) else { continue };
        let origin = Origin::Environment((*variable).into());
        match seconds(text, *most) {
            Some(seconds) => resolved.fill_in("mcp_servers", key, &ValidatedConfigValue::Integer(seconds), &origin),
            None => {
                let message = format!("it is to be a whole number of milliseconds, at most {most}000, and is left out");
                notes.push(Problem::new(origin, message));
            }
        }
    }
}

/// Converts a text with milliseconds to seconds, rounded up; `None` if it is not a number or not from 1 to `most`
/// seconds.
fn seconds(milliseconds: &str, most: u64) -> Option<u64> {
    let milliseconds: u64 = milliseconds.trim().parse().ok()?;
    Some(milliseconds.div_ceil(1000)).filter(|seconds| (1..=most).contains(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_whole_seconds_within_bounds() {
        for (text, expected) in
            [("1", Some(1)), ("30000", Some(30)), (" 1001 ", Some(2)), ("0", None), ("3600001", None), ("5s", None)]
        {
            assert_eq!(seconds(text, 3600), expected, "{text}");
        }
    }
}
