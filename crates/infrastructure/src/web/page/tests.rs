//! Pages of several kinds as Markdown and as text, and hostile pages. `tests/pages.rs` reads those that may crash a
//! process, through the child.
#![expect(clippy::disallowed_methods, reason = "tests read their fixtures behind the tools' back")]

use super::*;
use crate::helper_port::NoHelpers;
use proptest::prelude::*;
use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};
use toolstead_domain::error_kind::ErrorKind;

fn order(form: PageFormat) -> PageRenderRequest {
    let url = Url::parse("https://site.example/dir/page.html").unwrap();
    PageRenderRequest { form, charset: None, url, text_bytes: 2 << 20 }
}

fn read(html: impl AsRef<[u8]>, form: PageFormat) -> Page {
    page(html.as_ref(), &order(form))
}

fn markdown(html: &str) -> String {
    read(html, PageFormat::Markdown).text
}

/// Returns a page with all its facts.
fn shown(page: &Page) -> String {
    let mut shown = String::new();
    let _ = writeln!(shown, "title: {}", page.title.as_deref().unwrap_or("-"));
    for note in &page.notes {
        let _ = writeln!(shown, "note: {note}");
    }
    if page.removed > 0 {
        let _ = writeln!(shown, "removed: {} invisible characters", page.removed);
    }
    if page.looks_like_script_shell {
        shown.push_str("looks like the shell of an application\n");
    }
    for Heading { level, text, line } in &page.outline {
        let _ = writeln!(shown, "heading {level} in line {line}: {text}");
    }
    for Link { text, url } in &page.links {
        let _ = writeln!(shown, "link: {text} -> {url}");
    }
    let _ = write!(shown, "\n{}\n", page.text);
    shown
}

#[test]
fn fixture_pages_render_as_the_stored_expected_output() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/pages");
    let found_folder = std::env::temp_dir().join("toolstead-pages");
    fs::create_dir_all(&found_folder).unwrap();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".html")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() >= 40, "{names:?}");
    let mut differing = Vec::new();
    let mut articles = 0;
    for name in names {
        let html = fs::read(folder.join(format!("{name}.html"))).unwrap();
        for (form, extension) in
            [(PageFormat::Markdown, "md"), (PageFormat::Text, "txt"), (PageFormat::Article, "article.md")]
        {
            let page = read(&html, form);
            for heading in &page.outline {
                let line = page.text.lines().nth(heading.line - 1).unwrap();
                assert!(
                    line.contains(&format!("{} ", "#".repeat(heading.level.into()))),
                    "{name}: {heading:?} {line:?}"
                );
            }
            if form == PageFormat::Article {
                articles += usize::from(page.is_article);
                if !page.is_article {
                    assert_eq!(page.text, read(&html, PageFormat::Markdown).text, "{name}");
                    continue;
                }
            }
            let (found, file) = (shown(&page), format!("{name}.{extension}"));
            if fs::read_to_string(folder.join(&file)).ok().as_ref() != Some(&found) {
                fs::write(found_folder.join(&file), found).unwrap();
                differing.push(file);
            }
        }
    }
    assert!(
        differing.is_empty(),
        "{differing:?} differ. What was found stands in {}: look at it, and copy it to {} where it is right",
        found_folder.display(),
        folder.display()
    );
    assert!(articles >= 2, "{articles} articles were found");
}

#[test]
fn the_charset_of_the_response_overrides_that_of_the_page() {
    let html = "<meta charset=utf-8><p>\u{f6}".replace('\u{f6}', "?");
    let bytes: Vec<u8> = html.bytes().map(|byte| if byte == b'?' { 0xf6 } else { byte }).collect();
    let order = |charset: &str| PageRenderRequest { charset: Some(charset.into()), ..order(PageFormat::Text) };
    assert_eq!(page(&bytes, &order("iso-8859-2")).text, "ö");
    assert_eq!(page(&bytes, &order("no-such-charset")).text, "\u{fffd}");
    assert_eq!(page("\u{feff}<p>ö".as_bytes(), &order("iso-8859-1")).text, "ö");
}

