//! Selection of the tools that a run offers (`-t`, `--tools`).

use crate::tool::Tool;
use std::fmt;

/// Selection of tools by name: canonical names, aliases, the other names of a server's tools, and patterns of all of
/// these with `*`.
///
/// ```
/// use toolstead_domain::tool_selection::ToolSelection;
///
/// let selection = ToolSelection::all().adjusted("-execute_command")?;
/// assert_eq!(selection.to_string(), "all without execute_command");
/// assert!(selection.adjusted("glob,+grep").is_err());
/// # Ok::<(), toolstead_domain::tool_selection::SelectionFormConflict>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSelection {
    /// Selected names; `None` for all tools. An empty list selects no tools.
    only: Option<Vec<String>>,
    without: Vec<String>,
    /// Names that were added to a selection of all tools. They select no further tools, but count as chosen literally.
    added: Vec<String>,
    name_matching: ComparedNames,
}

/// Names of a tool that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ComparedNames {
    /// All names that resolve to the tool.
    #[default]
    AnyName,
    /// The canonical name, and the one that rules match.
    CanonicalName,
}

impl ToolSelection {
    /// Selects all tools.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects exactly these tools.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { only: Some(names.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// Selects exactly these tools, by their [own names](Tool::name), by those that [rules match](Tool::rule_name), and
    /// by patterns of such names. Aliases and other names select no tool.
    pub fn canonical(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name_matching: ComparedNames::CanonicalName, ..Self::only(names) }
    }

    /// Applies the text that a user typed. `a,b` replaces the selection, `+a,-b` adjusts it, and an empty text selects
    /// no tools.
    ///
    /// # Errors
    /// [`SelectionFormConflict`] if both forms are mixed.
    pub fn adjusted(mut self, text: &str) -> Result<Self, SelectionFormConflict> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let adjusting = words.iter().filter(|word| word.starts_with(['+', '-'])).count();
        if adjusting == 0 {
            return Ok(Self { name_matching: self.name_matching, ..Self::only(words) });
        }
        if adjusting < words.len() {
            return Err(SelectionFormConflict { text: text.into() });
        }
        for word in words {
            let (sign, name) = word.split_at(1);
            let name = name.trim().to_owned();
            if sign == "+" {
                self.without.retain(|gone| *gone != name);
                self.only.as_mut().unwrap_or(&mut self.added).push(name);
            } else {
                self.added.retain(|gone| *gone != name);
                self.without.push(name);
            }
        }
        Ok(self)
    }

    /// Returns `true` if the tool is selected.
    pub fn includes(&self, tool: &Tool) -> bool {
        let is_without = || self.without.iter().any(|name| self.names_tool(name, tool));
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| self.names_tool(name, tool))) && !is_without()
    }

    /// Returns `true` if the selection contains the tool under a name without `*`, so that the user chose exactly this
    /// tool.
    ///
    /// ```
    /// use toolstead_domain::{Category, Tool, ToolName, ToolSelection, ToolSource};
    ///
    /// let tool = Tool::new(ToolName::parse("grep")?, Default::default(), Category::File, ToolSource::BuiltIn);
    /// assert!(ToolSelection::only(["grep"]).includes_literally(&tool));
    /// assert!(ToolSelection::all().adjusted("+grep")?.includes_literally(&tool));
    /// assert!(!ToolSelection::only(["g*"]).includes_literally(&tool));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn includes_literally(&self, tool: &Tool) -> bool {
        let mut names = self.only.iter().flatten().chain(&self.added).filter(|name| !name.contains('*'));
        names.any(|name| self.names_tool(name, tool)) && self.includes(tool)
    }

    /// Adds these tools to a selection with patterns, unless the selection excludes them. Other selections do not
    /// change.
    #[must_use]
    pub fn with_tools_beside_patterns(mut self, names: &[&str]) -> Self {
        if let Some(only) = &mut self.only
            && only.iter().any(|name| name.contains('*'))
        {
            only.extend(names.iter().map(|name| (*name).to_owned()));
        }
        self
    }

    /// Returns every name in the selection, for checks against existing tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.only.iter().flatten().chain(&self.added).chain(&self.without).map(String::as_str)
    }

    /// Returns the names in the selection that match none of these tools.
    pub fn unmatched<'a>(&self, tools: impl Iterator<Item = &'a Tool> + Clone) -> Vec<&str> {
        self.names().filter(|name| !tools.clone().any(|tool| self.names_tool(name, tool))).collect()
    }

    fn names_tool(&self, pattern: &str, tool: &Tool) -> bool {
        match self.name_matching {
            ComparedNames::AnyName => names(pattern, tool),
            ComparedNames::CanonicalName => {
                [tool.name(), tool.rule_name()].iter().any(|name| wildcard_match(pattern, name.as_str()))
            }
        }
    }

    /// Returns `true` if the selection may contain a tool other than those of `is_built_in`: MCP servers are then
    /// started.
    pub fn may_hold_other_than(&self, is_built_in: impl Fn(&str) -> bool) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| !is_built_in(name)))
    }
}

