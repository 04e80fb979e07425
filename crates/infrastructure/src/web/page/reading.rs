//! Reads pages in a child process, the runtime's side.

use super::{HELPER, Page, PageFormat, PageLimits, PageRenderRequest};
use crate::{
    helper_port::{HelperCall, HelperError, HelperLimits, HelperPort, counted_seconds},
    web::charset::charset_of,
};
use std::{fmt, io::Cursor, time::Instant};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Maximum number of bytes of the child's answer apart from the text of the page: outline, links and notes.
const BESIDE_THE_TEXT: u64 = 8 << 20;

/// A page to read.
pub struct HtmlPageInput {
    /// Content in bytes.
    pub html: Vec<u8>,
    /// `Content-Type` of the response.
    pub content_type: Option<String>,
    /// Address of the page, to which its links are relative.
    pub url: Url,
    /// Requested form.
    pub form: PageFormat,
}

impl fmt::Debug for HtmlPageInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HtmlPageInput")
            .field("url", &self.url.as_str())
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// Parses a page in a helper process. If the helper ends early or runs out of time or memory while it searches
/// for the article, another helper reads the whole page.
///
/// # Errors
/// A failure for the model. Whatever the page does to the helper, this process continues. With
/// [`NoHelpers`](crate::helper_port::NoHelpers) nothing is parsed.
pub async fn read(
    helpers: &dyn HelperPort,
    limits: PageLimits,
    deadline: Instant,
    page: HtmlPageInput,
) -> Result<Page, ToolFailure> {
    let charset = page.content_type.as_deref().and_then(charset_of).map(str::to_owned);
    let mut order = PageRenderRequest { form: page.form, charset, url: page.url, text_bytes: limits.text_bytes };
    let html = Cursor::new(bytes::Bytes::from(page.html));
    let is_cut = html.get_ref().len() as u64 > limits.page_bytes;
    let mut notes = Vec::new();
    let answer = match asked(helpers, &limits, deadline, &order, html.clone()).await {
        Err(
            HelperError::OutOfProcessorTime(_)
            | HelperError::Late
            | HelperError::OutOfMemory
            | HelperError::Died { .. },
        ) if order.form == PageFormat::Article => {
            notes.push("the article could not be separated from the rest of the page, so this is all of it".to_owned());
            order.form = PageFormat::Markdown;
            asked(helpers, &limits, deadline, &order, html).await
        }
        answer => answer,
    };
    let answer = answer.map_err(|error| failed(&order.url, error))?;
    let read = tokio::task::spawn_blocking(move || serde_json::from_slice::<Option<Page>>(&answer));
    let mut page = match read.await.map(|read| read.ok().flatten()) {
        Ok(Some(page)) => page,
        _ => {
            let message = format!("the page {} could not be read: the answer of the reader is invalid", order.url);
            return Err(ToolFailure::new(ErrorKind::Internal, message));
        }
    };
    if is_cut {
        notes.push(format!(
            "the page is larger than the {} bytes that are read, and its end is missing",
            limits.page_bytes
        ));
    }
    page.notes.extend(notes);
    Ok(page)
}

async fn asked(
    helpers: &dyn HelperPort,
    limits: &PageLimits,
    deadline: Instant,
    order: &PageRenderRequest,
    html: Cursor<bytes::Bytes>,
) -> Result<Vec<u8>, HelperError> {
    let call = HelperCall {
        name: HELPER,
        order: HelperCall::order_of(order)?,
        input: Box::new(html),
        input_bytes: limits.page_bytes,
        // JSON escapes a character as six bytes at most.
        answer_bytes: BESIDE_THE_TEXT + 6 * limits.text_bytes as u64,
        bounds: HelperLimits { seconds: limits.seconds, memory_bytes: limits.memory_bytes },
        deadline: Some(deadline),
    };
    helpers.call(call).await
}

/// Converts the error of the helper process into the failure of the tool call, and logs a crash.
fn failed(url: &Url, error: HelperError) -> ToolFailure {
    const RAW: &str = "Request it raw, or fetch another page on the same subject.";
    let used_up: String;
    let (kind, reason, next) = match &error {
        HelperError::NoSandbox => (
            ErrorKind::Unavailable,
            "the embedding application was built without the feature `sandbox`, which parses pages",
            RAW,
        ),
        HelperError::NoDoor => (
            ErrorKind::Unavailable,
            "the embedding application does not support it: its `main` does not begin with `enter_if_helper()`",
            RAW,
        ),
        HelperError::NotStarted(_) => (
            ErrorKind::Unavailable,
            "the process that reads pages did not start",
            "Try again; if it fails again, the operator finds the reason in Toolstead's log.",
        ),
        HelperError::OutOfProcessorTime(seconds) => {
            used_up = format!("the reader used more than {} of processor time", counted_seconds(*seconds));
            (ErrorKind::Timeout, used_up.as_str(), RAW)
        }
        HelperError::Late => (ErrorKind::Timeout, "the reader did not answer in time", RAW),
        HelperError::OutOfMemory => (ErrorKind::TooLarge, "the reader ran out of memory", RAW),
        HelperError::AnswerTooLarge(_) => (ErrorKind::TooLarge, "its text is too large", RAW),
        HelperError::Died { .. } => (
            ErrorKind::ExecutionFailed,
            "the reader crashed",
            "The page may be malicious: do not try again, look for another page on the same subject.",
        ),
        HelperError::Input(_) => (ErrorKind::Internal, "its content could not be passed to the reader", RAW),
    };
    if let HelperError::Died { exit, stderr } = &error {
        tracing::warn!(%exit, stderr = stderr.trim_end(), "the process that reads a page failed");
    }
    ToolFailure::new(kind, format!("the page {url} could not be read: {reason}")).next(next).caused_by(error)
}
