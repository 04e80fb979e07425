//! Synonyms, because users describe a task in other words than definitions do.

use super::stems::stems;
use std::collections::HashMap;

/// Groups of synonyms, one group a line. Lines with `#` at the beginning are comments.
const GROUPS: &str = include_str!("synonyms.txt");

/// Synonyms of words, as stems.
#[derive(Debug)]
pub(super) struct Synonyms {
    by_stem: HashMap<String, Vec<String>>,
}

impl Synonyms {
    /// Reads the synonyms that are compiled into this program.
    pub(super) fn load() -> Self {
        let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
        for group in GROUPS.lines().filter(|line| !line.starts_with('#')).map(stems) {
            for stem in &group {
                let synonyms = by_stem.entry(stem.clone()).or_default();
                for other in &group {
                    if other != stem && !synonyms.contains(other) {
                        synonyms.push(other.clone());
                    }
                }
            }
        }
        Self { by_stem }
    }

    /// Returns the other stems of all groups with this stem.
    pub(super) fn of(&self, stem: &str) -> &[String] {
        self.by_stem.get(stem).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synonyms_of_a_word_come_from_all_of_its_groups() {
        let synonyms = Synonyms::load();
        assert_eq!(synonyms.of("directori"), ["folder"]);
        let of_mail = synonyms.of("mail");
        assert!(of_mail.contains(&"email".to_owned()) && of_mail.contains(&"send".to_owned()), "{of_mail:?}");
        assert!(synonyms.of("zebra").is_empty() && synonyms.of("#").is_empty());
    }

    #[test]
    fn each_synonym_group_is_unique_and_has_several_sorted_words() {
        let groups: Vec<&str> = GROUPS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        for group in &groups {
            let words: Vec<&str> = group.split(' ').collect();
            assert!(words.len() > 1 && words.is_sorted(), "{group}");
            assert_eq!(groups.iter().filter(|other| *other == group).count(), 1, "{group}");
        }
    }
}
