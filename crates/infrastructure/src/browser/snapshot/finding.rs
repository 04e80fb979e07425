//! Search for lines of a page: by words, or by similarity to the line of a removed element.

use super::{Snapshot, SnapshotLine};
use crate::browser::references::ElementReference;

/// Maximum number of similar lines that are reported.
const MAX_ALIKE: usize = 5;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotMatches {
    /// The matching lines with their ancestors and descendants, as far as they fit.
    pub(crate) text: String,
    /// Number of matching lines.
    pub(crate) hits: usize,
    /// Number of matching lines, ancestors and descendants that are not in `text`.
    pub(crate) left_out: usize,
}

impl Snapshot {
    /// Searches lines that contain all of these words in their role, name, state or value. Case is ignored. The text of
    /// the result has at most `characters` bytes.
    pub(crate) fn find(&self, words: &str, characters: usize) -> SnapshotMatches {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let holds = |line: &SnapshotLine| {
            let text = line.text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let is_hit: Vec<bool> = self.lines.iter().map(holds).collect();
        let (mut is_above, mut is_below) = (vec![false; self.lines.len()], vec![false; self.lines.len()]);
        let mut above: Vec<usize> = Vec::new();
        let mut hit_depth = None;
        for (place, line) in self.lines.iter().enumerate() {
            while above.last().is_some_and(|last| self.lines[*last].depth >= line.depth) {
                above.pop();
            }
            hit_depth = hit_depth.filter(|depth| *depth < line.depth);
            is_below[place] = hit_depth.is_some();
            if is_hit[place] {
                above.iter().for_each(|place| is_above[*place] = true);
                hit_depth = hit_depth.or(Some(line.depth));
            }
            above.push(place);
        }
        let shown = self.chosen(characters, |place, _| match (is_hit[place], is_above[place], is_below[place]) {
            (true, ..) => Some(0),
            (_, true, _) => Some(1),
            (.., true) => Some(2),
            _ => None,
        });
        let count = |is: &dyn Fn(usize) -> bool| (0..self.lines.len()).filter(|place| is(*place)).count();
        SnapshotMatches {
            text: self.written(&shown),
            hits: count(&|place| is_hit[place]),
            left_out: count(&|place| (is_hit[place] || is_above[place] || is_below[place]) && !shown[place]),
        }
    }

    /// Returns the lines with a reference that have the role and name of this one; if there are none, those with its
    /// name. At most [`MAX_ALIKE`].
    pub(crate) fn find_similar(&self, gone: &SnapshotLine) -> Vec<&SnapshotLine> {
        let usable = || self.lines.iter().filter(|line| line.reference.is_some() && line.name() == gone.name());
        let same: Vec<&SnapshotLine> = usable().filter(|line| line.role() == gone.role()).take(MAX_ALIKE).collect();
        match same.is_empty() && !gone.name().is_empty() {
            true => usable().take(MAX_ALIKE).collect(),
            false => same,
        }
    }

    /// Returns the line of an element.
    pub(crate) fn line_of(&self, reference: ElementReference) -> Option<&SnapshotLine> {
        self.lines.iter().find(|line| line.reference == Some(reference))
    }
}

impl SnapshotLine {
    /// Returns the role; `text` for a line of text.
    pub(crate) fn role(&self) -> &str {
        self.text.split([' ', ':']).next().unwrap_or_default()
    }

    /// Returns the name or the text; empty if there is none.
    pub(crate) fn name(&self) -> &str {
        self.named().0
    }

    /// Returns the value of a field.
    pub(crate) fn value(&self) -> Option<&str> {
        let (_, value) = self.named().1.split_once(" = \"")?;
        value.split('"').next()
    }

    /// Returns the address of a link.
    pub(crate) fn url(&self) -> Option<&str> {
        let (_, url) = self.named().1.split_once(" -> ").filter(|_| self.role() == "link")?;
        Some(url)
    }

    /// Returns `true` if the element is in this state.
    pub(crate) fn is(&self, state: &str) -> bool {
        self.named().1.split(" = \"").next().is_some_and(|states| states.contains(&format!("[{state}]")))
    }

