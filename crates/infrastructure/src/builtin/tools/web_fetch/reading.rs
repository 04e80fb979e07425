//! Reads the response of a server by its bytes, its media type and its address, as text if possible.

use super::{
    AppliedResponseProcessing, FetchFormat,
    fetching::FetchedPage,
    foreign::one_line,
    json::indented,
    outline::{Heading, outline},
};
use crate::{
    builtin::{
        files::sniff::{FileKindByContent, sniff},
        text::text_encoding::{TextDetection, TextEncoding, detect},
        tool_kit::{blocking::on_blocking_thread, tool_context::ToolContext},
    },
    services::foreign_text::{CleanText, clean_text},
    web::page::{self, HtmlPageInput, PageFormat, PageLimits},
};
use bytes::Bytes;
use image::ImageFormat;
use std::time::Instant;
use toolstead_domain::{ToolFailure, invisible_characters::removal_note};

/// Maximum number of characters of a title.
const MAX_TITLE: usize = 200;
/// Maximum number of characters of a note on a page.
const MAX_NOTE: usize = 500;

/// Content of a response.
pub(super) enum ResponseContent {
    Text(FetchedText),
    Image(ImageFormat),
    /// PDF or office document, which the document reader still has to read.
    Document,
    /// Content without text, with a description of its kind.
    Binary(String),
    /// No content.
    Nothing,
}

/// Cleaned text from the web.
pub(super) struct FetchedText {
    pub(super) title: Option<String>,
    pub(super) text: String,
    pub(super) outline: Vec<Heading>,
    pub(super) notes: Vec<String>,
    pub(super) processed: AppliedResponseProcessing,
    /// `true` for a page or Markdown, which are meant to be read; `false` for data and source code.
    pub(super) is_page: bool,
}

/// Determines the kind of the response's content, and reads it if it is text. HTML pages are parsed in a separate
/// process.
pub(super) async fn read(
    fetched: &FetchedPage,
    format: FetchFormat,
    run: &ToolContext<'_>,
    deadline: Instant,
) -> Result<ResponseContent, ToolFailure> {
    let body = fetched.answer.body.clone();
    if body.is_empty() {
        return Ok(ResponseContent::Nothing);
    }
    let media_type = fetched.media_type();
    let kind = TextKind::of(&media_type, &body);
    let (charset, name) = (fetched.charset().map(str::to_owned), fetched.answer.url.path().to_owned());
    if kind == TextKind::Page
        && !matches!(format, FetchFormat::Html | FetchFormat::Raw)
        && is_text(&body, charset.as_deref())
    {
        return page(fetched, format, run, deadline).await.map(ResponseContent::Text);
    }
    let is_cut = fetched.answer.is_cut;
    on_blocking_thread(move || {
        let encoding = match (sniff(&body, true, &name), charset.and_then(|label| TextEncoding::named(&label, &body))) {
            (FileKindByContent::Image(format), _) => return Ok(ResponseContent::Image(format)),
            (FileKindByContent::Document(_), _) => return Ok(ResponseContent::Document),
            // UTF-16 looks binary in every other encoding.
            (FileKindByContent::Binary(_), Some(named)) if named.name().starts_with("utf-16") => named,
            (FileKindByContent::Binary(what), _) => return Ok(ResponseContent::Binary(what.into_owned())),
            (FileKindByContent::Text(_), Some(named)) => named,
            (FileKindByContent::Text(found), None) => found,
        };
        Ok(ResponseContent::Text(text(&body, encoding, kind, format, is_cut)))
    })
    .await
}

/// Kind of a text, by its media type or its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Page,
    Markdown,
    Json,
    Other,
}

impl TextKind {
    fn of(media_type: &str, body: &Bytes) -> Self {
        match media_type {
            "text/html" | "application/xhtml+xml" => Self::Page,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "application/json" | "text/json" => Self::Json,
            json if json.ends_with("+json") => Self::Json,
            "" | "application/octet-stream" => Self::by_beginning(body),
            _ => Self::Other,
        }
    }

