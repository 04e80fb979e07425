//! Path patterns in rules: the syntax of gitignore, anchored according to the effect of the rule.

use crate::{access::AccessPath, workspace_roots::WorkspaceRoots};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::{Path, PathBuf};

/// Compiled path pattern.
///
/// `//x` is absolute, `~/x` is below the home folder, `/x` is below the folder of the file that contains the rule, and
/// `x` or `./x` is below the workspace roots: anchored there for allow rules, at any depth for deny and ask rules. `*`
/// stays within one level, `**` does not, a trailing `/*` means everything below, and the name of a folder covers its
/// contents.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    globs: GlobSet,
    anchor: Anchor,
    /// Literal path at or below which every match lies, from the beginning of the pattern to its first wildcard.
    within: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// The globs match absolute paths.
    Absolute,
    /// The globs match paths relative to a root.
    Roots,
}

/// Context in which a pattern is parsed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatternContext {
    /// Folder of the file that contains the rule; `None` for rules from the command line.
    pub folder: Option<PathBuf>,
    /// Home folder of the user.
    pub home: Option<PathBuf>,
    /// Names and aliases of tools that are known to [take command lines](crate::tool::Tool::takes_command_lines).
    pub command_tools: &'static [&'static str],
    /// Programs that the analysis of command lines looks through, so that no allow rule on them can cover anything.
    pub transparent_programs: &'static [&'static str],
}

/// Depth at which a relative pattern matches, by the effect of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternDepth {
    /// At its anchor only: allow rules.
    Anchored,
    /// At any depth: deny and ask rules.
    AnyDepth,
}

impl PathPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`InvalidPathPattern`] if it is empty, is not a valid glob, or needs a home or rule folder that is not known.
    pub(crate) fn parse(text: &str, base: &PatternContext, reach: PatternDepth) -> Result<Self, InvalidPathPattern> {
        let wrong = |reason: &str| InvalidPathPattern { pattern: text.into(), reason: reason.into() };
        let below = |folder: &Option<PathBuf>, rest: &str, reason: &str| {
            let folder = folder.as_ref().and_then(|folder| folder.to_str()).ok_or_else(|| wrong(reason))?;
            Ok(format!("{}/{rest}", globset::escape(folder.trim_end_matches('/'))))
        };
        let (anchor, pattern) = if let Some(rest) = text.strip_prefix("//") {
            (Anchor::Absolute, format!("/{rest}"))
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Absolute, below(&base.home, rest, "the home folder is not known")?)
        } else if let Some(rest) = text.strip_prefix('/') {
            let reason = "`/x` is anchored at the file that holds the rule; write `//x` for an absolute path";
            (Anchor::Absolute, below(&base.folder, rest, reason)?)
        } else {
            let rest = text.strip_prefix("./").unwrap_or(text);
            match reach {
                PatternDepth::AnyDepth => (Anchor::Absolute, format!("**/{rest}")),
                PatternDepth::Anchored if rest.starts_with('*') && !rest.contains('/') => {
                    (Anchor::Roots, format!("**/{rest}"))
                }
                PatternDepth::Anchored => (Anchor::Roots, rest.to_owned()),
            }
        };
        let pattern = pattern.trim_end_matches('/');
        if pattern.is_empty() || pattern == "**" && text.is_empty() {
            return Err(wrong("it is empty, and would never match"));
        }
        if pattern.split('/').any(|part| part == ".." || part == ".") {
            return Err(wrong("`.` and `..` never match: paths are judged without them"));
        }
        let pattern = pattern.strip_suffix("/*").map_or(pattern.to_owned(), |folder| format!("{folder}/**"));
        let mut globs = GlobSetBuilder::new();
        for pattern in [pattern.clone(), format!("{pattern}/**")] {
            let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
            globs.add(glob.map_err(|error| wrong(&error.kind().to_string()))?);
        }
        let globs = globs.build().map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { globs, anchor, within: literal_beginning(&pattern) })
    }

    /// Returns `true` if every form of the path matches, as an allow rule requires.
    pub(crate) fn covers(&self, path: &AccessPath, roots: &WorkspaceRoots) -> bool {
        path.forms().all(|form| self.matches(form, path.tree, roots))
    }

    /// Returns `true` if any form of the path matches, which is enough for deny and ask rules.
    pub(crate) fn touches(&self, path: &AccessPath, roots: &WorkspaceRoots) -> bool {
        path.forms().any(|form| self.matches(form, path.tree, roots))
    }

    /// Returns `true` if something in the root may match.
    pub(super) fn may_reach_into(&self, root: &Path) -> bool {
        match self.anchor {
            Anchor::Absolute => self.within.starts_with(root) || root.starts_with(&self.within),
            Anchor::Roots => true,
        }
    }

    /// Returns `true` if something below the folder may match in some form.
    pub(super) fn may_touch_below(&self, folder: &AccessPath, roots: &WorkspaceRoots) -> bool {
        let meet = |within: &Path, folder: &Path| within.starts_with(folder) || folder.starts_with(within);
        folder.forms().any(|folder| match self.anchor {
            Anchor::Absolute => meet(&self.within, folder),
            Anchor::Roots => roots.all().any(|root| meet(&root.join(&self.within), folder)),
        })
    }

    fn matches(&self, path: &Path, tree: bool, roots: &WorkspaceRoots) -> bool {
        // A tree matches if any path below it would; no real file has this name.
        let probe = tree.then(|| path.join("\u{1}/\u{1}"));
        let path = probe.as_deref().unwrap_or(path);
        match self.anchor {
            Anchor::Absolute => self.globs.is_match(path),
            Anchor::Roots => {
                roots.all().filter_map(|root| path.strip_prefix(root).ok()).any(|rest| self.globs.is_match(rest))
            }
        }
    }
}

