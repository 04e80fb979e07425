//! Pages that mean harm, read through the real child: whatever they do to it, this process goes on and gets an answer
//! within the bounds. Without the harness, because `main` must begin with the door for helpers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "it says what it ran, as the harness does")]
#![expect(clippy::disallowed_methods, reason = "it reads pages that are installed behind the tools' back")]

use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Cursor, Read},
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, Instant},
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use toolstead_infrastructure::{
    helper::{end_helpers, enter_if_helper},
    helper_port::{HelperCall, HelperError, HelperLimits, HelperPort},
    sandbox::helper::HelperLauncher,
    web::page::{HtmlPageInput, Page, PageFormat, PageLimits, read},
};
use url::Url;

/// Looks at what the child makes of a page.
type Test = fn(&Reader);

fn main() {
    enter_if_helper();
    let filter = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let reader = Reader { helpers: HelperLauncher::default(), runtime };
    let tests: [(&str, Test); 9] = [
        ("a_helper_is_bounded_in_processor_time_and_not_by_the_clock", processor_time),
        ("a_helper_that_blocks_ends_with_its_call", blocked),
        ("half_a_megabyte_of_nested_lists_ends_within_seconds_of_the_processor", nested_lists),
        ("hostile_markup_is_answered_within_the_bounds", hostile_markup),
        ("attributes_without_end_cost_the_child_alone", attributes_without_end),
        ("the_whole_page_is_read_where_its_article_costs_too_much", costly_article),
        ("a_larger_page_is_read_as_far_as_the_limit_goes", larger_page),
        ("the_charset_of_the_sender_counts", charset_of_the_sender),
        ("pages_that_are_installed_here_are_read", installed_pages),
    ];
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(filter.as_str())) {
        test(&reader);
        println!("test {name} ... ok");
    }
    end_helpers();
}

struct Reader {
    helpers: HelperLauncher,
    runtime: tokio::runtime::Runtime,
}

impl Reader {
    fn read(&self, html: impl Into<Vec<u8>>, form: PageFormat, limits: PageLimits) -> Result<Page, ToolFailure> {
        let content_type = Some("text/html".to_owned());
        let url = Url::parse("https://site.example/dir/page.html").unwrap();
        let order = HtmlPageInput { html: html.into(), content_type, url, form };
        let deadline = Instant::now() + Duration::from_secs(120);
        self.runtime.block_on(read(&self.helpers, limits, deadline, order))
    }
}

/// An input that starts when a message is received, the sender is dropped, or the timeout ends.
struct Late(mpsc::Receiver<()>, Duration, Cursor<String>);

impl Read for Late {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = self.0.recv_timeout(self.1);
        self.1 = Duration::ZERO;
        self.2.read(buffer)
    }
}

impl Reader {
    /// Validates in a helper that has one second of processor time, and waits for its input for at most this long.
    fn validate(&self, schema: &Value, wait: Duration, deadline: Option<Instant>) -> Result<Vec<u8>, HelperError> {
        // Dropped at the end of this function, which ends the wait of the input.
        let (_keep, waits) = mpsc::channel();
        let question = json!({"schema": schema, "value": {}}).to_string();
        let call = HelperCall {
            name: "schemas",
            order: HelperCall::order_of(&json!({"asserts_formats": true})).unwrap(),
            input: Box::new(Late(waits, wait, Cursor::new(question))),
            input_bytes: 1 << 20,
            answer_bytes: 1 << 20,
            bounds: HelperLimits { seconds: 1, memory_bytes: 1 << 30 },
            deadline,
        };
        self.runtime.block_on(self.helpers.call(call))
    }
}

fn processor_time(reader: &Reader) {
    let verdict = reader.validate(&json!({"type": "object"}), Duration::from_millis(2_500), None).unwrap();
    assert_eq!(verdict, b"\"Valid\"");
    let link = |at: usize| {
        let before = json!({"$ref": format!("#/$defs/l{}", at - 1)});
        (format!("l{at}"), json!({"allOf": [before, before]}))
    };
    let mut links: serde_json::Map<String, Value> = (1..=60).map(link).collect();
    links.insert("l0".into(), json!({"type": "object"}));
    let error = reader.validate(&json!({"$ref": "#/$defs/l60", "$defs": links}), Duration::ZERO, None).unwrap_err();
    assert_eq!(error.to_string(), "the helper used more than 1 second of processor time");
}

fn blocked(reader: &Reader) {
    let deadline = Instant::now() + Duration::from_secs(2);
    let error = reader.validate(&json!({}), Duration::from_secs(600), Some(deadline)).unwrap_err();
    assert!(matches!(error, HelperError::Late), "{error}");
}

fn nested_lists(reader: &Reader) {
    // Without a bound of depth this takes minutes of the processor, and a debug build is many times slower than a release.
    let limits = PageLimits { seconds: 5, ..PageLimits::default() };
    let html = format!("{}the end", "<ul><li>".repeat(64 << 10));
    let page = reader.read(html.clone(), PageFormat::Markdown, limits.clone()).unwrap();
    assert!(page.text.ends_with("the end"), "{:?}", page.notes);
    assert!(reader.read(html, PageFormat::Article, limits).unwrap().text.ends_with("the end"));
}

