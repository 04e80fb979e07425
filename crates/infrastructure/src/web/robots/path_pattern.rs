//! Paths with wildcards, compared in linear time (RFC 9309, 2.2.2 and 2.2.3).

use std::fmt::Write;

/// A path of a rule: `*` stands for any characters, and `$` at the end for the end of the path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    /// Literal parts with one `*` between two of them, without the `$`.
    parts: Box<str>,
    is_anchored: bool,
}

impl PathPattern {
    /// Parses the path of a rule. Returns `None` for an empty one, which matches nothing.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (text, is_anchored) = match text.strip_suffix(b"$") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let mut parts = String::with_capacity(text.len());
        for (index, literal) in text.split(|byte| *byte == b'*').enumerate() {
            // A run of stars has the same meaning as one.
            if index > 0 && !parts.ends_with('*') {
                parts.push('*');
            }
            push_normalized(&mut parts, literal);
        }
        Some(Self { parts: parts.into(), is_anchored })
    }

    /// Returns the number of octets, by which the more specific of two rules is found.
    pub(super) fn octets(&self) -> usize {
        self.parts.len() + usize::from(self.is_anchored)
    }

    /// Compares with a [normalized] path, and adds the number of compared bytes to `work`: at most those of
    /// the path and of the pattern.
    pub(super) fn matches(&self, path: &str, work: &mut usize) -> bool {
        let (first, others) = match self.parts.split_once('*') {
            Some((first, others)) => (first, Some(others)),
            None => (&*self.parts, None),
        };
        *work += first.len().min(path.len());
        let Some(mut rest) = path.strip_prefix(first) else { return false };
        let Some(others) = others else { return !self.is_anchored || rest.is_empty() };
        let (middle, last) = match self.is_anchored {
            true => others.rsplit_once('*').map_or((None, others), |(middle, last)| (Some(middle), last)),
            false => (Some(others), ""),
        };
        // The first match of each part leaves most text for the following parts, so no part is searched for twice.
        for part in middle.into_iter().flat_map(|middle| middle.split('*')) {
            let found = rest.find(part);
            let end = found.map_or(rest.len(), |start| start + part.len());
            *work += end.max(part.len().min(rest.len()));
            if found.is_none() {
                return false;
            }
            rest = &rest[end..];
        }
        *work += last.len().min(rest.len());
        rest.ends_with(last)
    }
}

/// Returns a path and its query in the form that patterns are compared with.
pub(super) fn normalized(target: &str) -> String {
    let mut path = String::with_capacity(target.len());
    push_normalized(&mut path, target.as_bytes());
    path
}

/// Decodes characters that need no encoding, and encodes those with a meaning in patterns and all outside of ASCII.
fn push_normalized(out: &mut String, bytes: &[u8]) {
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        rest = behind;
        let (byte, is_encoded) = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    rest = behind;
                    (high << 4 | low, true)
                }
                _ => (b'%', false),
            },
            _ => (*first, false),
        };
        let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        let is_literal = is_unreserved || !is_encoded && byte.is_ascii_graphic() && !matches!(byte, b'*' | b'$');
        if is_literal {
            out.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, target: &str) -> bool {
        PathPattern::read(pattern.as_bytes()).is_some_and(|pattern| pattern.matches(&normalized(target), &mut 0))
    }

    /// The definition, by trying everything.
    fn naive(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => true,
            [b'$'] => path.is_empty(),
            [b'*', rest @ ..] => (0..=path.len()).any(|skipped| naive(rest, &path[skipped..])),
            [first, rest @ ..] => path.first() == Some(first) && naive(rest, &path[1..]),
        }
    }

    #[test]
    fn paths_match_as_the_rfc_says() {
        for (pattern, target, expected) in [
            ("", "/a", false),
            ("/", "/a", true),
            ("/fish", "/fish.html", true),
            ("/fish", "/Fish.asp", false),
            ("/fish*", "/fishheads/yummy.html?id=x", true),
            ("/fish/", "/fish", false),
            ("/*.php", "/folder/filename.php?parameters", true),
            ("/*.php", "/windows.PHP", false),
            ("/*.php$", "/filename.php", true),
            ("/*.php$", "/filename.php?parameters", false),
            ("/fish*.php", "/fishheads/catfish.php?parameters", true),
            ("*.pdf", "/a.pdf", true),
            ("private", "/private", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/a$b", "/a$bc", true),
            ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true),
            ("/path/file-with-a-%2a.html", "/path/file-with-a-x.html", false),
            ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar", true),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84", true),
            ("/foo/bar/%e3%83%84", "/foo/bar/ツ", true),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
            ("/a%2Fb", "/a/b", false),
            ("/a%3cd", "/a%3Cd", true),
            ("/100%", "/100%", true),
            ("/**$", "/", true),
            ("/*a*a$", "/a", false),
        ] {
            assert_eq!(matches(pattern, target), expected, "{pattern} {target}");
        }
    }

    #[test]
    fn pattern_matching_work_is_bounded_by_the_path_length() {
        let path = normalized(&format!("/{}", "a".repeat(8_000)));
        for pattern in [
            format!("/{}b", "*a".repeat(4_000)),
            format!("/{}b$", "*a*".repeat(4_000)),
            format!("/{}b", "*".repeat(400_000)),
            format!("/*{}b*{}b", "a".repeat(4_000), "a".repeat(4_000)),
            format!("/{}", "a".repeat(400_000)),
            format!("{}$", "*aaaaaaab".repeat(40_000)),
        ] {
            let mut work = 0;
            let pattern = PathPattern::read(pattern.as_bytes()).unwrap();
            assert!(!pattern.matches(&path, &mut work));
            assert!(work <= 2 * path.len(), "{work}");
        }
    }

    proptest! {
        #[test]
        fn random_patterns_match_like_a_naive_implementation(pattern in "[/ab*]{1,8}\\$?", path in "/[/ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &path), naive(pattern.as_bytes(), path.as_bytes()));
        }

        #[test]
        fn normalizing_a_path_twice_changes_nothing(target in "[/a%2F€*$ ?]{0,20}") {
            let once = normalized(&target);
            prop_assert_eq!(normalized(&once), once.clone());
            prop_assert!(once.is_ascii() && !once.contains(['*', '$']));
        }
    }
}