#[test]
fn link_addresses_in_text_follow_the_requested_link_style() {
    let tree = tree::parse(b"<div class='main box'><p>See <a href='/a'>this</a></p></div><div>other</div>", None);
    let node = tree.select(tree.root(), "div", "box").next().unwrap();
    let url = Url::parse("https://site.example/").unwrap();
    assert_eq!(text_below(&tree, node, &url, LinkStyle::Space), "See this https://site.example/a");
    assert_eq!(text_below(&tree, node, &url, LinkStyle::Parentheses), "See this (https://site.example/a)");
    assert_eq!(tree.text_of(node), "See this");
    assert_eq!(tree.select(tree.root(), "div", "").count(), 2);
    assert_eq!(tree.select(tree.root(), "a", "").find_map(|link| tree.attribute(link, "href")), Some("/a"));
}

#[test]
fn an_unusable_base_address_is_ignored() {
    for base in ["data:text/html,x", "http://[", &format!("https://x.example/{}/", "y".repeat(3_000))] {
        let html = format!("<base href='{base}'><a href='z'>link</a>");
        assert_eq!(markdown(&html), "[link](https://site.example/dir/z)", "{base}");
    }
}

#[test]
fn page_text_beyond_the_limit_is_cut_with_a_note() {
    let html = "<p>some words</p>".repeat(1_000);
    for form in [PageFormat::Markdown, PageFormat::Text] {
        let cut = page(html.as_bytes(), &PageRenderRequest { text_bytes: 1_000, ..order(form) });
        assert!((900..=1_000).contains(&cut.text.len()), "{}", cut.text.len());
        assert!(cut.notes[0].contains("text of the page is too long"), "{:?}", cut.notes);
    }
    // One paragraph alone, and an address that each link repeats.
    let links = format!("<base href='https://x.example/{}/'>{}", "y".repeat(1_900), "<a href=z>z</a> ".repeat(20_000));
    let cells = format!("<table>{}</table>", format!("<tr><td rowspan=1000>{}<td>b", "a".repeat(2_000)).repeat(3_000));
    for html in ["x ".repeat(3 << 20), links, cells] {
        for form in [PageFormat::Markdown, PageFormat::Text] {
            assert!(read(&html, form).text.len() <= 2 << 20, "{}", &html[..40]);
        }
    }
}

#[test]
fn hostile_markup_gives_bounded_text_and_reports_a_missing_end() {
    let size = 128 << 10;
    let filled = |part: &str| part.repeat(size / part.len());
    let numbered = |part: &str| (0..size / (part.len() + 6)).map(|n| part.replace('%', &n.to_string())).collect();
    let pages: [String; 12] = [
        filled("<ul><li>"),
        filled("<div>"),
        filled("<b><i><u>"),
        filled("<table><tr><td>"),
        filled("<ins><li>x"),
        filled("<blockquote><p>x"),
        filled("<a href=x><b>"),
        filled("<p></b></i></a></div>"),
        filled("<dl><dd><h1>"),
        numbered("<div><font id=%>x</div>"),
        numbered("<p><b id=%>"),
        filled("<select><option>"),
    ];
    for html in pages {
        let html = format!("{html}the end");
        for form in [PageFormat::Markdown, PageFormat::Text] {
            let page = read(&html, form);
            assert!(page.text.len() <= 2 << 20);
            let is_cut = page.notes.iter().any(|note| note.contains("its end is missing"));
            assert!(is_cut || page.text.contains("the end"), "{} {:?}", &html[..30], page.notes);
        }
    }
}

#[test]
fn the_depth_of_the_parsed_tree_is_limited_as_in_browsers() {
    let tree = tree::parse("<div><span>".repeat(20_000).as_bytes(), None);
    let deepest = tree.descendants(tree.root()).last().unwrap();
    let depth = std::iter::successors(Some(deepest), |node| tree.parent(*node)).count();
    assert!((500..530).contains(&depth), "{depth}");
    // Elements that are closed make room again.
    let html = format!("{}{}<h1>after</h1>", "<div>".repeat(2_000), "</div>".repeat(2_000));
    assert_eq!(markdown(&html), "# after");
}

