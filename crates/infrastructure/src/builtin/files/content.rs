//! A content that is being read, from a file or a stored output.

use crate::{
    builtin::{files::source::FileOrOutput, text::line_index::ContentId},
    sandbox::workspace::{facts::FileFacts, granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};
use toolstead_domain::{ContentDigest, StoredContent, ToolFailure, error_kind::ErrorKind};

/// An open regular file or stored output.
pub(crate) struct OpenContent {
    /// Path as it is shown, or the handle.
    pub(crate) name: String,
    /// Real path of a file.
    pub(crate) real: Option<PathBuf>,
    /// Size in bytes when it was opened.
    pub(crate) bytes: u64,
    /// Identity, which is the same while the content does not change.
    pub(crate) id: ContentId,
    pub(crate) reader: Box<dyn StoredContent>,
    /// Second handle of the file, to detect changes.
    watched: Option<File>,
}

impl OpenContent {
    /// Opens a source. Blocks.
    ///
    /// # Errors
    /// `unsupported_type` for folders, pipes, devices and files of the kernel.
    pub(crate) fn open(source: FileOrOutput, files: &GrantedWorkspace) -> Result<Self, ToolFailure> {
        let name = source.name(files);
        match source {
            FileOrOutput::File(found) => {
                let file = found.open_file()?;
                let failed = |error: io::Error| unreadable(&name, error);
                let facts = FileFacts::of_open(&file).map_err(failed)?;
                let watched = file.try_clone().map_err(failed)?;
                Ok(Self {
                    real: Some(found.path().real.clone()),
                    bytes: facts.bytes,
                    id: ContentId::File(facts.identity),
                    reader: Box::new(file),
                    watched: Some(watched),
                    name,
                })
            }
            FileOrOutput::Output(stored, reader) => Ok(Self {
                name,
                real: None,
                bytes: stored.bytes,
                id: ContentId::Output(stored.digest),
                reader,
                watched: None,
            }),
        }
    }

    /// Reads at most `at_most` bytes from an offset on. Blocks.
    pub(crate) fn read(&mut self, offset: u64, at_most: u64) -> Result<Vec<u8>, ToolFailure> {
        let mut bytes = Vec::new();
        let read = self.reader.seek(SeekFrom::Start(offset));
        let read = read.and_then(|_| (&mut self.reader).take(at_most).read_to_end(&mut bytes));
        read.map_err(|error| self.unreadable(error))?;
        Ok(bytes)
    }

    /// Reads the whole content, if it is at most `limit` bytes. Blocks.
    ///
    /// # Errors
    /// `too_large`; `what` names the kind of content in the message.
    pub(crate) fn read_whole(&mut self, limit: u64, what: &str) -> Result<Vec<u8>, ToolFailure> {
        let too_large = |name: &str, bytes: u64| {
            let message = format!("`{name}` is {what} of {bytes} bytes, and at most {limit} are accepted");
            ToolFailure::new(ErrorKind::TooLarge, message).next("Give `byte_offset` to look at some of its bytes.")
        };
        if self.bytes > limit {
            return Err(too_large(&self.name, self.bytes));
        }
        let bytes = self.read(0, limit.saturating_add(1))?;
        if bytes.len() as u64 > limit { Err(too_large(&self.name, bytes.len() as u64)) } else { Ok(bytes) }
    }

    /// Returns the digest of the whole content; `None` if it has more than `limit` bytes, or at the deadline. Blocks.
    pub(crate) fn digest(&mut self, limit: u64, stop: &StopCondition) -> Result<Option<ContentDigest>, ToolFailure> {
        if let ContentId::Output(digest) = self.id {
            return Ok(Some(digest));
        }
        if self.bytes > limit {
            return Ok(None);
        }
        let (mut hash, mut left, mut buffer) = (Sha256::new(), limit, vec![0; 64 << 10]);
        self.reader.seek(SeekFrom::Start(0)).map_err(|error| self.unreadable(error))?;
        loop {
            match self.reader.read(&mut buffer) {
                Ok(0) => return Ok(Some(ContentDigest(hash.finalize().into()))),
                Ok(read) => {
                    hash.update(&buffer[..read]);
                    let Some(less) = left.checked_sub(read as u64).filter(|_| !stop.is_due()) else { return Ok(None) };
                    left = less;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
    }

    /// Returns `true` if the content has not changed since it was opened.
    pub(crate) fn is_unchanged(&self) -> bool {
        let Some(file) = &self.watched else { return true };
        FileFacts::of_open(file).is_ok_and(|facts| ContentId::File(facts.identity) == self.id)
    }

    /// Returns `true` if the content has not changed since it was opened, and every later change would also change the
    /// identity.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_unchanged()
            && match self.id {
                ContentId::File(identity) => identity.is_settled(),
                ContentId::Output(_) => true,
            }
    }

    /// Converts an error while reading into a failure.
    pub(crate) fn unreadable(&self, error: io::Error) -> ToolFailure {
        unreadable(&self.name, error)
    }
}

fn unreadable(name: &str, error: io::Error) -> ToolFailure {
    ToolFailure::new(ErrorKind::Io, format!("could not read `{name}`: {error}")).caused_by(error)
}
