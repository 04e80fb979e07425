//! Literal secrets in the description of a server.

use super::references::variable_for;
use serde_json::{Value as Json, json};
use toolstead_application::redaction::redacted_value;
use toolstead_domain::ServerName;

/// Last words of names whose values are secrets, besides those that the audit log knows.
const WORDS: &[&str] = &["auth", "credentials", "dsn", "key", "pat", "pwd"];

/// Returns `true` if the value of this name is a literal secret: not only a reference to one.
pub(super) fn is_literal(name: &str, value: &str) -> bool {
    let literal = without_references(value);
    if literal.is_empty() {
        return false;
    }
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default().to_ascii_lowercase();
    WORDS.contains(&last.as_str())
        || is_redacted(&json!({ name: literal }))
        || is_redacted(&json!({ "value": literal }))
}

/// Returns the indexes of arguments that are, or contain, literal secrets.
pub(super) fn in_arguments(arguments: &[String]) -> Vec<usize> {
    let literal: Vec<String> = arguments.iter().map(|text| without_references(text)).collect();
    let Json::Array(shown) = redacted_value(&json!(literal)) else { return Vec::new() };
    let is_changed =
        |at: &usize| !literal[*at].is_empty() && shown.get(*at).and_then(Json::as_str) != Some(literal[*at].as_str());
    (0..literal.len()).filter(is_changed).collect()
}

/// Returns `true` if the address contains a password or another secret.
pub(super) fn is_in_url(url: &str) -> bool {
    let literal = without_references(url);
    let has_password = url::Url::parse(&literal).is_ok_and(|url| url.password().is_some());
    has_password || is_redacted(&json!({ "url": literal }))
}

/// Returns the variable that replaces a secret of a server. Its prefix keeps it apart from the variables of other
/// programs: `ANTHROPIC_API_KEY` of the user is not the key of a server `anthropic`.
pub(super) fn variable(server: &ServerName, name: &str) -> String {
    variable_for(&format!("imported_{server}_{name}"))
}

fn is_redacted(value: &Json) -> bool {
    redacted_value(value) != *value
}

/// Returns the text without references to variables, and without the scheme of an `Authorization` header. The default
/// of a reference is literal text.
fn without_references(text: &str) -> String {
    let text = text.strip_prefix("Bearer ").unwrap_or(text);
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else { break };
        let is_escaped = rest[..start].ends_with('$');
        literal.push_str(&rest[..start]);
        if is_escaped {
            literal.push_str(&rest[start..start + end + 1]);
        } else if let Some((_, default)) = rest[start + 2..start + end].split_once(":-") {
            literal.push_str(default);
        }
        rest = &rest[start + end + 1..];
    }
    literal.push_str(rest);
    literal.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_recognized_by_its_name_or_form_and_a_reference_is_no_secret() {
        for (name, value, expected) in [
            ("GITHUB_TOKEN", "abcdef", true),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}", false),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN:-}", false),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN:-abcdef}", true),
            ("PLAIN", "${A:-ghp_0123456789abcdefghijABCDEFGHIJ012345}", true),
            ("LOG_LEVEL", "${LOG_LEVEL:-debug}", false),
            ("Authorization", "Bearer ${KEY}", false),
            ("Authorization", "Bearer ${KEY:-abcdefgh}", true),
            ("Authorization", "Bearer abcdefgh", true),
            ("GITHUB_PAT", "abcdef", true),
            ("MAP_KEY", "abcdef", true),
            ("PLAIN", "ghp_0123456789abcdefghijABCDEFGHIJ012345", true),
            ("LOG_LEVEL", "debug", false),
            ("PATH", "/usr/bin", false),
            ("TOKEN", "", false),
        ] {
            assert_eq!(is_literal(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn secrets_in_arguments_and_addresses_are_found() {
        let arguments =
            ["-y", "server", "--api-key", "abcdef123", "--token=abcdef123", "--port", "80", "--key-token", "${KEY}"];
        let arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        assert_eq!(in_arguments(&arguments), [3, 4]);
        assert!(is_in_url("https://u:hunter22@example.com/mcp"));
        assert!(is_in_url("https://example.com/mcp?api_key=abcdef123"));
        assert!(is_in_url("${ADDRESS:-https://u:hunter22@example.com/mcp}"));
        assert!(!is_in_url("https://example.com/mcp?api_key=${KEY}"));
        assert!(!is_in_url("https://example.com/mcp"));
    }
}
