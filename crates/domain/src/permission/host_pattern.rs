//! Host patterns, in rules and in the lists of hosts that a sandboxed command may reach.

use crate::tool_selection::wildcard_match;

/// Returns `true` if a host, in any case and without a port, matches a pattern in lower case.
///
/// `*.x.y` matches any name below `x.y`, at any depth, but not `x.y` itself; any other `*` stays within one label.
///
/// ```
/// use toolstead_domain::permission::host_pattern::host_matches;
///
/// assert!(host_matches("*.example.com", "API.v2.example.com"));
/// assert!(!host_matches("*.example.com", "example.com"));
/// assert!(host_matches("api-*.example.com", "api-2.example.com"));
/// ```
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
