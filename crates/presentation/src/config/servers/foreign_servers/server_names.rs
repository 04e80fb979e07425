//! Names of imported servers that are valid in Toolstead.

use toolstead_domain::ServerName;

/// Maximum length of a name, in characters.
const MAX_LENGTH: usize = 32;

/// Returns the nearest valid name: `-` replaces every character that is not valid. Of a qualified name such as
/// `io.github.user/weather` only the part after the last `/` is used. The name is `server` if nothing valid remains.
pub(super) fn mapped(foreign: &str) -> ServerName {
    if let Ok(name) = ServerName::parse(foreign) {
        return name;
    }
    let own = foreign.rsplit('/').find(|part| part.chars().any(|c| c.is_ascii_alphanumeric())).unwrap_or_default();
    let mut name = String::new();
    for c in own.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let repeats = name.ends_with(c) || (c == '-' && name.ends_with('_')) || (c == '_' && name.ends_with('-'));
        if c.is_ascii_alphanumeric() || !repeats {
            name.push(c);
        }
    }
    shortened(&name).unwrap_or_else(fallback)
}

/// Returns the name with a suffix, shortened so that both fit.
pub(super) fn with_suffix(name: &ServerName, suffix: &str) -> ServerName {
    let room = MAX_LENGTH.saturating_sub(suffix.len() + 1);
    let stem: String = name.as_str().chars().take(room).collect();
    let stem = stem.trim_end_matches(['-', '_']);
    ServerName::parse(&format!("{stem}-{suffix}")).unwrap_or_else(|_| fallback())
}

/// Returns the name in the form in which names that look alike are equal: in lower case, with `_` as `-`, `0` as `o`
/// and `1` as `l`.
pub(super) fn folded(name: &str) -> String {
    let fold = |c: char| match c {
        '_' => '-',
        '0' => 'o',
        '1' => 'l',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

fn shortened(name: &str) -> Option<ServerName> {
    let short: String = name.trim_matches(['-', '_']).chars().take(MAX_LENGTH).collect();
    ServerName::parse(short.trim_end_matches(['-', '_'])).ok()
}

/// Returns `server`, the name for a server whose own name has no valid character.
fn fallback() -> ServerName {
    #[expect(clippy::expect_used, reason = "the text is a valid name")]
    ServerName::parse("server").expect("a valid name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_server_name_is_mapped_to_the_nearest_valid_name() {
        for (foreign, expected) in [
            ("git", "git"),
            ("My Server (v2)", "My-Server-v2"),
            ("io.github.user/weather", "weather"),
            ("a__b", "a_b"),
            ("@scope/pkg.name", "pkg-name"),
            ("_x-", "x"),
            ("grüße", "gr-e"),
            ("天気", "server"),
            ("", "server"),
            ("//", "server"),
            ("a/", "a"),
            ("this-name-has-more-than-thirty-two-characters", "this-name-has-more-than-thirty-t"),
        ] {
            assert_eq!(mapped(foreign).as_str(), expected, "{foreign:?}");
        }
    }

    #[test]
    fn a_suffix_keeps_the_name_within_its_limit_and_similar_names_fold_equally() {
        let name = mapped("this-name-has-more-than-thirty-two-characters");
        assert_eq!(with_suffix(&name, "cursor").as_str(), "this-name-has-more-than-t-cursor");
        assert_eq!(with_suffix(&mapped("git"), "2").as_str(), "git-2");
        assert_eq!(folded("My_Too1"), folded("my-tool"));
    }
}
