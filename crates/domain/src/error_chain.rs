//! An error with its causes, as one text.

use std::error::Error;

/// Returns the error and all its causes, outermost first, joined by `: `. May contain untrusted text, which must be
/// sanitized before it is shown.
///
/// ```
/// use toolstead_domain::error_chain::with_causes;
///
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(with_causes(&error), "the disk is full");
/// ```
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the row was not written")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn an_error_message_is_followed_by_its_causes() {
        let error = Outer("x".parse::<u8>().unwrap_err());
        assert_eq!(with_causes(&error), "the row was not written: invalid digit found in string");
    }
}