/// Returns the leading names of a pattern that contain no wildcards.
fn literal_beginning(pattern: &str) -> PathBuf {
    let is_literal = |name: &&str| !name.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let mut within = PathBuf::from(if pattern.starts_with('/') { "/" } else { "" });
    // Braces may contain a slash, so nothing after the first name with a wildcard is used.
    within.extend(pattern.split('/').take_while(is_literal));
    within
}

/// Returns the narrowest pattern of an allow rule that covers this path in all of its forms; `None` if there is no such
/// pattern.
pub(super) fn narrowest(path: &AccessPath) -> Option<String> {
    let forms: Option<Vec<String>> =
        path.forms().map(|form| Some(literal(form.to_str()?.strip_prefix('/')?))).collect();
    let forms = forms?;
    let tail = if path.tree { "/**" } else { "" };
    match forms.as_slice() {
        [form] => Some(format!("//{form}{tail}")),
        _ => Some(format!("//{{{}}}{tail}", forms.join(","))),
    }
}

/// Returns the path as a pattern that matches only itself.
pub fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ',' | '!') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Unusable pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path pattern `{pattern}` cannot be used: {reason}")]
pub(crate) struct InvalidPathPattern {
    pattern: String,
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, reach: PatternDepth, path: &str, expected: bool) {
        let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
        let base = PatternContext {
            folder: Some("/w/conf".into()),
            home: Some("/home/me".into()),
            ..PatternContext::default()
        };
        let tree = path.ends_with('/');
        let access = AccessPath { tree, ..AccessPath::plain(path.trim_end_matches('/')) };
        assert_eq!(
            PathPattern::parse(pattern, &base, reach).unwrap().covers(&access, &roots),
            expected,
            "{pattern} {path}"
        );
    }

    #[test]
    fn an_allow_pattern_is_anchored_at_the_roots() {
        check("src/**", PatternDepth::Anchored, "/w/src/a/b.rs", true);
        check("src/**", PatternDepth::Anchored, "/w/a/src/b.rs", false);
        check("src/*", PatternDepth::Anchored, "/w/src/a/b.rs", true);
        check("./src", PatternDepth::Anchored, "/w/src/a/b.rs", true);
        check("src", PatternDepth::Anchored, "/w/srcs", false);
        check("*.rs", PatternDepth::Anchored, "/w/a/b/c.rs", true);
        check("*.rs", PatternDepth::Anchored, "/elsewhere/c.rs", false);
        check("src/*.rs", PatternDepth::Anchored, "/w/src/a/c.rs", false);
    }

    #[test]
    fn a_deny_pattern_reaches_any_depth() {
        check("secret/**", PatternDepth::AnyDepth, "/w/a/secret/k", true);
        check("secret", PatternDepth::AnyDepth, "/w/secret/k", true);
        check(".env", PatternDepth::AnyDepth, "/w/x/.env", true);
        check(".env", PatternDepth::AnyDepth, "/w/x/.envrc", false);
    }

    #[test]
    fn the_prefix_of_a_pattern_selects_its_base_folder() {
        check("//etc/**", PatternDepth::Anchored, "/etc/passwd", true);
        check("~/.ssh/**", PatternDepth::AnyDepth, "/home/me/.ssh/id", true);
        check("/x", PatternDepth::Anchored, "/w/conf/x", true);
        check("/x", PatternDepth::Anchored, "/w/x", false);
    }

    #[test]
    fn a_pattern_covers_a_tree_only_if_it_covers_everything_in_the_tree() {
        check("src/**", PatternDepth::Anchored, "/w/src/", true);
        check("src/*.rs", PatternDepth::Anchored, "/w/src/", false);
        check("src/**", PatternDepth::Anchored, "/w/", false);
        check("**", PatternDepth::Anchored, "/w/", true);
    }

    #[test]
    fn a_pattern_that_can_never_match_is_refused() {
        for bad in ["", "a/../b", "[", "//"] {
            assert!(PathPattern::parse(bad, &PatternContext::default(), PatternDepth::Anchored).is_err(), "{bad:?}");
        }
    }
}