impl fmt::Display for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.only.as_deref() {
            None => f.write_str("all")?,
            Some([]) => return f.write_str("none"),
            Some(only) => f.write_str(&only.join(", "))?,
        }
        match self.without.as_slice() {
            [] => Ok(()),
            without => write!(f, " without {}", without.join(", ")),
        }
    }
}

fn names(pattern: &str, tool: &Tool) -> bool {
    let fits = |name: &str| wildcard_match(pattern, name);
    // In the last form, which names no server, the pattern `mcp_git_*` would match tools of other servers than `git`.
    let is_upstream = |[first, second, last]: [String; 3]| fits(&first) || fits(&second) || last == pattern;
    fits(tool.name().as_str())
        || fits(tool.rule_name().as_str())
        || tool.aliases.iter().any(|alias| fits(alias.name))
        || tool.upstream_aliases().is_some_and(is_upstream)
}

/// Returns `true` if `text` matches `pattern`, in which `*` matches any characters or none.
///
/// ```
/// use toolstead_domain::tool_selection::wildcard_match;
///
/// assert!(wildcard_match("mcp__git__*", "mcp__git__git_status"));
/// assert!(!wildcard_match("read_*", "write_file"));
/// ```
pub fn wildcard_match(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |part| rest.ends_with(part))
}

/// Returns `true` if some text matches both patterns, in which `*` matches any characters or none.
pub fn patterns_meet(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // `meets[j]` is `true` if some text matches both the rest of `one` after `i` and the rest of `other` after `j`.
    let mut meets = vec![false; other.len() + 1];
    for i in (0..=one.len()).rev() {
        let behind = std::mem::replace(&mut meets, vec![false; other.len() + 1]);
        for j in (0..=other.len()).rev() {
            meets[j] = match (one.get(i), other.get(j)) {
                (None, None) => true,
                (Some('*'), _) => behind[j] || (j < other.len() && meets[j + 1]),
                (_, Some('*')) => meets[j + 1] || (i < one.len() && behind[j]),
                (Some(a), Some(b)) => a == b && behind[j + 1],
                _ => false,
            };
        }
    }
    meets[0]
}

