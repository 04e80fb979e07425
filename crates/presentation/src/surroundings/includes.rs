//! Files that an instruction file includes: `@path`, outside of code.

/// Maximum number of included files per file.
const MOST_INCLUDES: usize = 64;
/// Maximum length of a path in bytes.
const LONGEST_PATH: usize = 1024;
/// Punctuation that follows a path and does not belong to it.
const AFTER_PATH: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', ']', '\''];

/// Returns the paths that the text includes outside of code, in their order and without duplicates, at most
/// [`MOST_INCLUDES`]. A path is preceded by `@` at the beginning of a line or after white space or an opening bracket.
/// A word with neither a slash nor a dot, such as `@alice`, is not a path.
pub(super) fn included_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut fence: Option<char> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let fence_character = ['`', '~'].into_iter().find(|c| start.starts_with(&c.to_string().repeat(3)));
        match (fence, fence_character) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(opening), Some(closing)) if opening == closing => fence = None,
            (None, None) => {
                for path in paths_in(line) {
                    if paths.len() < MOST_INCLUDES && !paths.contains(&path) {
                        paths.push(path);
                    }
                }
            }
            _ => {}
        }
    }
    paths
}

fn paths_in(line: &str) -> Vec<String> {
    let (mut paths, mut in_code, mut before) = (Vec::new(), false, ' ');
    for (at, character) in line.char_indices() {
        let begins = before.is_whitespace() || matches!(before, '(' | '[');
        before = character;
        match character {
            '`' => in_code = !in_code,
            '@' if begins && !in_code => {
                let word = line[at + 1..].split(|c: char| c.is_whitespace() || c == '`').next().unwrap_or_default();
                let path = word.trim_end_matches(AFTER_PATH);
                if path.contains(['/', '.']) && path.len() <= LONGEST_PATH {
                    paths.push(path.to_owned());
                }
            }
            _ => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(included_paths(text), expected, "{text:?}");
    }

    #[test]
    fn a_path_after_an_at_sign_is_included() {
        check("@docs/style.md", &["docs/style.md"]);
        check("See @README.md, @./a/b.txt and (@../c.md).", &["README.md", "./a/b.txt", "../c.md"]);
        check("@~/own.md\n@/w/d.md @README.md @README.md", &["~/own.md", "/w/d.md", "README.md"]);
    }

    #[test]
    fn mentions_addresses_and_code_are_not_included() {
        check("Ask @alice or ada@example.org.", &[]);
        check("`@a.md` but ``@b.md`` and @c.md", &["c.md"]);
        check("```\n@a.md\n~~~\n@b.md\n```\n@c.md\n~~~rust\n@d.md", &["c.md"]);
        check("@", &[]);
    }
}
