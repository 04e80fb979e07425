//! Keys of a repository's settings that make git run a program, or read more settings.

use std::collections::BTreeSet;

/// Larger settings are not judged but refused as a whole.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// What is set: the key as `section.name` or `section.*.name`, in lower case, with the whole line that sets it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    key: String,
    value: String,
}

/// The settings that run something.
pub(super) fn running(text: &str) -> BTreeSet<Setting> {
    statements(text).into_iter().filter_map(|statement| statement.setting).filter(|one| one.runs()).collect()
}

/// The text without the settings that run something and are not among the known ones, and the keys that were left out.
/// `None`: nothing had to be left out.
pub(super) fn cleaned(text: &str, known: &BTreeSet<Setting>) -> Option<(String, Vec<String>)> {
    let mut kept = String::with_capacity(text.len());
    let mut keys = Vec::new();
    for statement in statements(text) {
        match statement.setting {
            Some(setting) if setting.runs() && !known.contains(&setting) => {
                keys.push(setting.key);
                // A header that stands on the same line stays.
                if let Some(header) = statement.header {
                    kept.push_str(header);
                    kept.push('\n');
                }
            }
            _ => kept.push_str(statement.text),
        }
    }
    (!keys.is_empty()).then_some((kept, keys))
}

impl Setting {
    fn runs(&self) -> bool {
        let (section, name) = self.key.split_once('.').unwrap_or((&self.key, ""));
        let name = name.rsplit('.').next().unwrap_or_default();
        match section {
            "core" => matches!(
                name,
                "fsmonitor"
                    | "sshcommand"
                    | "editor"
                    | "pager"
                    | "hookspath"
                    | "askpass"
                    | "gitproxy"
                    | "worktree"
                    | "alternaterefscommand"
                    | "attributesfile"
            ),
            "alias" | "pager" | "filter" | "include" | "includeif" | "credential" | "url" | "browser" | "man"
            | "mergetool" | "difftool" | "guitool" | "sendemail" | "instaweb" | "web" | "hook" => true,
            "diff" => matches!(name, "external" | "command" | "textconv"),
            "merge" => name == "driver",
            "gpg" => matches!(name, "program" | "defaultkeycommand"),
            "sequence" => name == "editor",
            "interactive" => name == "difffilter",
            "uploadpack" => name == "packobjectshook",
            "remote" => {
                matches!(name, "uploadpack" | "receivepack" | "vcs" | "proxy")
                    || (matches!(name, "url" | "pushurl") && self.value.contains("::"))
            }
            "protocol" => name == "allow",
            "submodule" => name == "update" && self.value.trim_start_matches(['"', ' ']).starts_with('!'),
            "trailer" => matches!(name, "command" | "cmd"),
            "init" => name == "templatedir",
            "tar" => name == "command",
            "extensions" => name == "worktreeconfig",
            _ => false,
        }
    }
}

struct Statement<'a> {
    text: &'a str,
    header: Option<&'a str>,
    setting: Option<Setting>,
}

/// The text in pieces: each a line, or a setting with the lines that continue it. The pieces together are the text.
fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut pieces = Vec::new();
    let mut section = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = line_end(rest, 0);
        let mut line = rest[..end].trim_start_matches(['\u{feff}', ' ', '\t', '\r']);
        let mut header = None;
        if line.starts_with('[') {
            let close = header_end(line);
            let (head, after) = line.split_at(close);
            section = section_name(head);
            header = Some(head);
            line = after.trim_start();
        }
        let is_setting = line.starts_with(|first: char| first.is_ascii_alphabetic());
        while is_setting && is_continued(&rest[..end]) && end < rest.len() {
            end = line_end(rest, end);
        }
        let setting = is_setting.then(|| {
            let start = line.as_ptr() as usize - rest.as_ptr() as usize;
            let whole = &rest[start..end];
            let length = whole.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(whole.len());
            let (name, value) = whole.split_at(length);
            let value = value.trim_start().strip_prefix('=').unwrap_or_default().trim().to_owned();
            Setting { key: format!("{section}.{}", name.to_ascii_lowercase()), value }
        });
        pieces.push(Statement { text: &rest[..end], header, setting });
        rest = &rest[end..];
    }
    pieces
}

fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |place| from + place + 1)
}

/// Whether the line ends with a backslash that is not itself escaped.
fn is_continued(line: &str) -> bool {
    let line = line.trim_end_matches('\n').trim_end_matches('\r');
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Behind the bracket that closes a header; a bracket in a quoted name does not.
fn header_end(line: &str) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (place, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted => return place + 1,
            _ => {}
        }
    }
    line.len()
}

/// `[Remote "Origin"]` is `remote.Origin`.
fn section_name(header: &str) -> String {
    let inner = header.trim_start_matches('[').trim_end().trim_end_matches(']');
    match inner.split_once(char::is_whitespace) {
        Some((section, sub)) => {
            format!("{}.{}", section.to_ascii_lowercase(), sub.trim().trim_matches('"'))
        }
        None => inner.trim().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_something_are_left_out_and_nothing_else() {
        for (before, after, left) in [
            ("", "[user]\n\tname = a\n[core]\n\tbare = false\n", ""),
            ("", "[core]\n\tfsmonitor = ./x\n\tbare = false\n", "core.fsmonitor"),
            ("", "[CORE] FsMonitor = ./x\n", "core.fsmonitor"),
            ("", "[core]\n\teditor = a\\\nb\\\nc\n\tbare = true\n", "core.editor"),
            ("", "[diff \"a]b\"]\n\ttextconv = x\n", "diff.a]b.textconv"),
            ("", "[diff.x]\n\tcommand = x\n", "diff.x.command"),
            ("", "[filter \"lfs\"]\n\tclean = x\n\tsmudge = y", "filter.lfs.clean filter.lfs.smudge"),
            ("[alias]\n\tst = status\n", "[alias]\n\tst = status\n\tx = !rm\n", "alias.x"),
            ("[core]\n\tpager = less\n", "[core]\n\tpager = ./evil\n", "core.pager"),
            ("", "[remote \"o\"]\n\turl = ext::sh -c x\n\tfetch = +refs\n", "remote.o.url"),
            ("", "[remote \"o\"]\n\turl = git@example.com:a/b\n", ""),
            ("", "\u{feff}[include]\n\tpath = x\n", "include.path"),
            ("", "[core]\n;\tfsmonitor = x\n#[core] pager=x\n", ""),
        ] {
            let done = cleaned(after, &running(before));
            let keys = done.as_ref().map_or(String::new(), |(_, keys)| keys.join(" "));
            assert_eq!(keys, left, "{after:?}");
            if let Some((kept, _)) = done {
                assert_eq!(cleaned(&kept, &running(before)), None, "{kept:?}");
                assert!(after.contains("bare") == kept.contains("bare"), "{kept:?}");
            }
        }
    }
}
