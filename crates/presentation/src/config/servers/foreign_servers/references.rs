//! References to variables in the texts of other programs.

use super::client::{ReferenceSyntax, ServerConfigDialect};
use crate::config::tree::node::NodeContent;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Keys whose texts are paths. [`normalize`] leaves references in them unchanged.
const PATHS: &[&str] = &["cwd", "envFile", "env_file", "envfile"];

/// Converts the references in the texts of a server to Toolstead's notation, `${NAME}`, and escapes text that is not a
/// reference for its program.
pub(super) fn normalize(server: &mut NodeContent, dialect: ServerConfigDialect) {
    let NodeContent::Table(members) = server else { return };
    for member in members {
        let content = &mut member.node.content;
        match dialect.references() {
            _ if PATHS.contains(&member.name.as_str()) => {}
            ReferenceSyntax::Braces => {}
            ReferenceSyntax::Shell => each_text(content, &mut |text| *text = with_braces(text)),
            ReferenceSyntax::Literal if dialect == ServerConfigDialect::Kodelet && member.name == "envs" => {
                // A reference is always a whole value.
                each_text(content, &mut |text| {
                    *text = match text.strip_prefix('$') {
                        Some(name) if is_variable(name) => format!("${{{name}}}"),
                        _ => escaped(text),
                    };
                });
            }
            ReferenceSyntax::Literal => each_text(content, &mut |text| *text = escaped(text)),
        }
    }
}

/// Escapes `${`, so that it is not read as a reference.
pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

/// Returns `true` for a name that environment variables usually have.
pub(super) fn is_variable(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns a name for an environment variable made of the first 60 characters of `id`, in upper case and with `_` for
/// other characters.
pub(super) fn variable_for(id: &str) -> String {
    let letters = id.chars().take(60).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let name: String = letters.collect();
    let name = name.trim_matches('_');
    if is_variable(name) { name.to_owned() } else { format!("VALUE_{name}") }
}

/// Returns the text with each reference to a variable as a reference to another one.
pub(super) fn with_variable(text: &str, variable: &str, renamed: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at + 2);
        written.push_str(before);
        let after = from.strip_prefix(variable).filter(|after| after.starts_with('}') || after.starts_with(":-"));
        rest = match after {
            Some(after) if !before.ends_with("$${") => {
                written.push_str(renamed);
                after
            }
            Some(_) | None => from,
        };
    }
    written.push_str(rest);
    written
}

fn each_text(content: &mut NodeContent, change: &mut dyn FnMut(&mut String)) {
    match content {
        NodeContent::Text(text) => change(text),
        NodeContent::List(nodes) => nodes.iter_mut().for_each(|node| each_text(&mut node.content, change)),
        NodeContent::Table(members) => members.iter_mut().for_each(|one| each_text(&mut one.node.content, change)),
        NodeContent::Boolean(_)
        | NodeContent::Integer(_)
        | NodeContent::Fraction(_)
        | NodeContent::Untyped(_)
        | NodeContent::DerivedRule { .. }
        | NodeContent::Other(_) => {}
    }
}

/// Returns the text with `$NAME` as `${NAME}`.
fn with_braces(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        let after = &from[1..];
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        written.push_str(before);
        if is_variable(&after[..end]) {
            written.push_str(&format!("${{{}}}", &after[..end]));
            rest = &after[end..];
        } else {
            written.push('$');
            rest = after;
        }
    }
    written.push_str(rest);
    written
}

/// Replaces references in the texts of one file, for a server that is to be imported.
pub(super) struct ForeignReferenceConverter<'a> {
    /// Folder of the project that the file belongs to; `None` for a file of the user.
    pub(super) workspace: Option<&'a Path>,
    /// Descriptions of the values that an editor asks for, by id.
    pub(super) inputs: &'a BTreeMap<String, String>,
    /// Values that the user gave for variables.
    pub(super) values: &'a BTreeMap<String, String>,
    /// Variables that the texts refer to and that have no default, with their descriptions.
    pub(super) variables: BTreeMap<String, String>,
    /// Names in `values` that were used.
    pub(super) used: BTreeSet<String>,
}

