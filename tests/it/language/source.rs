//! A line scanner for the doc comments and item names of a source file. It relies on the layout of `rustfmt`.

use super::limits::Kind;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A block of `///` or `//!` lines without gaps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comment {
    /// Number of the first line, from 1.
    pub(super) line: usize,
    /// The lines outside of code examples, joined by spaces.
    pub(super) text: String,
}

/// The definition of a type, module or function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) line: usize,
}

/// A source file without its tests.
#[derive(Debug, Default)]
pub(super) struct SourceFile {
    pub(super) comments: Vec<Comment>,
    pub(super) items: Vec<Item>,
    /// Modules in files of their own that are compiled for tests alone.
    test_modules: Vec<String>,
}

impl SourceFile {
    fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let lines: Vec<&str> = text.lines().collect();
        let mut block = Block::default();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let trimmed = line.trim_start();
            if trimmed.starts_with("#[cfg(test)]") || trimmed.starts_with("#[cfg(all(test,") {
                block = Block::default();
                at = file.skip_item(&lines, at);
                continue;
            }
            at += 1;
            match doc_line(trimmed) {
                Some((mark, text)) => {
                    if !block.continues(mark) {
                        file.comments.extend(std::mem::take(&mut block).into_comment());
                    }
                    block.push(mark, at, text);
                }
                // An attribute for tests may follow, so that the comment waits for its item.
                None if trimmed.starts_with("#[") => block.is_complete = true,
                None => {
                    file.comments.extend(std::mem::take(&mut block).into_comment());
                    file.items.extend(item(trimmed).map(|(kind, name)| Item { kind, name, line: at }));
                }
            }
        }
        file.comments.extend(block.into_comment());
        file
    }

    /// Returns the index of the line after an item that begins with an attribute.
    fn skip_item(&mut self, lines: &[&str], attribute: usize) -> usize {
        let indent = lines[attribute].len() - lines[attribute].trim_start().len();
        let is_attribute = |line: &&str| line.trim_start().starts_with("#[") || line.trim_start().starts_with("//");
        let mut at = attribute + lines[attribute..].iter().take_while(|line| is_attribute(line)).count();
        let Some(first) = lines.get(at) else { return at };
        if let Some((Kind::Modules, name)) = item(first.trim_start())
            && first.ends_with(';')
        {
            self.test_modules.push(name);
        }
        if !first.ends_with(';') && !first.ends_with(',') && !first.ends_with('}') {
            let is_end = |line: &&str| line.get(indent..).is_some_and(|rest| rest.starts_with(['}', ']', ')']));
            at += 1 + lines[at + 1..].iter().take_while(|line| !is_end(line)).count();
        }
        at + 1
    }
}

/// A comment that is being read.
#[derive(Default)]
struct Block {
    mark: &'static str,
    line: usize,
    lines: Vec<String>,
    in_code: bool,
    is_complete: bool,
}

impl Block {
    fn continues(&self, mark: &str) -> bool {
        self.mark == mark && !self.is_complete
    }

    fn push(&mut self, mark: &'static str, line: usize, text: &str) {
        if self.mark.is_empty() {
            (self.mark, self.line) = (mark, line);
        }
        if text.trim_start().starts_with("```") {
            self.in_code = !self.in_code;
        } else if !self.in_code && !text.is_empty() {
            self.lines.push(text.to_owned());
        }
    }

    fn into_comment(self) -> Option<Comment> {
        (!self.mark.is_empty()).then(|| Comment { line: self.line, text: self.lines.join(" ") })
    }
}

fn doc_line(line: &str) -> Option<(&'static str, &str)> {
    let (mark, rest) = ["///", "//!"].into_iter().find_map(|mark| Some((mark, line.strip_prefix(mark)?)))?;
    (!rest.starts_with('/')).then(|| (mark, rest.trim()))
}

/// The kind and name of the item that a line defines.
fn item(line: &str) -> Option<(Kind, String)> {
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let kind = match word {
            "fn" => Kind::Functions,
            "mod" => Kind::Modules,
            "struct" | "enum" | "union" | "trait" | "type" => Kind::Types,
            "const" if words.peek().is_none_or(|next| !matches!(*next, "fn" | "async" | "unsafe" | "extern")) => {
                return None;
            }
            "pub" | "default" | "const" | "async" | "unsafe" | "extern" | "\"C\"" => continue,
            // `pub(in path)` has two words.
            _ if word.starts_with("pub(") => {
                if !word.ends_with(')') {
                    words.next()?;
                }
                continue;
            }
            _ => return None,
        };
        let name = words.next()?;
        let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
        return (end > 0).then(|| (kind, name[..end].to_owned()));
    }
    None
}

/// The source files below a folder, sorted, without files of tests.
pub(super) fn files(folder: &Path) -> Vec<(PathBuf, SourceFile)> {
    let (mut files, mut test_paths) = (Vec::new(), BTreeSet::new());
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = SourceFile::parse(&fs::read_to_string(&path).unwrap());
            let is_root = matches!(path.file_name().and_then(|name| name.to_str()), Some("lib.rs" | "mod.rs"));
            let children = if is_root { path.with_file_name("") } else { path.with_extension("") };
            test_paths.extend(file.test_modules.iter().map(|name| children.join(name)));
            files.push((path, file));
        }
    }
    files.retain(|(path, _)| {
        let module = path.with_extension("");
        !module.ancestors().any(|ancestor| test_paths.contains(ancestor))
    });
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

#[test]
fn comments_and_names_are_collected_except_from_test_code() {
    let text = r#"//! A module.
//! Two lines.

/// A type.
///
/// ```
/// told();
/// ```
#[derive(Debug)]
pub(crate) struct Kept<T> {
    /// A field.
    held: T, // no comment
    //// no comment either
}

/// A constant.
const COUNT: usize = 1;

/// Told in tests alone.
#[cfg(test)]
pub(crate) const fn told() -> u8 {
    1
}

pub(in crate::a) async unsafe fn heard() {}
#[cfg(test)]
mod streams;
mod begun;
#[cfg(test)]
mod tests {
    /// In a test.
    fn in_test() {}
}
type Last = u8;
"#;
    let file = SourceFile::parse(text);
    let comments: Vec<_> = file.comments.iter().map(|comment| (comment.line, comment.text.as_str())).collect();
    assert_eq!(comments, [(1, "A module. Two lines."), (4, "A type."), (11, "A field."), (16, "A constant.")]);
    let items: Vec<_> = file.items.iter().map(|item| (item.line, item.kind, item.name.as_str())).collect();
    let expected = [
        (10, Kind::Types, "Kept"),
        (25, Kind::Functions, "heard"),
        (28, Kind::Modules, "begun"),
        (34, Kind::Types, "Last"),
    ];
    assert_eq!(items, expected);
    assert_eq!(file.test_modules, ["streams"]);
}
