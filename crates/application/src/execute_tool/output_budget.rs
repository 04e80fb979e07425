//! Size limits of the result of a call.

use toolstead_domain::ports::calls::WHOLE_OUTPUT;

/// Size limits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultSizeLimits {
    /// Maximum number of characters of the texts; also of the structured content, and of the other members, each by
    /// itself.
    pub(super) characters: usize,
    /// Maximum number of bytes of binary content in its wire form, base64.
    pub(super) media_bytes: usize,
}

impl ResultSizeLimits {
    /// Budget without limits.
    pub(super) const WHOLE: Self = Self { characters: usize::MAX, media_bytes: usize::MAX };

    /// Returns the budget that the parent of a nested call requests: a smaller one, or no limits.
    pub(super) fn requested_by_parent(self, wanted: Option<usize>) -> Self {
        if wanted == Some(WHOLE_OUTPUT) { Self::WHOLE } else { self.up_to(wanted) }
    }

    /// Returns the budget limited to `wanted` characters and `wanted` bytes; `None` limits nothing.
    pub(super) fn up_to(self, wanted: Option<usize>) -> Self {
        let wanted = wanted.unwrap_or(usize::MAX);
        Self { characters: self.characters.min(wanted), media_bytes: self.media_bytes.min(wanted) }
    }

    pub(super) fn less(self, text: &str) -> Self {
        Self { characters: self.characters.saturating_sub(text.chars().count() + 1), ..self }
    }
}
