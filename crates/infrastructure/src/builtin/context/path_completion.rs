//! Completion of paths in URIs: lists the folder of a partial path.

use super::MOST_VALUES;
use crate::{
    builtin::files::file_uri,
    sandbox::workspace::{
        facts::FileKind,
        granted_workspace::GrantedWorkspace,
        walk::{Visitor, WalkControl, WalkEntry, WalkOptions, WalkOrder},
    },
};

/// Maximum number of entries of a folder that are examined.
const LOOKED_AT: usize = 10_000;

/// Partial path, decoded: without its first slash, as the variable of the template contains it, or with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialPath {
    /// `true` if the first slash was typed.
    is_absolute: bool,
    /// Folder without its first slash, with its last one.
    folder: String,
    /// Prefix of a name in the folder.
    name: String,
}

impl PartialPath {
    /// Parses a partial path; `None` if it is not valid, such as one that leads upwards.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let decoded = file_uri::decoded(value).ok()?;
        let (is_absolute, path) = match decoded.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, decoded.as_str()),
        };
        let (folder, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
        let leads_elsewhere = folder.split('/').any(|name| matches!(name, "." | ".."));
        (!leads_elsewhere).then(|| Self { is_absolute, folder: folder.to_owned(), name: name.to_owned() })
    }

    /// Returns the folder as an absolute path.
    pub(super) fn folder(&self) -> String {
        match self.folder.trim_end_matches('/') {
            "" => "/".to_owned(),
            folder => format!("/{folder}"),
        }
    }

    /// Encodes a path without its first slash in the form of the partial path.
    fn spelled(&self, path: &str) -> String {
        format!("{}{}", if self.is_absolute { "/" } else { "" }, file_uri::encoded(path))
    }

    /// Returns the roots that begin with the partial path, sorted and with a slash at the end, and the number of all of
    /// them.
    pub(super) fn roots<'a>(&self, roots: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
        let begun = format!("{}{}", self.folder, self.name);
        let roots = roots.map(|root| format!("{}/", root.trim_matches('/')));
        let mut values: Vec<String> =
            roots.filter(|root| root.starts_with(&begun)).map(|root| self.spelled(&root)).collect();
        values.sort();
        values.dedup();
        let total = values.len();
        values.truncate(MOST_VALUES);
        (values, total)
    }
}

/// Returns the readable entries of the folder that begin with the name, sorted, and their number; folders end with a
/// slash. Blocks.
pub(super) fn entries(typed: &PartialPath, files: &GrantedWorkspace) -> (Vec<String>, usize) {
    let limits = WalkOptions { entries: LOOKED_AT, depth: 1, order: WalkOrder::ShallowFirst };
    let walked = files.find(&typed.folder()).and_then(|folder| files.walk(&folder, limits, (), typed));
    let mut names = walked.map(|(_, names)| names.concat()).unwrap_or_default();
    names.sort();
    let total = names.len();
    names.truncate(MOST_VALUES);
    (names, total)
}

impl Visitor for PartialPath {
    type Context = ();
    type Worker = Vec<String>;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn visit_entry(&self, names: &mut Vec<String>, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        // A name that is not UTF-8 has no URI here.
        if let Some(name) = entry.name().to_str().filter(|name| name.starts_with(&self.name)) {
            let slash = if entry.kind() == FileKind::Folder { "/" } else { "" };
            names.push(self.spelled(&format!("{}{name}{slash}", self.folder)));
        }
        WalkControl::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_path_is_parsed_into_a_folder_and_a_name_prefix() {
        for (value, folder, name) in [
            ("", "/", ""),
            ("ho", "/", "ho"),
            ("/ho", "/", "ho"),
            ("home/a%20b/c", "/home/a b", "c"),
            ("home/", "/home", ""),
            ("home/..", "/home", ".."),
        ] {
            let typed = PartialPath::parse(value).unwrap();
            assert_eq!((typed.folder().as_str(), typed.name.as_str()), (folder, name), "{value}");
        }
        for bad in ["a/../b", "%2e%2e/a", "a/%2e%2e%2fb", "a%", "a%00", "a/./b"] {
            assert_eq!(PartialPath::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn completion_above_the_roots_offers_only_the_paths_to_the_roots() {
        let roots = ["/home/a", "/home/b c", "/srv"];
        for (value, expected) in [
            ("", &["home/a/", "home/b%20c/", "srv/"][..]),
            ("/ho", &["/home/a/", "/home/b%20c/"]),
            ("home/b%20", &["home/b%20c/"]),
            ("etc/", &[]),
        ] {
            assert_eq!(PartialPath::parse(value).unwrap().roots(roots.into_iter()).0, expected, "{value}");
        }
    }
}
