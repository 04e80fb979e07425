//! What stands for a file's content in answers and arguments.

use sha2::{Digest, Sha256};
use toolstead_domain::content_digest::ContentDigest;

/// The digest of these bytes.
pub(super) fn digest_of(bytes: &[u8]) -> ContentDigest {
    ContentDigest(Sha256::digest(bytes).into())
}

/// The short form that a model sees: the first 16 hexadecimal digits.
pub(super) fn etag(digest: &ContentDigest) -> String {
    digest.to_string().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_the_beginning_of_the_digest() {
        assert_eq!(etag(&digest_of(b"abc")), "ba7816bf8f01cfea");
    }
}
