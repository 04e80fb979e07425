//! Which hosts a pattern names: the same in rules and in the lists of hosts that a sandboxed command may reach.

use crate::tool_selection::wildcard_match;

/// Tells whether a host, in any case and without a port, fits a pattern in lower case.
///
/// `*.x.y` is any name below, at any depth, not `x.y` itself; another `*` stays within one label.
pub fn host_matches(pattern: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if let Some(suffix) = pattern.strip_prefix("*.")
        && !suffix.contains('*')
    {
        return host.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
    }
    let (pattern, host): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), host.split('.').collect());
    pattern.len() == host.len() && pattern.iter().zip(host).all(|(pattern, label)| wildcard_match(pattern, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_label_by_label() {
        for (pattern, host, fits) in [
            ("example.com", "EXAMPLE.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "badexample.com", false),
            ("*.example.com", "a.example.com.evil.net", false),
            ("api-*.example.com", "api-1.example.com", true),
            ("api-*.example.com", "api-1.x.example.com", false),
            ("*.*.example.com", "a.example.com", false),
            ("*.*.example.com", "a.b.example.com", true),
            ("*.*.example.com", "a.b.c.example.com", false),
            ("", "", true),
            ("", "example.com", false),
        ] {
            assert_eq!(host_matches(pattern, host), fits, "{pattern} {host}");
        }
    }
}
