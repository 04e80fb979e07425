//! The variables by which other clients bound the time of their MCP servers: defaults below every file.

use super::{environment::Environment, layers::Resolved, origin::Origin, problem::Problem, value::Value};

/// Each variable, in milliseconds, with the key of `[mcp_servers.NAME]` that it is a default of and that key's bound.
const VARIABLES: &[(&str, &str, u64)] =
    &[("MCP_TIMEOUT", "connect_timeout_seconds", 3_600), ("MCP_TOOL_TIMEOUT", "timeout_seconds", 86_400)];

/// Fills in what the variables say, and nothing else does. `notes` is told of values that cannot be used.
pub(super) fn fill_in(resolved: &mut Resolved, environment: &Environment, notes: &mut Vec<Problem>) {
    for (variable, key, most) in VARIABLES {
        let Some(text) = environment.get(variable) else { continue };
        let origin = Origin::Environment((*variable).into());
        match seconds(text, *most) {
            Some(seconds) => resolved.fill_in("mcp_servers", key, &Value::Integer(seconds), &origin),
            None => {
                let message = format!("it is to be a whole number of milliseconds, at most {most}000, and is left out");
                notes.push(Problem::new(origin, message));
            }
        }
    }
}

/// Whole seconds, rounded up.
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
