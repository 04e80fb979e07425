//! Matcher that selects the tools for which a hook runs.

use regex::{Regex, RegexBuilder};

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 4096;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Matcher of tools by name, as in Claude Code: an empty text or `*` matches every tool; a text of letters, digits,
/// `_`, `-`, spaces, `,` and `|` is a list of names; any other text is a regular expression that is **not** anchored.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Every tool.
    All,
    /// Tools with one of these names.
    Names(Vec<String>),
    /// Tools whose name contains a match of the expression.
    Pattern(Regex),
}

/// Error for a matcher that is not a valid regular expression, or too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the matcher `{pattern}` is not a valid regular expression: {reason}")]
pub struct InvalidMatcher {
    pattern: String,
    reason: String,
}

impl Matcher {
    /// Parses a matcher.
    ///
    /// # Errors
    /// Returns [`InvalidMatcher`].
    pub fn parse(text: &str) -> Result<Self, InvalidMatcher> {
        let is_list = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|');
        match text.trim() {
            "" | "*" => Ok(Self::All),
            list if list.chars().all(is_list) => {
                let names = list.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
                Ok(Self::Names(names.map(str::to_owned).collect()))
            }
            pattern => {
                let wrong = |reason: String| InvalidMatcher { pattern: pattern.chars().take(80).collect(), reason };
                if pattern.len() > MAX_PATTERN {
                    return Err(wrong(format!("it has more than {MAX_PATTERN} bytes")));
                }
                let compiled = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
                let last_line = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().to_owned();
                compiled.map(Self::Pattern).map_err(|error| wrong(last_line(error)))
            }
        }
    }

    /// Returns `true` if one of these names matches.
    pub fn chooses<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let mut names = names.into_iter();
        match self {
            Self::All => true,
            Self::Names(list) => names.any(|name| list.iter().any(|listed| listed == name)),
            Self::Pattern(regex) => names.any(|name| regex.is_match(name)),
        }
    }

    /// Returns each alternative as a matcher of its own, if they can be separated. This reveals an alternative with a
    /// typing error among others that match.
    pub fn alternatives(&self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::All],
            Self::Names(list) => list.iter().map(|name| Self::Names(vec![name.clone()])).collect(),
            Self::Pattern(regex) => {
                let parts = alternatives(regex.as_str()).and_then(|parts| {
                    let compiled: Result<Vec<Regex>, _> = parts.iter().map(|part| Regex::new(part)).collect();
                    compiled.ok()
                });
                parts.unwrap_or_else(|| vec![regex.clone()]).into_iter().map(Self::Pattern).collect()
            }
        }
    }

    /// Returns `true` if the matcher is an expression that may match in the middle of a name.
    pub fn is_unanchored(&self) -> bool {
        matches!(self, Self::Pattern(regex) if !(regex.as_str().starts_with('^') && regex.as_str().ends_with('$')))
    }
}

/// Returns the alternatives of an expression with at most one group: `a|b`, `^(a|b)$`. `None` for more complex ones.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    if pattern.contains(['[', '\\']) {
        return None;
    }
    let Some((before, rest)) = pattern.split_once('(') else {
        return Some(pattern.split('|').map(str::to_owned).collect());
    };
    let (inside, after) = rest.split_once(')')?;
    let inside = inside.strip_prefix("?:").unwrap_or(inside);
    let is_repeated = after.starts_with(['*', '+', '?', '{']);
    if is_repeated || inside.starts_with('?') || inside.contains('(') || [before, after].concat().contains(['|', '(']) {
        return None;
    }
    Some(inside.split('|').map(|part| format!("{before}{part}{after}")).collect())
}

impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Names(names) => f.write_str(&names.join("|")),
            Self::Pattern(regex) => f.write_str(regex.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(matcher: &str, name: &str, expected: bool) {
        assert_eq!(Matcher::parse(matcher).unwrap().chooses([name]), expected, "{matcher} {name}");
    }

    #[test]
    fn names_are_exact_and_everything_else_is_an_unanchored_expression() {
        for all in ["", "*", "  "] {
            check(all, "anything", true);
        }
        check("Write", "Write", true);
        check("Write", "write", false);
        check("Write", "WriteFile", false);
        check("Edit|Write", "Write", true);
        check("Edit, Write", "Write", true);
        check("Edit|Write", "MultiEdit", false);
        check("mcp__memory", "mcp__memory__add", false);
        check("Edit.*", "NotebookEdit", true);
        check("^Edit$", "NotebookEdit", false);
        check("mcp__memory__.*", "mcp__memory__add", true);
        check("mcp__.*__write.*", "mcp__fs__write_file", true);
    }

    #[test]
    fn rejects_invalid_or_oversized_matcher_expressions() {
        assert!(
            Matcher::parse("(").unwrap_err().to_string().contains("the matcher `(` is not a valid regular expression")
        );
        Matcher::parse(&"(a{1000}){1000}".repeat(2)).unwrap_err();
        Matcher::parse(&".".repeat(5000)).unwrap_err();
    }

    #[test]
    fn a_matcher_is_split_into_alternatives_where_this_is_unambiguous() {
        for (matcher, expected) in [
            ("*", &["*"][..]),
            ("Edit, Wirte", &["Edit", "Wirte"]),
            ("Edit.*|Wirte", &["Edit.*", "Wirte"]),
            ("^Edit$|^Wirte$", &["^Edit$", "^Wirte$"]),
            ("^(Edit|Wirte)$", &["^Edit$", "^Wirte$"]),
            ("mcp__(?:a|b)__.*", &["mcp__a__.*", "mcp__b__.*"]),
            ("(Edit|Wirte)?", &["(Edit|Wirte)?"]),
            ("(Edit|Wirte)|Read", &["(Edit|Wirte)|Read"]),
            ("(?i)edit|wirte", &["(?i)edit|wirte"]),
            ("a[|]b|c", &["a[|]b|c"]),
        ] {
            let parts: Vec<String> =
                Matcher::parse(matcher).unwrap().alternatives().iter().map(ToString::to_string).collect();
            assert_eq!(parts, expected, "{matcher}");
        }
    }

    #[test]
    fn an_expression_without_both_anchors_is_unanchored() {
        for (matcher, expected) in [("Edit.*", true), ("^Edit.*", true), ("^Edit$", false), ("Edit|Write", false)] {
            assert_eq!(Matcher::parse(matcher).unwrap().is_unanchored(), expected, "{matcher}");
        }
    }
}
