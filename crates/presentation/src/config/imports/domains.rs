//! kodelet's `allowed_domains_file`: one host a line.

use super::at;
use crate::config::{
    node::{Content, Lines, Node},
    origin::Origin,
    problem::Problem,
    source_file::read_bounded,
};
use std::{path::Path, sync::Arc};

/// The rules of a file. One that is named and not there is an error: without it everything would be refused or, as
/// there, allowed.
pub(super) fn rules(
    path: &Path,
    named_at: &Origin,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> Vec<Node> {
    let read = read_bounded(path).map_err(|error| error.to_string());
    let text = match read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())) {
        Ok(text) => text,
        Err(reason) => {
            let message = format!("`allowed_domains_file`: {} cannot be read: {reason}", path.display());
            problems.push(Problem::new(named_at.clone(), message));
            return Vec::new();
        }
    };
    let file: Arc<Path> = path.into();
    let lines = Lines::of(&text, &file);
    let mut rules = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let origin = lines.origin(offset);
        offset += line.len();
        let entry = line.trim();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        match host(entry) {
            Some(host) => rules.push(at(&origin, Content::Text(format!("WebFetch(domain:{host})")))),
            None => {
                let message = format!("`{entry}` is left out: it is no host pattern that can be a rule");
                notes.push(Problem::new(origin, message));
            }
        }
    }
    rules
}

/// The host of an entry, which may be a URL. A `*` that is more than the first label stays within its label here.
fn host(entry: &str) -> Option<String> {
    let rest = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next()?;
    let rest = rest.rsplit('@').next()?;
    let host = rest.split_once(':').map_or(rest, |(host, _)| host);
    let is_pattern = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '*');
    let is_host = !host.is_empty() && host.chars().all(is_pattern) && host.chars().any(|c| c.is_ascii_alphanumeric());
    // A `?` in the host part of an entry without a scheme is a wildcard there and unknown here.
    let has_wildcard = !entry.contains("://") && entry.split('/').next().is_some_and(|first| first.contains('?'));
    (is_host && !has_wildcard).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn an_entry_is_a_host_or_a_url_with_one() {
        for (entry, expected) in [
            ("Example.com", Some("example.com")),
            ("*.example.com", Some("*.example.com")),
            ("https://me@docs.example.com:8443/a?b", Some("docs.example.com")),
            ("example.com/path", Some("example.com")),
            ("exampl?.com", None),
            ("*", None),
            ("a b", None),
        ] {
            assert_eq!(host(entry).as_deref(), expected, "{entry}");
        }
    }
}