    /// Returns the kind of content that the server does not declare.
    fn by_beginning(body: &Bytes) -> Self {
        let start = body.trim_ascii_start();
        let begins =
            |mark: &str| start.get(..mark.len()).is_some_and(|found| found.eq_ignore_ascii_case(mark.as_bytes()));
        match start.first() {
            Some(b'<') if begins("<!doctype html") || begins("<html") => Self::Page,
            Some(b'{' | b'[') => Self::Json,
            _ => Self::Other,
        }
    }
}

fn is_text(body: &Bytes, charset: Option<&str>) -> bool {
    let is_wide = || charset.is_some_and(|label| label.to_ascii_lowercase().starts_with("utf-16"));
    matches!(detect(body, true), TextDetection::Text(_)) || is_wide()
}

async fn page(
    fetched: &FetchedPage,
    format: FetchFormat,
    run: &ToolContext<'_>,
    deadline: Instant,
) -> Result<FetchedText, ToolFailure> {
    let form = match format {
        FetchFormat::Markdown => PageFormat::Article,
        FetchFormat::Page => PageFormat::Markdown,
        _ => PageFormat::Text,
    };
    let order = HtmlPageInput {
        html: fetched.answer.body.to_vec(),
        content_type: Some(fetched.content_type().to_owned()).filter(|named| !named.is_empty()),
        url: fetched.answer.url.clone(),
        form,
    };
    let page = page::read(run.environment().processes().helpers(), PageLimits::default(), deadline, order).await?;
    // Some notes quote the page, and all of them come from the process that read it: none is trusted.
    let mut notes: Vec<String> = page.notes.iter().map(|note| one_line(&clean_text(note), MAX_NOTE)).collect();
    notes.extend(removal_note(page.removed));
    if page.is_article && form == PageFormat::Article {
        notes.push("this is the article of the page: `format: \"page\"` gives all of it, with menus and lists".into());
    }
    if page.looks_like_script_shell {
        notes.push(
            "scripts build this page, and they are not run: content may be missing. Its site may have an API, \
             a feed or a plain page"
                .into(),
        );
    }
    notes.extend(cut_note(fetched.answer.is_cut));
    let processed =
        if form == PageFormat::Text { AppliedResponseProcessing::Text } else { AppliedResponseProcessing::Markdown };
    let title = page.title;
    let made = on_blocking_thread(move || {
        // The parser of the page has removed invisible characters.
        let text = clean_text(&page.text);
        let outline = if processed == AppliedResponseProcessing::Markdown { outline(&text) } else { Vec::new() };
        Ok((text, outline))
    });
    let (text, outline) = made.await?;
    Ok(FetchedText { title: named(title), text, outline, notes, processed, is_page: true })
}

/// Reads a text that is not a page, or the source of a page.
fn text(body: &Bytes, encoding: TextEncoding, kind: TextKind, format: FetchFormat, is_cut: bool) -> FetchedText {
    let (decoded, is_malformed) = encoding.decode(&body[encoding.mark_bytes()..]);
    let mut notes = Vec::from_iter(cut_note(is_cut));
    if is_malformed && !is_cut {
        notes.push(format!("some bytes are not valid {} and are shown as U+FFFD", encoding.name()));
    }
    let json = (kind == TextKind::Json && format != FetchFormat::Raw).then(|| indented(&decoded)).flatten();
    let processed = if json.is_some() { AppliedResponseProcessing::Json } else { AppliedResponseProcessing::Source };
    let CleanText { text, removed } = CleanText::of(json.as_deref().unwrap_or(&decoded));
    notes.extend(removal_note(removed));
    let outline = if kind == TextKind::Markdown { outline(&text) } else { Vec::new() };
    let title = outline.first().filter(|first| first.level == 1).map(|first| first.text.clone());
    let is_page = matches!(kind, TextKind::Markdown | TextKind::Page);
    FetchedText { title: named(title), text, outline, notes, processed, is_page }
}

/// Cleans a title and returns it as one line; `None` if it is empty.
fn named(title: Option<String>) -> Option<String> {
    title.map(|title| one_line(&clean_text(&title), MAX_TITLE)).filter(|title| !title.is_empty())
}

fn cut_note(is_cut: bool) -> Option<String> {
    is_cut.then(|| "the response is larger than 5 MiB: the rest was not fetched".to_owned())
}
