//! Etags: short digests of contents in arguments and results.

use sha2::{Digest, Sha256};
use toolstead_domain::ContentDigest;

/// Number of hexadecimal digits of an etag.
const DIGITS: usize = 16;

/// Returns the digest of a content.
pub(crate) fn digest_of(content: &[u8]) -> ContentDigest {
    ContentDigest(Sha256::digest(content).into())
}

/// Returns the shortened digest for results and `if_match`.
pub(crate) fn etag(digest: &ContentDigest) -> String {
    let mut text = digest.to_string();
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_the_beginning_of_the_digest() {
        assert_eq!(etag(&digest_of(b"")), "e3b0c44298fc1c14");
        assert_eq!(digest_of(b"").to_string().len(), 64);
    }
}
