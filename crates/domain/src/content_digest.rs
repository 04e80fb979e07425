//! Digests of contents.

use std::{fmt, str::FromStr};

/// SHA-256 of a content: equal digests mean equal bytes.
///
/// ```
/// use toolstead_domain::content_digest::ContentDigest;
///
/// let digest = ContentDigest([0xab; 32]);
/// assert_eq!(digest.to_string(), "ab".repeat(32));
/// assert_eq!("ab".repeat(32).parse(), Ok(digest));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentDigest(pub [u8; 32]);

impl fmt::Display for ContentDigest {
    /// Writes 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ContentDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(InvalidDigest);
        }
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| InvalidDigest)?;
        }
        Ok(Self(digest))
    }
}

/// Text that is not a valid digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct InvalidDigest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_round_trips_through_its_text_and_malformed_text_is_rejected() {
        let digest = ContentDigest(std::array::from_fn(|at| at as u8 * 7));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "0", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32), &"+".repeat(64), &"+f".repeat(32)] {
            assert_eq!(bad.parse::<ContentDigest>(), Err(InvalidDigest), "{bad}");
        }
    }
}
