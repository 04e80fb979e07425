//! Detects paths that are, or may become, the standard input of the process. A program that runs commands from its
//! input is opaque.

use crate::shell_analysis::{folders::WorkingFolders, word::Word};
use std::path::{Component, Path};

/// Maximum number of `-C` folders of `make` that are followed.
const MAX_FOLDERS: usize = 8;

/// Returns `true` if this word is, or may become, the standard input of a program that starts in one of those folders.
pub(super) fn is_input(word: &Word, folders: &WorkingFolders) -> bool {
    let text = word.text.as_str();
    if names_input(text) {
        return true;
    }
    if text.is_empty() || text.starts_with('-') {
        return false;
    }
    let climbs = Path::new(text).components().any(|part| part == Component::ParentDir);
    if word.tilde {
        return climbs || !text.starts_with("~/");
    }
    let paths: Vec<String> = match folders.known() {
        _ if text.starts_with('/') => vec![text.to_owned()],
        Some(folders) => folders.iter().map(|folder| format!("{}/{text}", folder.display())).collect(),
        None => return true,
    };
    match word.file_names_start() {
        None => paths.iter().any(|path| names_input(path)),
        // A pattern: only the path components before it are known.
        Some(start) => {
            let pattern = text.len() - start.len();
            climbs || paths.iter().any(|path| !has_harmless_root(&path[..path.len() - pattern]))
        }
    }
}

/// Returns `true` if [`is_input`] holds for the word, or for the value within an option.
pub(super) fn holds_input(word: &Word, folders: &WorkingFolders) -> bool {
    let value = |text: &str| is_input(&Word { text: text.to_owned(), tilde: false, ..word.clone() }, folders);
    let text = word.text.as_str();
    is_input(word, folders)
        || text.starts_with('-')
            && (text.split_once('=').is_some_and(|(_, path)| value(path))
                || !text.starts_with("--") && text.get(2..).is_some_and(value))
}

/// Returns `true` if `/dev` or `/proc` is, or may be, below this folder.
pub(super) fn holds_inputs(folder: &Word, folders: &WorkingFolders) -> bool {
    let inner = |name: &str| Word { text: format!("{}/{name}", folder.text), ..folder.clone() };
    is_input(&inner("dev"), folders) || is_input(&inner("proc"), folders)
}

/// Returns `true` if the first component of this beginning of an absolute path is complete and neither `dev` nor
/// `proc`.
fn has_harmless_root(start: &str) -> bool {
    let complete = start.rfind('/').map_or("", |slash| &start[..slash]);
    let first = Path::new(complete).components().find_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    first.is_some_and(|first| first != "dev" && first != "proc")
}

/// Returns `true` if the text of the path alone identifies it as the standard input.
fn names_input(path: &str) -> bool {
    if path == "-" {
        return true;
    }
    let mut from_root = path.starts_with('/');
    let mut names: Vec<_> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => from_root |= names.pop().is_none(),
            Component::Normal(name) => names.push(name),
            _ => {}
        }
    }
    from_root && names.first().is_some_and(|first| *first == "dev" || *first == "proc")
}

/// Returns `true` if `make` may read its rules from its input.
pub(super) fn make_reads_rules(words: &[Word], folders: &WorkingFolders) -> bool {
    let (mut sent, mut files) = (Vec::new(), Vec::new());
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if names_input(text) || text.split(['=', 'f']).skip(1).any(names_input) {
            return true;
        }
        let (to, value) = match text.strip_prefix("--") {
            Some(long) => {
                let (name, value) = long.split_once('=').map_or((long, ""), |(name, value)| (name, value));
                let begins = |whole: &str| !name.is_empty() && whole.starts_with(name);
                match () {
                    () if begins("directory") => (&mut sent, value),
                    () if begins("file") || begins("makefile") => (&mut files, value),
                    () => continue,
                }
            }
            None => {
                let group = text.strip_prefix('-').unwrap_or_default();
                match group.find(['C', 'f']) {
                    Some(place) if group[place..].starts_with('C') => (&mut sent, &group[place + 1..]),
                    Some(place) => (&mut files, &group[place + 1..]),
                    None => continue,
                }
            }
        };
        if value.is_empty() {
            to.extend(words.get(at + 1).cloned());
        } else {
            to.push(Word { text: value.to_owned(), ..word.clone() });
        }
    }
    sent.len() > MAX_FOLDERS
        || sent.iter().any(|folder| is_input(folder, folders))
        || files.iter().any(|file| match sent.as_slice() {
            _ if file.tilde || file.text.starts_with('/') => is_input(file, folders),
            [] => is_input(file, folders),
            sent => sent.iter().any(|folder| is_input(&joined(folder, file), folders)),
        })
}

/// Returns `true` if an argument after one of these folder options may be the input when resolved in that folder. Long
/// options are given as prefixes.
pub(super) fn moves_to_input(words: &[Word], options: &[&str], folders: &WorkingFolders) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let Some(rest) = options.iter().find_map(|option| word.text.strip_prefix(option)) else { return false };
        let value =
            if word.text.starts_with("--") { rest.split_once('=').map_or("", |(_, value)| value) } else { rest };
        let (folder, behind) = match words.get(at + 1..) {
            Some([folder, behind @ ..]) if value.is_empty() => (folder.clone(), behind),
            behind => (Word { text: value.to_owned(), ..word.clone() }, behind.unwrap_or_default()),
        };
        behind.iter().any(|file| !file.text.starts_with(['-', '/']) && is_input(&joined(&folder, file), folders))
    })
}

/// Returns the path of a file relative to the folder that a program changes to.
fn joined(folder: &Word, file: &Word) -> Word {
    Word {
        text: format!("{}/{}", folder.text, file.text),
        glob: folder.glob || file.glob,
        dynamic: folder.dynamic.or(file.dynamic),
        ..folder.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_every_path_that_names_standard_input() {
        for path in ["-", "/dev/stdin", "//dev/./fd/0", "/proc/self/fd/0", "/x/../dev/stdin", "../../dev/stdin"] {
            assert!(names_input(path), "{path}");
        }
        for path in ["x.py", "src/dev/x.py", "/home/dev/x.py", "dev/x.py", "./-", "sub/../dev/x"] {
            assert!(!names_input(path), "{path}");
        }
    }
}
