//! kodelet's `allowed_domains_file`: one host per line.

use super::at;
use crate::config::{
    layers::LayerKind,
    tree::{
        node::{LineIndex, Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
        source_file::SourceFile,
    },
};
use std::path::Path;

/// Reads a file of allowed hosts. A missing file is an error: without it either everything would be refused or, as in
/// kodelet, allowed.
///
/// # Errors
/// A [`Problem`] with the reason why it cannot be read.
pub(super) fn read(kind: LayerKind, path: &Path, named_at: &Origin) -> Result<SourceFile, Problem> {
    let reason = match SourceFile::read(kind, path) {
        Ok(Some(file)) => return Ok(file),
        Ok(None) => "there is no such file".to_owned(),
        Err(problem) => problem.message,
    };
    let message = format!("`allowed_domains_file`: {} cannot be read: {reason}", path.display());
    Err(Problem::new(named_at.clone(), message))
}

/// Translates each host of the file to an allow rule for `WebFetch`. Adds a note for each invalid entry.
pub(super) fn translate(file: &SourceFile, notes: &mut Vec<Problem>) -> Node {
    let lines = LineIndex::of(&file.text, &file.path);
    let mut rules = Vec::new();
    let mut offset = 0;
    for line in file.text.split_inclusive('\n') {
        let origin = lines.origin(offset);
        offset += line.len();
        let entry = line.trim();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        match host(entry) {
            Some(host) => rules.push(at(&origin, NodeContent::Text(format!("WebFetch(domain:{host})")))),
            None => {
                let message = format!("`{entry}` is left out: it is not a valid host pattern");
                notes.push(Problem::new(origin, message));
            }
        }
    }
    let whole = Origin::file(file.path.clone());
    let table = |name: &str, node| {
        at(&whole, NodeContent::Table(vec![Member { name: name.into(), origin: whole.clone(), node }]))
    };
    table("permissions", table("allow", at(&whole, NodeContent::List(rules))))
}

/// Returns the host of an entry, which may be a URL; `None` if it is not a valid pattern for Toolstead, in which a `*`
/// after the first label matches within one label only.
fn host(entry: &str) -> Option<String> {
    let rest = entry.split_once("://").map_or(entry, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next()?;
    let rest = rest.rsplit('@').next()?;
    let host = rest.split_once(':').map_or(rest, |(host, _)| host);
    let is_pattern = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '*');
    let is_host = !host.is_empty() && host.chars().all(is_pattern) && host.chars().any(|c| c.is_ascii_alphanumeric());
    // In an entry without a scheme, kodelet reads a `?` in the host as a wildcard, which is not supported here.
    let has_wildcard = !entry.contains("://") && entry.split('/').next().is_some_and(|first| first.contains('?'));
    (is_host && !has_wildcard).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn parses_a_domain_entry_as_a_host_or_as_a_url_with_a_host() {
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