impl ForeignReferenceConverter<'_> {
    /// Returns the text with references that Toolstead understands.
    ///
    /// # Errors
    /// The reason why only the other program can replace a reference.
    pub(super) fn resolve(&mut self, text: &str) -> Result<String, String> {
        let mut written = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            written.push_str(before);
            let end = from.find('}');
            if before.ends_with('$') {
                written.push_str("${");
                rest = &from[2..];
                continue;
            }
            let Some(end) = end else { return Err(format!("`{}` has no closing brace", first_characters(from))) };
            written.push_str(&self.reference(&from[2..end])?);
            rest = &from[end + 1..];
        }
        written.push_str(rest);
        Ok(written)
    }

    fn reference(&mut self, expression: &str) -> Result<String, String> {
        let (name, default) = match expression.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (expression, None),
        };
        let (name, about) = match name.split_once(':') {
            Some(("env", name)) => (name.to_owned(), String::new()),
            Some(("input", id)) => (variable_for(id), self.inputs.get(id).cloned().unwrap_or_default()),
            Some(_) => {
                return Err(format!(
                    "only the other program knows the value of `${{{}}}`",
                    first_characters(expression)
                ));
            }
            None => (name.to_owned(), String::new()),
        };
        match (name.as_str(), self.workspace) {
            ("workspaceFolder", Some(folder)) => return Ok(escaped(&folder.to_string_lossy())),
            ("workspaceFolderBasename", Some(folder)) => {
                return Ok(escaped(&folder.file_name().unwrap_or_default().to_string_lossy()));
            }
            ("workspaceFolder" | "workspaceFolderBasename" | "userHome", _) => return Ok(format!("${{{name}}}")),
            ("pathSeparator" | "/", _) => return Ok("/".into()),
            _ => {}
        }
        if let Some(value) = self.values.get(&name) {
            self.used.insert(name);
            return Ok(escaped(value));
        }
        match default {
            Some(default) => Ok(format!("${{{name}:-{default}}}")),
            None => {
                let reference = format!("${{{name}}}");
                self.variables.entry(name).or_insert(about);
                Ok(reference)
            }
        }
    }
}

fn first_characters(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_references_are_converted_to_the_toolstead_notation() {
        for (text, expected) in
            [("$KEY and ${KEY}", "${KEY} and ${KEY}"), ("a$", "a$"), ("$1 $$", "$1 $$"), ("$A$B/c", "${A}${B}/c")]
        {
            assert_eq!(with_braces(text), expected, "{text}");
        }
        assert_eq!(escaped("${A}"), "$${A}");
        assert_eq!(variable_for("github-token"), "GITHUB_TOKEN");
        assert_eq!(variable_for("1"), "VALUE_1");
    }

    #[test]
    fn a_variable_is_renamed_in_its_references_only() {
        for (text, expected) in [
            ("${KEY} ${KEY:-x} $${KEY} ${KEYS} KEY", "${B} ${B:-x} $${KEY} ${KEYS} KEY"),
            ("${OTHER:-${KEY}}", "${OTHER:-${B}}"),
            ("${KEY", "${KEY"),
        ] {
            assert_eq!(with_variable(text, "KEY", "B"), expected, "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, workspace: Option<&str>, expected: Result<&str, &str>) {
        let inputs = BTreeMap::from([("api-key".to_owned(), "the key".to_owned())]);
        let values = BTreeMap::from([("REGION".to_owned(), "eu".to_owned())]);
        let mut resolver = ForeignReferenceConverter {
            workspace: workspace.map(Path::new),
            inputs: &inputs,
            values: &values,
            variables: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        let resolved = resolver.resolve(text);
        assert_eq!(resolved.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn a_foreign_reference_is_translated_kept_or_rejected() {
        check("${env:A}/${A:-b}", None, Ok("${A}/${A:-b}"));
        check("Bearer ${input:api-key}", None, Ok("Bearer ${API_KEY}"));
        check("${workspaceFolder}/x", None, Ok("${workspaceFolder}/x"));
        check("${workspaceFolder}/x", Some("/w/p"), Ok("/w/p/x"));
        check("${workspaceFolderBasename}${/}", Some("/w/p"), Ok("p/"));
        check("${REGION}", None, Ok("eu"));
        check("$${A}", None, Ok("$${A}"));
        check("${command:pick}", None, Err("only the other program knows the value of `${command:pick}`"));
        check("${file:/etc/x}", None, Err("only the other program knows the value of `${file:/etc/x}`"));
        check("${A", None, Err("`${A` has no closing brace"));
    }
}