    /// Returns the name, which contains no quotation mark, and the rest of the line.
    fn named(&self) -> (&str, &str) {
        let behind = &self.text[self.role().len()..];
        if let Some(words) = behind.strip_prefix(": ") {
            return (words, "");
        }
        behind.strip_prefix(" \"").and_then(|name| name.split_once('"')).unwrap_or(("", behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(depth: usize, reference: u32, text: &str) -> SnapshotLine {
        let reference = (reference > 0).then_some(ElementReference(reference));
        SnapshotLine { depth, reference, is_interactive: reference.is_some(), is_heading: false, text: text.into() }
    }

    fn orders() -> Snapshot {
        let lines = vec![
            line(0, 0, "main"),
            line(1, 0, "table \"Orders\""),
            line(2, 0, "row \"Order 17\""),
            line(3, 0, "cell \"17\""),
            line(3, 1, "button \"Cancel\" [e1]"),
            line(2, 0, "row \"Order 18\""),
            line(3, 2, "button \"Cancel\" [e2] [disabled]"),
            line(0, 3, "textbox \"Cancel\" [e3] = \"a -> b\""),
        ];
        Snapshot { lines, ..Snapshot::default() }
    }

    #[test]
    fn search_hits_are_listed_with_their_ancestors_and_contents() {
        for (words, hits, text) in [
            (
                "BUTTON cancel",
                2,
                "- main\n  - table \"Orders\"\n    - row \"Order 17\"\n      - button \"Cancel\" [e1]\n    - row \"Order 18\"\n      - button \"Cancel\" [e2] [disabled]\n",
            ),
            (
                "order 17",
                1,
                "- main\n  - table \"Orders\"\n    - row \"Order 17\"\n      - cell \"17\"\n      - button \"Cancel\" [e1]\n",
            ),
            (
                "disabled",
                1,
                "- main\n  - table \"Orders\"\n    - row \"Order 18\"\n      - button \"Cancel\" [e2] [disabled]\n",
            ),
            ("nowhere", 0, ""),
        ] {
            let found = orders().find(words, 1_000);
            assert_eq!((found.hits, found.text.as_str(), found.left_out), (hits, text, 0), "{words}");
        }
        let found = orders().find("button cancel", 40);
        assert_eq!((found.hits, found.text.as_str(), found.left_out), (2, "      - button \"Cancel\" [e1]\n", 5));
    }

    #[test]
    fn similar_elements_share_the_role_and_name_or_else_the_name() {
        let page = orders();
        let alike = |text: &str| -> Vec<u32> {
            page.find_similar(&line(0, 9, text)).iter().map(|line| line.reference.unwrap().0).collect()
        };
        assert_eq!(alike("button \"Cancel\" [e9] [focused]"), [1, 2]);
        assert_eq!(alike("link \"Cancel\" [e9] -> https://a.b/"), [1, 2, 3]);
        assert_eq!(alike("button \"Buy\" [e9]"), [0; 0]);
        assert_eq!(alike("button [e9]"), [0; 0]);
    }

    #[test]
    fn a_snapshot_line_is_split_into_role_name_value_and_address() {
        for (text, role, name, value, url) in [
            ("text: a = \"b\"", "text", "a = \"b\"", None, None),
            ("textbox \"Name\" [e1] [required] = \"a -> b\"", "textbox", "Name", Some("a -> b"), None),
            ("textbox [e1] = \"x\"", "textbox", "", Some("x"), None),
            ("link \"Go -> on\" [e1] -> https://a.b/", "link", "Go -> on", None, Some("https://a.b/")),
            ("form", "form", "", None, None),
        ] {
            let line = line(0, 1, text);
            assert_eq!((line.role(), line.name(), line.value(), line.url()), (role, name, value, url), "{text}");
        }
        let checked = line(0, 1, "checkbox \"[checked]\" [e1] = \"[checked]\"");
        assert!(!checked.is("checked") && line(0, 1, "checkbox [e1] [checked]").is("checked"));
    }

    proptest! {
        #[test]
        fn search_results_fit_the_size_limit_and_any_line_can_be_split(
            lines in prop::collection::vec((0_usize..14, 0_u32..3, ".{0,20}"), 0..30),
            words in "[a-z ]{0,4}",
            room in 0_usize..300,
        ) {
            let lines: Vec<SnapshotLine> = lines.iter().map(|(depth, reference, text)| line(*depth, *reference, text)).collect();
            let snapshot = Snapshot { lines, ..Snapshot::default() };
            let found = snapshot.find(&words, room);
            prop_assert!(found.text.chars().count() <= room);
            for line in &snapshot.lines {
                let _ = (line.role(), line.name(), line.value(), line.url(), line.is("x"), snapshot.find_similar(line));
            }
        }
    }
}
