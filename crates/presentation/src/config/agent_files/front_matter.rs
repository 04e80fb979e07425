//! The front matter of a Markdown file: YAML between two lines of `---`.
//!
//! Many files written for other systems are not valid YAML, for example because a description without quotes contains a
//! colon. Such front matter is parsed line by line instead.

use crate::config::tree::{
    format::ConfigFormat,
    node::{Member, Node, NodeContent},
    origin::Origin,
    problem::Problem,
};
use std::{path::Path, sync::Arc};

const FENCE: &str = "---";

/// A file split into front matter and body.
#[derive(Debug, PartialEq)]
pub(super) struct FrontMatterDocument {
    /// Keys of the front matter; `None` if the file has none.
    pub(super) members: Option<Vec<Member>>,
    pub(super) body: String,
    /// Remark about front matter that is used despite an error.
    pub(super) note: Option<Problem>,
}

/// Splits a file into front matter and body.
///
/// # Errors
/// A [`Problem`] with the line at which the front matter cannot be parsed.
pub(super) fn parts(text: &str, file: &Arc<Path>) -> Result<FrontMatterDocument, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let Some((_, rest)) = text.split_once('\n').filter(|(first, _)| first.trim_end() == FENCE) else {
        return Ok(FrontMatterDocument { members: None, body: text.trim().to_owned(), note: None });
    };
    let mut end = 0;
    let mut lines = rest.split_inclusive('\n');
    let closing = loop {
        let Some(line) = lines.next() else {
            let message = "the front matter that begins here has no end: a line `---`";
            return Err(Problem::new(Origin::File(file.clone(), 1), message));
        };
        if line.trim_end() == FENCE {
            break line;
        }
        end += line.len();
    };
    let body = rest[end + closing.len()..].trim().to_owned();
    // The newline stands for the fence, so that line numbers are those of the file.
    let yaml = format!("\n{}", &rest[..end]);
    let (members, note) = match ConfigFormat::Yaml.read(&yaml, file) {
        Ok(Node { content: NodeContent::Table(members), .. }) => (members, None),
        Ok(_) => (Vec::new(), None),
        Err(problem) => match line_by_line(&rest[..end], file) {
            Some(members) => {
                let message = format!("{}; so each line is read literally", problem.message);
                (members, Some(Problem::new(problem.origin, message)))
            }
            None => return Err(problem),
        },
    };
    let mut seen = Vec::new();
    for member in &members {
        if seen.contains(&&member.name) {
            return Err(Problem::new(member.origin.clone(), format!("`{}` is defined twice", member.name)));
        }
        seen.push(&member.name);
    }
    Ok(FrontMatterDocument { members: Some(members), body, note })
}

/// Parses lines of the form `key: text`. Indented lines and list items belong to the key above them. Returns `None` if
/// there is any other line.
fn line_by_line(text: &str, file: &Arc<Path>) -> Option<Vec<Member>> {
    let mut members: Vec<(String, usize, String)> = Vec::new();
    for (line, number) in text.lines().zip(2..) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with([' ', '\t', '-']) {
            let (_, _, value) = members.last_mut()?;
            value.push('\n');
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let is_key = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_key) || !(value.is_empty() || value.starts_with([' ', '\t'])) {
            return None;
        }
        members.push((name.to_owned(), number, without_comment(name, value).trim().to_owned()));
    }
    let member = |(name, line, value): (String, usize, String)| {
        let origin = Origin::File(file.clone(), line);
        let node = Node { content: NodeContent::Text(unquoted(&value).to_owned()), origin: origin.clone() };
        Member { name, origin, node }
    };
    Some(members.into_iter().map(member).collect())
}

/// Removes a trailing comment. Descriptions are prose and may contain `#`; quoted values are returned unchanged.
fn without_comment<'v>(name: &str, value: &'v str) -> &'v str {
    match name == "description" || value.trim_start().starts_with(['"', '\'']) {
        true => value,
        false => value.split_once(" #").map_or(value, |(value, _)| value),
    }
}

fn unquoted(value: &str) -> &str {
    let value = value.strip_prefix(['|', '>']).map_or(value, |rest| rest.trim_start_matches(['-', '+', '\n']));
    let within = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    within('"').or(within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FrontMatterDocument, Problem> {
        parts(text, &Arc::from(Path::new("/a.md")))
    }

    #[track_caller]
    fn check(text: &str, members: Option<&[(&str, &str)]>, body: &str) {
        let parts = read(text).unwrap();
        let shown = |member: &Member| match &member.node.content {
            NodeContent::Text(text) => (member.name.clone(), text.clone()),
            other => (member.name.clone(), other.to_string()),
        };
        let found: Option<Vec<_>> = parts.members.as_ref().map(|members| members.iter().map(shown).collect());
        let expected: Option<Vec<_>> =
            members.map(|members| members.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect());
        assert_eq!((found, parts.body.as_str()), (expected, body), "{text}");
    }

    #[test]
    fn front_matter_between_two_fences_is_separated_from_the_body() {
        check("Only text.\n", None, "Only text.");
        check("---\nname: a\n---\nBody.\n---\nmore", Some(&[("name", "a")]), "Body.\n---\nmore");
        check("\u{feff}---\r\nname: a\r\n---\r\nBody.\r\n", Some(&[("name", "a")]), "Body.");
        check("---\n---\nBody.", Some(&[]), "Body.");
        check(
            "---\nname: 'a: b'\ndescription: >\n  one\n  two\n---\n",
            Some(&[("name", "a: b"), ("description", "one two\n")]),
            "",
        );
        check("----\nname: a\n---\n", None, "----\nname: a\n---");
    }

    #[test]
    fn front_matter_that_is_not_yaml_is_read_line_by_line_with_a_note() {
        let text =
            "---\nname: a\ndescription: Use it. Examples: user: \"x\" assistant: 'y'\ntools: [A,\n  B]\n---\nBody";
        check(
            text,
            Some(&[
                ("name", "a"),
                ("description", "Use it. Examples: user: \"x\" assistant: 'y'"),
                ("tools", "[A,\nB]"),
            ]),
            "Body",
        );
        assert!(read(text).unwrap().note.unwrap().to_string().starts_with("/a.md:3: "), "{:?}", read(text));
    }

    #[test]
    fn unreadable_front_matter_is_reported_with_its_line() {
        for (text, outcome) in [
            ("---\nname: a\n", "/a.md:1: the front matter that begins here has no end"),
            ("---\nname: a\nname: b\n---\n", "/a.md:3: `name` is defined twice"),
            ("---\nname: [a\nno key\n---\n", "/a.md:"),
            ("---\n- a\n---\n", "/a.md:2: the file must hold a table"),
        ] {
            let problem = read(text).unwrap_err().to_string();
            assert!(problem.starts_with(outcome), "{problem}");
        }
    }

    #[test]
    fn front_matter_that_would_expand_or_nest_without_limit_is_read_as_plain_text() {
        let bomb = "---\nname: a\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n";
        check(bomb, Some(&[("name", "a"), ("a", "&a [x, x]"), ("b", "&b [*a, *a]"), ("c", "[*b, *b]")]), "");
        let deep = format!("---\nname: {}\n---\n", "[".repeat(50_000));
        assert!(read(&deep).is_ok_and(|parts| parts.note.is_some()));
    }
}
