//! Storage of the removed parts of a result, and the notices about it.

use crate::tool_registry::output_readers::OutputReaders;
use serde_json::{Value, json};
use std::io;
use toolstead_domain::{CallId, OutputHandle, OutputStore, Principal};

/// Maximum ratio of the size of pretty-printed JSON to that of compact JSON.
const MAX_GROWTH: usize = 8;

/// Storage of the removed parts of one call's result in the output store.
pub(in crate::execute_tool) struct OverflowStorage<'a> {
    outputs: &'a dyn OutputStore,
    principal: &'a Principal,
    call: CallId,
    /// Maximum number of stored bytes per output.
    max_bytes: usize,
    /// Tools that read stored outputs, for notices.
    readers: &'a OutputReaders,
    kept: Vec<Value>,
}

/// State of a removed part in the output store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StorageOutcome {
    /// Stored completely.
    Complete(OutputHandle),
    /// Stored up to this number of bytes.
    Truncated(OutputHandle, usize),
    /// Not stored, because the store failed.
    NotStored,
}

impl<'a> OverflowStorage<'a> {
    pub(in crate::execute_tool) fn new(
        outputs: &'a dyn OutputStore,
        principal: &'a Principal,
        call: CallId,
        max_bytes: usize,
        readers: &'a OutputReaders,
    ) -> Self {
        Self { outputs, principal, call, max_bytes, readers, kept: Vec::new() }
    }

    /// Returns the tools that read stored outputs.
    pub(super) fn readers(&self) -> &'a OutputReaders {
        self.readers
    }

    /// Stores content up to the limit. `of` names the part of the result.
    pub(super) async fn store(&mut self, of: &str, media_type: &str, content: &[u8]) -> StorageOutcome {
        self.store_beginning(of, media_type, content, content.len()).await
    }

    /// Stores content. `content` is the whole of it, or a beginning that is longer than the limit.
    async fn store_beginning(
        &mut self,
        of: &str,
        media_type: &str,
        content: &[u8],
        bytes_in_all: usize,
    ) -> StorageOutcome {
        let is_whole = content.len() <= self.max_bytes;
        let beginning = if is_whole { content } else { up_to(content, self.max_bytes) };
        // JSON that is cut is no longer valid.
        let media_type = if !is_whole && media_type == "application/json" { "text/plain" } else { media_type };
        let stored = match self.outputs.store(self.principal, self.call, media_type, beginning).await {
            Ok(stored) => stored,
            Err(error) => {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(call = %self.call, error, "a large output could not be stored");
                return StorageOutcome::NotStored;
            }
        };
        let mut entry = json!({"of": of, "handle": stored.handle.to_string(), "mediaType": stored.media_type, "bytes": stored.bytes});
        if !is_whole {
            entry["bytesInAll"] = bytes_in_all.into();
        }
        self.kept.push(entry);
        match is_whole {
            true => StorageOutcome::Complete(stored.handle),
            false => StorageOutcome::Truncated(stored.handle, beginning.len()),
        }
    }

    /// Stores the text of a result.
    pub(super) async fn store_text(&mut self, text: &str) -> StorageOutcome {
        self.store("text", "text/plain", text.as_bytes()).await
    }

    /// Stores a value as pretty-printed JSON, so that a range of lines can be read. Uses compact JSON if pretty-printed
    /// JSON would consist mostly of blanks or exceed the limit.
    pub(super) async fn store_json(&mut self, of: &str, value: &Value) -> StorageOutcome {
        let mut line = TruncatingWriter::of(self.max_bytes.saturating_add(1));
        // Serializing JSON values never fails, and the writer accepts every byte.
        let _ = serde_json::to_writer(&mut line, value);
        let mut lines = TruncatingWriter::of(self.max_bytes.min(line.in_all.saturating_mul(MAX_GROWTH)));
        let is_written = serde_json::to_writer_pretty(LimitErrorWriter(&mut lines), value).is_ok();
        let text = if is_written { lines } else { line };
        self.store_beginning(of, "application/json", &text.bytes, text.in_all).await
    }

    /// Returns the list of stored outputs for the result's `_meta`.
    pub(super) fn take_list(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.kept)
    }
}

impl StorageOutcome {
    /// Returns the handle; `None` if nothing is stored.
    pub(super) fn handle(&self) -> Option<OutputHandle> {
        match self {
            Self::Complete(handle) | Self::Truncated(handle, _) => Some(*handle),
            Self::NotStored => None,
        }
    }

    /// Returns the description for notices, such as "all of it is `o17`".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Complete(handle) => format!("all of it is `{handle}`"),
            Self::Truncated(handle, bytes) => format!("its first {bytes} bytes are `{handle}`, the rest is not stored"),
            Self::NotStored => "it is not stored: ask for less at a time".into(),
        }
    }
}

/// Writer that retains the first bytes and counts all.
struct TruncatingWriter {
    bytes: Vec<u8>,
    most: usize,
    in_all: usize,
}

impl TruncatingWriter {
    fn of(most: usize) -> Self {
        Self { bytes: Vec::new(), most, in_all: 0 }
    }
}

impl io::Write for TruncatingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.in_all += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writer that fails if the content exceeds the limit.
struct LimitErrorWriter<'a>(&'a mut TruncatingWriter);

impl io::Write for LimitErrorWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.in_all + bytes.len() > self.0.most {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns at most this number of bytes of the content, ending at a character boundary if it is text.
fn up_to(content: &[u8], bytes: usize) -> &[u8] {
    match std::str::from_utf8(content) {
        Ok(text) => &content[..text.floor_char_boundary(bytes)],
        Err(_) => &content[..bytes],
    }
}
