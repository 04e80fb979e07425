//! The rules of a site for this program.

use super::{
    groups::{RuleLine, rules_for},
    path_pattern::{PathPattern, normalized},
};

/// Maximum number of rules of a site.
const MAX_RULES: usize = 10_000;
/// Maximum number of bytes that are compared for one address: some milliseconds.
const MAX_WORK: usize = 32 << 20;

/// Rules of one site; without any everything is allowed.
#[derive(Debug, Default)]
pub(super) struct RobotsRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    allows: bool,
    path: PathPattern,
}

/// Error: the rules of a site are too many, or require too much work to compare.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`robots.txt` has too many rules")]
pub(super) struct TooManyRules;

impl RobotsRules {
    /// Parses the rules for this program, named in lower case.
    ///
    /// # Errors
    /// [`TooManyRules`].
    pub(super) fn read(file: &[u8], agent: &str) -> Result<Self, TooManyRules> {
        let lines = rules_for(file, agent);
        if lines.len() > MAX_RULES {
            return Err(TooManyRules);
        }
        let rule = |line| {
            let (allows, path) = match line {
                RuleLine::Allow(path) => (true, path),
                RuleLine::Disallow(path) => (false, path),
            };
            Some(Rule { allows, path: PathPattern::read(path)? })
        };
        Ok(Self(lines.into_iter().filter_map(rule).collect()))
    }

    /// Returns `true` if a path with its query may be fetched: the longest rule that matches decides, and of two such
    /// rules the one that allows.
    ///
    /// # Errors
    /// [`TooManyRules`].
    pub(super) fn allow(&self, target: &str) -> Result<bool, TooManyRules> {
        if target == "/robots.txt" {
            return Ok(true);
        }
        let (path, mut work) = (normalized(target), 0);
        let mut decisive = (0, true);
        for rule in &self.0 {
            if rule.path.matches(&path, &mut work) {
                decisive = decisive.max((rule.path.octets(), rule.allows));
            }
            if work > MAX_WORK {
                return Err(TooManyRules);
            }
        }
        Ok(decisive.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_decides_and_an_allow_rule_wins_a_tie() {
        for (rules, target, expected) in [
            ("", "/a", true),
            ("Disallow: /\nAllow: /p", "/page", true),
            ("Allow: /p\nDisallow: /", "/page", true),
            ("Allow: /folder\nDisallow: /folder", "/folder/page", true),
            ("Disallow: /folder\nAllow: /folder", "/folder/page", true),
            ("Allow: /page\nDisallow: /*.htm", "/page.htm", false),
            ("Allow: /page\nDisallow: /*.ph", "/page.php5", true),
            ("Allow: /$\nDisallow: /", "/", true),
            ("Allow: /$\nDisallow: /", "/page.htm", false),
            ("Disallow: /example/page/\nAllow: /example/page/disallowed.gif", "/example/page/disallowed.gif", true),
            ("Disallow:", "/a", true),
            ("Disallow: /", "/robots.txt", true),
            ("Disallow: /*?session=", "/a?session=1", false),
        ] {
            let file = format!("User-agent: *\n{rules}\n");
            assert_eq!(
                RobotsRules::read(file.as_bytes(), "toolstead").unwrap().allow(target),
                Ok(expected),
                "{rules:?} {target}"
            );
        }
    }

    #[test]
    fn too_many_rules_or_too_much_matching_work_is_an_error() {
        let file = |rule: &str, times| format!("User-agent: *\n{}", rule.repeat(times));
        let many = file("Disallow: /a\n", MAX_RULES + 1);
        assert_eq!(RobotsRules::read(many.as_bytes(), "toolstead").unwrap_err(), TooManyRules);
        let slow = RobotsRules::read(file("Disallow: /*b\n", MAX_RULES).as_bytes(), "toolstead").unwrap();
        assert_eq!(slow.allow(&format!("/{}", "a".repeat(8_000))), Err(TooManyRules));
        assert_eq!(slow.allow("/a"), Ok(true));
    }
}
