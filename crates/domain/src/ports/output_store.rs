//! The store of results that are too large for a model.

use crate::{
    content_digest::ContentDigest, ports::tool_repository::StoreError, principal::Principal, tool_call::CallId,
};
use async_trait::async_trait;
use std::{fmt, io, num::NonZeroU64, str::FromStr};

/// Handle of a stored output: `o17`. It belongs to one principal in one workspace, and its content never changes.
///
/// ```
/// use toolstead_domain::ports::output_store::OutputHandle;
///
/// let handle: OutputHandle = "o17".parse()?;
/// assert_eq!(handle.0.get(), 17);
/// assert_eq!(handle.to_string(), "o17");
/// assert!("17".parse::<OutputHandle>().is_err());
/// # Ok::<(), toolstead_domain::ports::output_store::InvalidOutputHandle>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputHandle(pub NonZeroU64);

impl fmt::Display for OutputHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "o{}", self.0)
    }
}

impl FromStr for OutputHandle {
    type Err = InvalidOutputHandle;

    fn from_str(text: &str) -> Result<Self, InvalidOutputHandle> {
        let digits = text.strip_prefix('o').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.filter(|digits| !digits.starts_with('0')).and_then(|digits| digits.parse().ok());
        number.map(Self).ok_or(InvalidOutputHandle)
    }
}

/// Text that is not a valid handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle is the letter `o` and a number, such as `o17`")]
pub struct InvalidOutputHandle;

/// Stored output without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// Handle of the output.
    pub handle: OutputHandle,
    /// Size in bytes.
    pub bytes: u64,
    /// Media type: `text/plain`, `application/json`, `image/png`.
    pub media_type: String,
    /// Digest of the content.
    pub digest: ContentDigest,
}

/// Stored content with random access. Reading blocks.
pub trait StoredContent: io::Read + io::Seek + Send + 'static {}

impl<T: io::Read + io::Seek + Send + 'static> StoredContent for T {}

/// Store of the large outputs of one workspace, by principal.
///
/// Implementers guarantee:
/// - a handle never refers to another content than at first, also across restarts and after its content has expired;
/// - handles of one principal are unknown to another principal, and to the same one in another workspace;
/// - the same content of the same principal and media type is stored once and has one handle while it is stored;
/// - an output that [`store`](Self::store) returned can be opened until retention removes it, by age since it was last
///   stored, or by size, oldest first;
/// - an open content can be read to its end, even if retention removes it in the meantime.
#[async_trait]
pub trait OutputStore: Send + Sync {
    /// Stores a content.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be stored; nothing of it then remains.
    async fn store(
        &self,
        principal: &Principal,
        call: CallId,
        media_type: &str,
        content: &[u8],
    ) -> Result<StoredOutput, StoreError>;

    /// Returns an output without its content; `None` if the principal has none with that handle, or it has expired.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn find(&self, principal: &Principal, handle: OutputHandle) -> Result<Option<StoredOutput>, StoreError>;

    /// Opens a content; `None` as for [`find`](Self::find).
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn open(
        &self,
        principal: &Principal,
        handle: OutputHandle,
    ) -> Result<Option<Box<dyn StoredContent>>, StoreError>;

    /// Returns the principal's outputs with the highest numbers, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<StoredOutput>, StoreError>;
}

/// Store that stores nothing, for embedding applications without a store: truncated output is then reported as lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutputs;

#[async_trait]
impl OutputStore for NoOutputs {
    async fn store(&self, _: &Principal, _: CallId, _: &str, _: &[u8]) -> Result<StoredOutput, StoreError> {
        Err(StoreError { operation: "store the output".into(), source: "outputs are not stored here".into() })
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
    fn a_handle_is_parsed_only_in_its_written_form() {
        let handle = OutputHandle(NonZeroU64::new(17).unwrap());
        assert_eq!(handle.to_string(), "o17");
        assert_eq!("o17".parse(), Ok(handle));
        for bad in ["", "o", "17", "O17", "o0", "o017", "o+1", "o 1", "o1 ", "o99999999999999999999", "output"] {
            assert_eq!(bad.parse::<OutputHandle>(), Err(InvalidOutputHandle), "{bad}");
        }
    }
}
