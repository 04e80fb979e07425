//! Query of a search: words, required words and names of tools.

use super::{definition_words::DefinitionWords, stems::stems};
use toolstead_domain::Tool;

/// Maximum length of a query, in characters. The rest of a longer one is ignored.
const MAX_CHARACTERS: usize = 1_000;

/// A parsed query.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SearchQuery {
    /// The query without the signs of required words.
    pub(super) text: String,
    /// Different stems of all words.
    pub(super) stems: Vec<String>,
    /// Words that a definition must have.
    pub(super) required: Vec<RequiredWord>,
    /// Words in lower case, without punctuation around them, which may be names of tools.
    names: Vec<String>,
}

/// Word that a definition must have: all stems of its parts, or that of the whole.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RequiredWord {
    parts: Vec<String>,
    /// Stems of a word with hyphens as one word: `e-mail` is also `email`.
    joined: Vec<String>,
}

impl RequiredWord {
    fn of(word: &str) -> Self {
        let joined = if word.contains('-') { stems(&word.replace('-', "")) } else { Vec::new() };
        Self { parts: stems(&word.replace('-', " ")), joined }
    }

    fn is_in(&self, words: &DefinitionWords) -> bool {
        let has_all = |stems: &[String]| stems.iter().all(|stem| words.occurrences.contains_key(stem));
        has_all(&self.parts) || !self.joined.is_empty() && has_all(&self.joined)
    }
}

impl SearchQuery {
    /// Parses a query. `+word` requires a word.
    pub(super) fn parse(text: &str) -> Self {
        let text: String = text.chars().take(MAX_CHARACTERS).collect();
        let mut query = Self::default();
        for word in text.split_whitespace() {
            let plain = word.strip_prefix('+').unwrap_or(word);
            let found = stems(plain);
            if plain.len() < word.len() {
                query.required.push(RequiredWord::of(plain));
            }
            query.stems.extend(found.into_iter().filter(|stem| !query.stems.contains(stem)).collect::<Vec<_>>());
            let name = plain.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            query.names.extend((!name.is_empty()).then(|| name.to_lowercase()));
            query.text.push_str(if query.text.is_empty() { "" } else { " " });
            query.text.push_str(plain);
        }
        query
    }

    /// Returns `true` if the definition contains all required words.
    pub(super) fn is_met_by(&self, words: &DefinitionWords) -> bool {
        self.required.iter().all(|word| word.is_in(words))
    }

    /// Returns `true` if a word of the query is a name of the tool that cannot be an ordinary word: it has several
    /// parts, or is the whole query.
    pub(super) fn names_tool(&self, tool: &Tool) -> bool {
        let is_named = |name: &str| {
            let name = name.to_lowercase();
            self.names.contains(&name) && (self.names.len() == 1 || name.contains(['_', '-', '.']))
        };
        is_named(tool.name().as_str())
            || is_named(tool.rule_name().as_str())
            || tool.aliases.iter().any(|alias| is_named(alias.name))
            || tool.upstream_aliases().is_some_and(|names| names.iter().any(|name| is_named(name)))
            || matches!(tool.source(), toolstead_domain::ToolSource::McpServer { tool, .. } if is_named(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::samples;

    #[test]
    fn a_query_has_words_required_words_and_names() {
        let query = SearchQuery::parse("+pull requests of `git_log`, +listRequests");
        assert_eq!(query.text, "pull requests of `git_log`, listRequests");
        assert_eq!(query.stems, ["pull", "request", "git", "log", "list"]);
        let parts: Vec<&[String]> = query.required.iter().map(|word| &word.parts[..]).collect();
        assert_eq!(parts, [&["pull".to_owned()][..], &["list".to_owned(), "request".to_owned()]]);
        assert!(query.names_tool(&samples::tool("git_log")) && !query.names_tool(&samples::tool("pull")));
        assert!(SearchQuery::parse("Pull").names_tool(&samples::tool("pull")));
        let hyphen = RequiredWord::of("e-mail");
        assert_eq!((&hyphen.parts[..], &hyphen.joined[..]), (&["e".into(), "mail".into()][..], &["email".into()][..]));
        let empty = SearchQuery::parse(" + ");
        assert!(empty.text.is_empty() && empty.required == [RequiredWord::default()]);
    }
}
