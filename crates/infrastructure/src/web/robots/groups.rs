//! Lines of `robots.txt`, by the programs that they are for (RFC 9309, 2.1 and 2.2.1).

/// A rule of a group: its kind and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleLine<'a> {
    Allow(&'a [u8]),
    Disallow(&'a [u8]),
}

/// Returns the rules for this program, named in lower case: those of all groups that name it, or, without any, of all
/// groups for every program.
pub(super) fn rules_for<'a>(file: &'a [u8], agent: &str) -> Vec<RuleLine<'a>> {
    let (mut own, mut general) = (Vec::new(), Vec::new());
    let mut has_own_group = false;
    let mut group = GroupInProgress::default();
    for (key, value) in lines(file) {
        let rule = match key {
            DirectiveKey::UserAgent => {
                if group.has_rules {
                    group = GroupInProgress::default();
                }
                group.is_own |= is_named(value, agent);
                group.is_general |= value.split(u8::is_ascii_whitespace).next() == Some(b"*");
                has_own_group |= group.is_own;
                continue;
            }
            DirectiveKey::Allow => RuleLine::Allow(value),
            DirectiveKey::Disallow => RuleLine::Disallow(value),
        };
        group.has_rules = true;
        if group.is_own {
            own.push(rule);
        }
        if group.is_general {
            general.push(rule);
        }
    }
    if has_own_group { own } else { general }
}

/// Group that is being read.
#[derive(Default)]
struct GroupInProgress {
    is_own: bool,
    is_general: bool,
    /// `true` if the next name of a program begins another group.
    has_rules: bool,
}

enum DirectiveKey {
    UserAgent,
    Allow,
    Disallow,
}

/// Returns the lines with these keys. Others, such as `Sitemap`, do not end a group.
fn lines(file: &[u8]) -> impl Iterator<Item = (DirectiveKey, &[u8])> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    file.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (key, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        let keys = [
            ("user-agent", DirectiveKey::UserAgent),
            ("allow", DirectiveKey::Allow),
            ("disallow", DirectiveKey::Disallow),
        ];
        let (_, key) = keys.into_iter().find(|(name, _)| key.eq_ignore_ascii_case(name.as_bytes()))?;
        Some((key, value))
    })
}

/// Returns `true` if the value of `User-agent` names this program. A version may follow the name.
fn is_named(value: &[u8], agent: &str) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    let end = value.iter().position(|byte| !is_of_token(byte)).unwrap_or(value.len());
    value[..end].eq_ignore_ascii_case(agent.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, expected: &[&str]) {
        let found: Vec<String> = rules_for(file.as_bytes(), "toolstead")
            .into_iter()
            .map(|rule| match rule {
                RuleLine::Allow(path) => format!("+{}", String::from_utf8_lossy(path)),
                RuleLine::Disallow(path) => format!("-{}", String::from_utf8_lossy(path)),
            })
            .collect();
        assert_eq!(found, expected, "{file:?}");
    }

    #[test]
    fn groups_that_name_the_program_are_merged_and_replace_wildcard_groups() {
        check("User-agent: *\nDisallow: /a\n\nUser-agent: *\nAllow: /b", &["-/a", "+/b"]);
        check(
            "User-agent: *\nDisallow: /a\nUser-agent: Toolstead/1.0\nAllow: /b\nuser-AGENT:toolstead\nDisallow:/c",
            &["+/b", "-/c"],
        );
        check("User-agent: other\nUser-agent: toolstead\nDisallow: /a\n", &["-/a"]);
        check("User-agent: other\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", &["-/b"]);
        check("User-agent: toolsteadbot\nDisallow: /a\n", &[]);
        check("User-agent: *\nDisallow: /a\nUser-agent: toolstead\n", &[]);
        check("User-agent: toolstead\nUser-agent: *\nDisallow: /a\n", &["-/a"]);
    }

    #[test]
    fn rules_are_read_despite_comments_unknown_fields_and_malformed_lines() {
        check(
            "\u{feff}User-agent: *\r\nSitemap: https://a.example/\rDisallow: /a # why\n# Disallow: /b\nCrawl-delay: 3\n",
            &["-/a"],
        );
        check("Disallow: /before\nUser-agent: *\nSitemap: x\nUser-agent: toolstead\nDisallow : /a", &["-/a"]);
        check("User-agent *\nDisallow: /a\n", &[]);
        check("User-agent: * # all\nDisallow:\nAllow /x\nnoindex: /y", &["-"]);
        check("", &[]);
    }
}