/// Pieces of pages, valid and invalid.
fn piece() -> impl Strategy<Value = String> {
    let tags = "a abbr b base blockquote body br caption code col dd details div dl dt em figure form frameset h1 h3 head hr \
                html i iframe img input li math mi ol option p plaintext pre q ruby rt s script select style sub summary sup \
                svg table tbody td template textarea tfoot th thead title tr u ul noscript";
    let tags: Vec<&str> = tags.split_whitespace().collect();
    let attributes = [
        "",
        " href=/x",
        " href='#y'",
        " colspan=3",
        " rowspan=2",
        " class='language-rust'",
        " hidden",
        " src=i.png alt='a|b'",
        " start=-3 reversed",
        " style='display:none'",
        " title=\"]\"",
    ];
    prop_oneof![
        4 => (prop::sample::select(tags.clone()), prop::sample::select(attributes.to_vec()))
            .prop_map(|(tag, attributes)| format!("<{tag}{attributes}>")),
        3 => prop::sample::select(tags).prop_map(|tag| format!("</{tag}>")),
        3 => "[ a-z\\n*_`#|<>&\\[\\]()!~\\\\\u{200b}\u{e0041}é日-]{0,12}",
    ]
}

proptest! {
    #[test]
    fn random_markup_gives_correct_outlines_and_no_invisible_characters(pieces in prop::collection::vec(piece(), 0..60)) {
        let html = pieces.concat();
        for form in [PageFormat::Markdown, PageFormat::Text, PageFormat::Article] {
            let page = read(&html, form);
            for heading in &page.outline {
                let line = page.text.lines().nth(heading.line - 1).unwrap_or_default();
                prop_assert!(line.contains('#'), "{html:?} {:?} {heading:?}", page.text);
            }
            let is_seen = |char: char| matches!(char, '\n' | '\t') || !char.is_control();
            prop_assert!(page.text.chars().all(is_seen), "{html:?} {:?}", page.text);
            prop_assert!(!page.text.contains(['\u{200b}', '\u{e0041}']), "{html:?} {:?}", page.text);
        }
    }

    #[test]
    fn random_bytes_render_within_the_text_limit(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        text_bytes in 0_usize..200,
    ) {
        for form in [PageFormat::Markdown, PageFormat::Text, PageFormat::Article] {
            let page = page(&bytes, &PageRenderRequest { text_bytes, ..order(form) });
            prop_assert!(page.text.len() <= text_bytes, "{} {text_bytes}", page.text.len());
        }
    }

    #[test]
    fn a_page_without_tags_renders_as_its_words(text in "[a-z0-9 .,é日]{0,80}") {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(&read(&text, PageFormat::Text).text, &words);
        prop_assert_eq!(tree::parse(text.as_bytes(), None).text_of(tree::parse(b"", None).root()), words);
    }

    #[test]
    fn markdown_rendering_keeps_all_words_of_the_text(text in "[a-z]{1,8}([ *_`#|<&\\[\\]()!~\\\\.-]{1,4}[a-z]{1,8}){0,6}") {
        let html = format!("<p>{}</p>", text.replace('&', "&amp;").replace('<', "&lt;"));
        let words = |text: &str| -> Vec<String> {
            text.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(Into::into).collect()
        };
        prop_assert_eq!(words(&markdown(&html)), words(&text));
    }
}

#[tokio::test]
async fn without_helper_processes_the_error_names_the_sandbox_feature() {
    for form in [PageFormat::Article, PageFormat::Markdown, PageFormat::Text] {
        let url = Url::parse("https://site.example/").unwrap();
        let order = HtmlPageInput { html: b"<p>words</p>".to_vec(), content_type: None, url, form };
        let deadline = Instant::now() + Duration::from_secs(60);
        let failure = super::read(&NoHelpers, PageLimits::default(), deadline, order).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Unavailable);
        assert!(failure.message.contains("feature `sandbox`"), "{failure}");
    }
}
