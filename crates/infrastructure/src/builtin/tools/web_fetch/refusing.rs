//! Converts an error response into a failure.

use super::{
    FetchFormat,
    fetching::FetchedPage,
    foreign::one_line,
    reading::{self, ResponseContent},
};
use crate::{
    builtin::tool_kit::tool_context::ToolContext, services::foreign_text::clean_text, web::web_client::WebResponse,
};
use http::{StatusCode, header};
use std::time::Instant;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum number of characters that are quoted from an error response.
const TOLD: usize = 500;
const TOLD_OF_A_WAIT: usize = 40;

/// Returns the failure for an error status, with the text of the response.
pub(super) async fn refused(fetched: &FetchedPage, run: &ToolContext<'_>, deadline: Instant) -> ToolFailure {
    let WebResponse { url, status, .. } = &fetched.answer;
    let said = match reading::read(fetched, FetchFormat::Text, run, deadline).await {
        Ok(ResponseContent::Text(text)) => one_line(&text.text, TOLD),
        _ => String::new(),
    };
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let mut message = format!("`{url}` returned HTTP {}{reason}", status.as_u16());
    if !said.is_empty() {
        message.push_str(&format!(". Its page says (data from the web): \"{said}\""));
    }
    let wait = fetched.header(header::RETRY_AFTER);
    let (kind, next) = match *status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            (ErrorKind::NotFound, "Check the address; its site may have a search or a list of pages.".to_owned())
        }
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            (ErrorKind::AuthRequired, "Pages behind a login cannot be fetched.".to_owned())
        }
        StatusCode::TOO_MANY_REQUESTS if !wait.is_empty() => (
            ErrorKind::RateLimited,
            format!("Try again later: the server sent `Retry-After: {}`.", one_line(&clean_text(wait), TOLD_OF_A_WAIT)),
        ),
        StatusCode::TOO_MANY_REQUESTS => (ErrorKind::RateLimited, "Try again later.".to_owned()),
        status if status.is_server_error() => {
            (ErrorKind::UpstreamHttp, "The server has a problem: try again later.".to_owned())
        }
        _ => (ErrorKind::UpstreamHttp, "The server refuses it: use another source.".to_owned()),
    };
    ToolFailure::new(kind, message).next(next)
}
