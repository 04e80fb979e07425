//! Conversion of tool names to those that a provider accepts, and back.

use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};
use toolstead_domain::OfferedTool;

/// Check whether a character is allowed at a position of a name.
pub(super) type ToolNameCharacterCheck = fn(usize, char) -> bool;

/// Names of the tools of one request in both directions. A name that the provider accepts is unchanged. In other names,
/// invalid characters become `_`, and a digest of the whole name is appended if the result is too long or not unique.
#[derive(Debug)]
pub(super) struct ToolNameMap {
    allowed: ToolNameCharacterCheck,
    max: usize,
    theirs: BTreeMap<String, String>,
    ours: BTreeMap<String, String>,
}

impl ToolNameMap {
    /// Creates the map of these tools for a provider whose names have at most `max` bytes (at least 16) of allowed
    /// ASCII characters. `_` must be allowed everywhere, and digits after the first position.
    pub(super) fn of(tools: &[OfferedTool], allowed: ToolNameCharacterCheck, max: usize) -> Self {
        let mut map = Self { allowed, max, theirs: BTreeMap::new(), ours: BTreeMap::new() };
        let (kept, changed): (Vec<&str>, Vec<&str>) =
            tools.iter().map(|tool| tool.name.as_str()).partition(|name| map.is_accepted(name));
        let mut taken: BTreeSet<String> = kept.into_iter().map(str::to_owned).collect();
        for name in changed {
            if map.theirs.contains_key(name) {
                continue;
            }
            let spelled = map.candidate_names(name).find(|spelled| !taken.contains(spelled)).unwrap_or_default();
            taken.insert(spelled.clone());
            map.theirs.insert(name.to_owned(), spelled.clone());
            map.ours.insert(spelled, name.to_owned());
        }
        map
    }

    /// Returns the provider's name of a tool, even if the tool is no longer offered.
    pub(super) fn provider_name<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        if self.is_accepted(name) {
            return Cow::Borrowed(name);
        }
        match self.theirs.get(name) {
            Some(spelled) => Cow::Borrowed(spelled),
            // The digest prevents confusion with an offered tool.
            None => Cow::Owned(self.with_digest(name, 0)),
        }
    }

    /// Returns the tool's name for the provider's name. A name that was never offered is unchanged.
    pub(super) fn tool_name<'n>(&'n self, spelled: &'n str) -> &'n str {
        self.ours.get(spelled).map_or(spelled, String::as_str)
    }

    fn is_accepted(&self, name: &str) -> bool {
        !name.is_empty()
            && name.len() <= self.max
            && name.chars().enumerate().all(|(place, c)| (self.allowed)(place, c))
    }

    /// Returns the possible names for a tool, the best first.
    fn candidate_names<'n>(&'n self, name: &'n str) -> impl Iterator<Item = String> + 'n {
        let plain = Some(self.replaced(name)).filter(|plain| !plain.is_empty() && plain.len() <= self.max);
        plain.into_iter().chain((0..).map(|round| self.with_digest(name, round)))
    }

    fn replaced(&self, name: &str) -> String {
        let replace = |(place, c)| if (self.allowed)(place, c) { c } else { '_' };
        name.chars().enumerate().map(replace).collect()
    }

    fn with_digest(&self, name: &str, round: u32) -> String {
        let digest = Sha256::new().chain_update(name).chain_update(round.to_be_bytes()).finalize();
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let mut spelled = self.replaced(name);
        spelled.truncate(self.max - digest.len() - 1);
        format!("{spelled}_{digest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;

    fn allowed(_: usize, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
    }

    /// Gemini's rule: a letter or `_` first.
    fn allowed_later(place: usize, c: char) -> bool {
        c.is_ascii_alphabetic() || c == '_' || (place > 0 && (c.is_ascii_digit() || c == '-'))
    }

    fn offered(names: &[&str]) -> Vec<OfferedTool> {
        let tool = |name: &&str| OfferedTool {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: Arc::new(json!({})),
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn dots_in_tool_names_map_to_underscores_and_back_without_collisions() {
        let map = ToolNameMap::of(&offered(&["git.status", "read_file", "files.read"]), allowed, 64);
        assert_eq!(map.provider_name("git.status"), "git_status");
        assert_eq!(map.tool_name("git_status"), "git.status");
        assert_eq!(map.provider_name("read_file"), "read_file");
        let map = ToolNameMap::of(&offered(&["git.status", "git_status", "git/status"]), allowed, 64);
        assert_eq!(map.provider_name("git_status"), "git_status");
        assert_eq!(map.tool_name("git_status"), "git_status");
        assert!(map.provider_name("git.status").starts_with("git_status_"));
        assert_ne!(map.provider_name("git.status"), map.provider_name("git/status"));
    }

    #[test]
    fn a_tool_that_is_no_longer_offered_is_not_confused_with_another_tool() {
        let map = ToolNameMap::of(&offered(&["git_status"]), allowed, 64);
        let spelled = map.provider_name("git.status");
        assert!(spelled.starts_with("git_status_"), "{spelled}");
        assert_eq!(map.tool_name("never_offered"), "never_offered");
    }

    proptest! {
        #[test]
        fn every_tool_name_maps_to_a_valid_provider_name_and_back(
            names in proptest::collection::vec("[a-c._/é-]{1,5}|[a.]{60,80}", 1..12),
            starts_with_a_letter: bool,
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let allowed = if starts_with_a_letter { allowed_later } else { allowed };
            let map = ToolNameMap::of(&offered(&names), allowed, 64);
            let mut seen = BTreeMap::new();
            for name in names {
                let spelled = map.provider_name(name).into_owned();
                prop_assert!(map.is_accepted(&spelled), "{name} {spelled}");
                prop_assert_eq!(map.tool_name(&spelled), name);
                let other = seen.insert(spelled, name);
                prop_assert!(other.is_none_or(|other| other == name));
            }
        }
    }
}
