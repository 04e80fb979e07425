//! The beginning of a content, from which its type is recognised.

use crate::{
    builtin::{
        files::{
            content::OpenContent,
            etag::digest_of,
            sniff::{FileKindByContent, media_type, sniff},
            source::FileOrOutput,
        },
        text::{
            line_ending::{ends_in_returns, in_lines},
            text_encoding::TextEncoding,
        },
    },
    sandbox::workspace::granted_workspace::GrantedWorkspace,
};
use toolstead_domain::{ContentDigest, ToolFailure};

/// Maximum number of bytes that are read to recognise the type.
const SAMPLE_BYTES: u64 = 1 << 20;

/// The beginning of a content, and its type.
pub(crate) struct ContentSample {
    pub(crate) sample: Vec<u8>,
    /// `true` if the sample is the whole content.
    pub(crate) is_whole: bool,
    /// Digest of the whole content, if it is not too large.
    pub(crate) digest: Option<ContentDigest>,
    pub(crate) kind: FileKindByContent,
    pub(crate) media_type: &'static str,
}

impl ContentSample {
    /// Returns the text with a line feed for each carriage return, if it is complete and only carriage returns end its
    /// lines.
    pub(crate) fn text_in_returns(&self, encoding: TextEncoding) -> Option<String> {
        let body = self.sample.get(encoding.mark_bytes()..).filter(|_| self.is_whole)?;
        let may_be = body.contains(&b'\r') && encoding.line_unit().is_none_or(|unit| unit.count(body) == 0);
        let text = may_be.then(|| encoding.decode(body).0)?;
        ends_in_returns(&text).then(|| in_lines(&text).into_owned())
    }
}

/// Opens a content and reads its beginning. The whole content is read for its digest, if it has at most `digested`
/// bytes. Blocks.
///
/// # Errors
/// As [`OpenContent::open`], and errors of the system.
pub(crate) fn open_with_sample(
    source: FileOrOutput,
    files: &GrantedWorkspace,
    digested: u64,
) -> Result<(OpenContent, ContentSample), ToolFailure> {
    let mut content = OpenContent::open(source, files)?;
    let sample = content.read(0, SAMPLE_BYTES)?;
    let is_whole = (sample.len() as u64) < SAMPLE_BYTES;
    let digest = match is_whole {
        true => Some(digest_of(&sample)),
        false => content.digest(digested, files.stop())?,
    };
    let kind = sniff(&sample, is_whole, &content.name);
    let media_type = media_type(&kind, &sample, &content.name);
    Ok((content, ContentSample { sample, is_whole, digest, kind, media_type }))
}
