//! What a change did, as a unified diff for people.

use similar::TextDiff;
use std::time::Duration;

/// Larger texts are not compared.
const MAX_COMPARED_BYTES: usize = 2 << 20;
/// Longer diffs are left out: nobody reads them, and the change itself is told in other ways.
const MAX_DIFF_BYTES: usize = 64 << 10;
/// When comparing takes longer, it becomes coarser.
const TIME_TO_COMPARE: Duration = Duration::from_millis(200);

/// The diff of two texts under a name; `None` where there is no difference, or it is too large to be of use.
pub(super) fn unified_diff(name: &str, old: &str, new: &str) -> Option<String> {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let diff = TextDiff::configure().timeout(TIME_TO_COMPARE).diff_lines(old, new);
    let (before, after) = (format!("a/{name}"), format!("b/{name}"));
    let text = diff.unified_diff().context_radius(3).header(&before, &after).to_string();
    (!text.is_empty() && text.len() <= MAX_DIFF_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let diff = unified_diff("x", "a\nb\nc\n", "a\nB\nc\n").unwrap();
        assert_eq!(diff, "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(unified_diff("x", "a", "a"), None);
        assert_eq!(unified_diff("x", &"a\n".repeat(2 << 20), ""), None);
    }
}