/// Selection that both replaces and adjusts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` mixes names that replace the choice of tools with `+name` and `-name` that adjust it: use one form")]
pub struct SelectionFormConflict {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alias::{Alias, Dialect},
        category::Category,
        server_name::ServerName,
        tool::ToolSource,
        tool_name::ToolName,
    };

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let selection = ToolSelection::all().adjusted(text).unwrap();
        let tool = |name: &str| {
            Tool::new(ToolName::parse(name).unwrap(), Default::default(), Category::File, ToolSource::BuiltIn)
        };
        let chosen: Vec<&str> =
            ["echo", "glob", "grep"].into_iter().filter(|name| selection.includes(&tool(name))).collect();
        assert_eq!(chosen, expected, "{text:?}");
    }

    #[test]
    fn two_patterns_overlap_if_one_text_matches_both() {
        for (one, other, meet) in [
            ("grep", "grep", true),
            ("grep", "glob", false),
            ("mcp__git__*", "mcp__git__push", true),
            ("mcp__*", "mcp__git__*", true),
            ("*__push", "mcp__git__*", true),
            ("a*c", "ab*", true),
            ("a*c", "b*", false),
            ("*", "", true),
            ("a*", "", false),
        ] {
            assert_eq!((patterns_meet(one, other), patterns_meet(other, one)), (meet, meet), "{one} {other}");
        }
    }

    #[test]
    fn a_plain_list_replaces_the_selection_and_signed_names_adjust_it() {
        check("echo, grep", &["echo", "grep"]);
        check("+echo", &["echo", "glob", "grep"]);
        check("-echo,-gl*", &["grep"]);
        check("g*", &["glob", "grep"]);
        assert!(ToolSelection::all().adjusted("echo,-grep").is_err());
    }

    #[test]
    fn a_selection_matches_aliases_and_every_form_of_server_tool_names() {
        let upstream = |server: &str, tool: &str| {
            let server = ServerName::parse(server).unwrap();
            let name = ToolName::for_upstream(&server, tool);
            Tool::new(name, Default::default(), Category::Mcp, ToolSource::McpServer { server, tool: tool.into() })
        };
        let mut grep =
            Tool::new(ToolName::parse("grep").unwrap(), Default::default(), Category::Search, ToolSource::BuiltIn);
        grep.aliases = vec![Alias::new("grep_tool", Dialect("other"), &[])];
        let tools = [grep, upstream("git", "status"), upstream("other", "git_status"), upstream("other", "run")];
        for (text, expected) in [
            ("*_tool", &["grep"][..]),
            ("grep_tool", &["grep"]),
            ("mcp_git_status", &["mcp__git__status", "mcp__other__git_status"]),
            ("mcp_git_*", &["mcp__git__status"]),
            ("git__status", &["mcp__git__status"]),
            ("git__*", &["mcp__git__status"]),
            ("mcp_run", &["mcp__other__run"]),
            ("mcp_other_*", &["mcp__other__git_status", "mcp__other__run"]),
            ("mcp_*", &["mcp__git__status", "mcp__other__git_status", "mcp__other__run"]),
        ] {
            let selection = ToolSelection::all().adjusted(text).unwrap();
            let chosen = tools.iter().filter(|tool| selection.includes(tool));
            assert_eq!(chosen.map(|tool| tool.name().as_str()).collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(selection.unmatched(tools.iter()), [""; 0], "{text}");
        }
        let selection = ToolSelection::only(["git__push", "grep", "x*"]);
        assert_eq!(selection.unmatched(tools.iter()), ["git__push", "x*"]);
        let adjusted = ToolSelection::all().adjusted("+grpe,-gerp").unwrap();
        assert_eq!(adjusted.unmatched(tools.iter()), ["grpe", "gerp"]);
    }

    #[test]
    fn a_selection_is_displayed_in_words() {
        for (text, outcome) in [("", "none"), ("a,b", "a, b"), ("-a,-b", "all without a, b")] {
            assert_eq!(ToolSelection::all().adjusted(text).unwrap().to_string(), outcome);
        }
        assert_eq!(ToolSelection::all().to_string(), "all");
    }

    #[test]
    fn an_empty_selection_includes_no_tools() {
        check("", &[]);
        check(" , ", &[]);
    }

    #[test]
    fn a_star_matches_any_characters_at_any_position() {
        for (pattern, text, fits) in [
            ("web*", "website_text", true),
            ("*tool", "grep_tool", true),
            ("*clai*", "clai_run", true),
            ("f*e", "file_type", true),
            ("f*e", "file_types", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(wildcard_match(pattern, text), fits, "{pattern} {text}");
        }
    }
}
