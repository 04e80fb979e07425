//! The store of results that are too large for a model.

use crate::{
    content_digest::ContentDigest, ports::tool_repository::StoreError, principal::Principal, tool_call::CallId,
};
use async_trait::async_trait;
use std::{fmt, io, num::NonZeroU64, str::FromStr};

/// Names a stored output: `o17`. It belongs to one principal in one workspace, and its content never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputHandle(pub NonZeroU64);

impl fmt::Display for OutputHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "o{}", self.0)
    }
}

impl FromStr for OutputHandle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        let digits = text.strip_prefix('o').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.filter(|digits| !digits.starts_with('0')).and_then(|digits| digits.parse().ok());
        number.map(Self).ok_or(InvalidHandle)
    }
}

/// A text that is no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle is the letter `o` and a number, such as `o17`")]
pub struct InvalidHandle;

/// A stored output without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// Its name.
    pub handle: OutputHandle,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its kind: `text/plain`, `application/json`, `image/png`.
    pub media_type: String,
    /// Stands for its content.
    pub digest: ContentDigest,
}

/// A stored content, to be read from any place in it. Reading blocks.
pub trait StoredContent: io::Read + io::Seek + Send + 'static {}

impl<T: io::Read + io::Seek + Send + 'static> StoredContent for T {}

/// Keeps large outputs of one workspace, by principal.
///
/// Implementers guarantee:
/// - a handle never names another content than at first, also across restarts and after its content has expired;
/// - one principal's handles mean nothing to another, nor to the same one in another workspace;
/// - the same content of the same principal and media type is kept once and has one handle while it is kept;
/// - what [`store`](Self::store) returned can be opened until retention takes it, by age counted from the last time
///   that it was stored, or by size, oldest first;
/// - what is open can be read to its end, also when retention takes it meanwhile.
#[async_trait]
pub trait OutputStore: Send + Sync {
    /// Keeps a content.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be kept; nothing of it is left then.
    async fn store(
        &self,
        principal: &Principal,
        call: CallId,
        media_type: &str,
        content: &[u8],
    ) -> Result<StoredOutput, StoreError>;

    /// An output without its content; `None` if the principal has none of that name, or it has expired.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn find(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, StoreError>;

    /// Opens a content; `None` as with [`find`](Self::find).
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn open(
        &self,
        principal: &Principal,
        handle: OutputHandle,
    ) -> Result<Option<Box<dyn StoredContent>>, StoreError>;

    /// The principal's outputs with the highest numbers, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<StoredOutput>, StoreError>;
}

/// Keeps nothing, for programs that embed Toolstead without a store: what is cut is then said to be lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutputs;

#[async_trait]
impl OutputStore for NoOutputs {
    async fn store(&self, _: &Principal, _: CallId, _: &str, _: &[u8]) -> Result<StoredOutput, StoreError> {
        Err(StoreError { operation: "store the output".into(), source: "outputs are not kept here".into() })
    }

    async fn find(&self, _: &Principal, _: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
        Ok(None)
    }

    async fn open(&self, _: &Principal, _: OutputHandle) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
        Ok(None)
    }

    async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<StoredOutput>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_is_written_and_nothing_else_is_one() {
        let handle = OutputHandle(NonZeroU64::new(17).unwrap());
        assert_eq!(handle.to_string(), "o17");
        assert_eq!("o17".parse(), Ok(handle));
        for bad in ["", "o", "17", "O17", "o0", "o017", "o+1", "o 1", "o1 ", "o99999999999999999999", "output"] {
            assert_eq!(bad.parse::<OutputHandle>(), Err(InvalidHandle), "{bad}");
        }
    }
}