fn hostile_markup(reader: &Reader) {
    let megabyte = |part: &str| part.repeat((1 << 20) / part.len());
    let pages = [
        ("one text", "x".repeat(4 << 20)),
        ("tags", megabyte("<a>")),
        ("ends", megabyte("</p>")),
        ("comments", megabyte("<!--x-->")),
        ("an open comment", format!("<p>first<!--{}", megabyte("- "))),
        ("an open script", format!("<p>first<script>{}", megabyte("<b>"))),
        ("formats", (0..40_000).map(|n| format!("<div><font id={n}></div>")).collect()),
        ("rows", megabyte("<table><tr><td rowspan=60000 colspan=60000>x")),
        ("quotes", megabyte("<blockquote>")),
        ("styles of pictures", megabyte("<svg><style>")),
        ("entities", megabyte("&amp;&#x41;&nosuch;")),
        ("nulls", megabyte("\0")),
        ("unclosed", megabyte("<p><b><div><table><li>")),
    ];
    for (name, html) in pages {
        for form in [PageFormat::Markdown, PageFormat::Text] {
            match reader.read(html.clone(), form, PageLimits { seconds: 60, ..PageLimits::default() }) {
                Ok(page) => assert!(page.text.len() <= PageLimits::default().text_bytes, "{name}"),
                Err(failure) => panic!("{name}: {failure}"),
            }
        }
    }
}

fn attributes_without_end(reader: &Reader) {
    let html: String =
        std::iter::once("<p>first<p ".to_owned()).chain((0..400_000).map(|n| format!("a{n} "))).collect();
    let limits = PageLimits { seconds: 1, ..PageLimits::default() };
    match reader.read(html, PageFormat::Markdown, limits.clone()) {
        Ok(page) => assert!(page.text.starts_with("first"), "{}", page.text),
        Err(failure) => assert_eq!(failure.kind, ErrorKind::Timeout, "{failure}"),
    }
    assert_eq!(reader.read("<p>next", PageFormat::Markdown, limits).unwrap().text, "next");
}

fn costly_article(reader: &Reader) {
    let paragraph = "<p>Words of an article, with commas, and with more words, so that it is one, and is long enough, \
                     which takes more of them than fit on one line, and then some, and then the last ones of all.</p>";
    let html = paragraph.repeat(30);
    let limits = PageLimits { memory_bytes: 1 << 30, ..PageLimits::default() };
    let page = reader.read(html, PageFormat::Article, limits).unwrap();
    assert!(page.is_article, "{:?}", page.notes);
    assert!(
        reader.read("<ul><li><a href=/x>x</a></ul>", PageFormat::Article, PageLimits::default()).unwrap().notes[0]
            .contains("no article")
    );
    // So little memory that nothing is read.
    let limits = PageLimits { memory_bytes: 16 << 20, ..PageLimits::default() };
    let failure = reader.read(paragraph.repeat(30_000), PageFormat::Article, limits).unwrap_err();
    assert!(matches!(failure.kind, ErrorKind::TooLarge | ErrorKind::ExecutionFailed), "{failure}");
}

fn larger_page(reader: &Reader) {
    let limits = PageLimits { page_bytes: 1_000, ..PageLimits::default() };
    let page = reader.read("<p>words</p>".repeat(1_000), PageFormat::Text, limits).unwrap();
    assert!(page.text.starts_with("words\n\nwords") && page.text.len() < 1_000, "{}", page.text);
    assert!(page.notes[0].contains("larger than the 1000 bytes"), "{:?}", page.notes);
}

fn charset_of_the_sender(reader: &Reader) {
    let url = Url::parse("https://site.example/").unwrap();
    let content_type = Some("text/html; Charset=\"Shift_JIS\"".to_owned());
    let html = b"<meta charset=utf-8><p>\x83\x5c\x81\x5b\x83\x58".to_vec();
    let order = HtmlPageInput { html, content_type, url, form: PageFormat::Text };
    let deadline = Instant::now() + Duration::from_secs(60);
    let page = reader.runtime.block_on(read(&reader.helpers, PageLimits::default(), deadline, order)).unwrap();
    assert_eq!(page.text, "ソース");
}

/// Pages of the documentation of whatever is installed, which nobody wrote for this test.
fn installed_pages(reader: &Reader) {
    let mut pages = Vec::new();
    collect(Path::new("/usr/share/doc"), 0, &mut pages);
    pages.sort();
    pages.truncate(60);
    for file in &pages {
        let Ok(html) = fs::read(file) else { continue };
        let limits = PageLimits { seconds: 60, ..PageLimits::default() };
        let page = reader
            .read(html, PageFormat::Markdown, limits)
            .unwrap_or_else(|failure| panic!("{}: {failure}", file.display()));
        assert!(!page.text.trim().is_empty(), "{}", file.display());
        for heading in &page.outline {
            let line = page.text.lines().nth(heading.line - 1).unwrap();
            assert!(line.contains("# "), "{} {heading:?} {line:?}", file.display());
        }
        for tag in ["<div", "<script", "</p>", "<table"] {
            assert!(!outside_of_code(&page.text).contains(tag), "{} {tag}", file.display());
        }
    }
    println!("{} pages below /usr/share/doc were read", pages.len());
}

fn collect(folder: &Path, depth: usize, pages: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < 4 => collect(&path, depth + 1, pages),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|extension| extension == "html") => {
                pages.push(path)
            }
            _ => {}
        }
    }
}

/// The text without its blocks and spans of code.
fn outside_of_code(markdown: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            text.extend(line.split('`').step_by(2).chain(["\n"]));
        }
    }
    text
}
