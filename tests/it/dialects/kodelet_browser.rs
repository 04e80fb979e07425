//! Kodelet's browser tools on a real page: the names of its document and those of its code, over MCP and on the command
//! line. Where it was wrong, ours is right: the first element can be clicked, a number stays with its element, `clear` is
//! true unless it is said, and no file is a page.

use super::Session;
use crate::{
    binaries::{Home, stderr, stdout},
    web_server::{Reply, TestServer},
};
use serde_json::{Value, json};
use tokio::task::block_in_place;

const FORM: &str = r#"<!doctype html><title>Form</title>
<button onclick="document.body.insertAdjacentHTML('afterbegin', '<p>News</p><button>More</button>'); grown = true">Grow</button>
<h1>Our form</h1><a href="/next">Next</a><input name=who placeholder="Your name"><input type=password name=secret value=hidden>
<button onclick="said.textContent = 'Thanks, ' + document.querySelector('[name=who]').value">Buy</button><p id=said></p>"#;

struct Place {
    site: TestServer,
    config: String,
    session: Session,
}

impl Place {
    async fn new(dialect: Option<&'static str>) -> Self {
        let site = TestServer::plain(|seen| match seen.path() {
            "/" => Reply::html(FORM),
            "/next" => Reply::html("<title>Next</title><p>Here</p>"),
            _ => Reply::html("").status(404),
        })
        .await;
        let port = site.address().port();
        let config = format!(
            "[web]\nallow_private_hosts = [\"127.0.0.1:{port}\"]\n[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\n"
        );
        let session = block_in_place(|| Session::under(dialect, &config, &[]));
        Self { site, config, session }
    }

    fn url(&self) -> String {
        self.site.url("/").to_string()
    }

    fn answer(&self, name: &str, arguments: &Value) -> Value {
        block_in_place(|| self.session.call(name, arguments))
    }

    /// The first block of a success that is text alone.
    #[track_caller]
    fn says(&self, name: &str, arguments: Value) -> String {
        let answer = self.answer(name, &arguments);
        let result = &answer["result"];
        let is_plain = result["isError"] != true && result.get("structuredContent").is_none();
        assert!(is_plain, "`{name}` {arguments} answered {answer}");
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    #[track_caller]
    fn fails(&self, name: &str, arguments: Value) -> String {
        let answer = self.answer(name, &arguments);
        assert_eq!(answer["result"]["isError"], true, "`{name}` {arguments} answered {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// The number of the line that holds this.
#[track_caller]
fn id(page: &str, part: &str) -> u64 {
    let line = page.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {page}"));
    line.split(" id=").nth(1).unwrap().split(['>', '/']).next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kodelet_calls_can_control_a_browser() {
    for (dialect, prefix) in [(Some("kodelet"), ""), (Some("kodelet"), "browser_"), (None, "")] {
        let place = Place::new(dialect).await;
        let named = |name: &str| format!("{prefix}{name}");
        let url = place.url();
        let answer = place.says(&named("navigate"), json!({"url": url, "timeout": 30_000}));
        assert_eq!(answer, format!("Navigated to {url}\nTitle: Form"));
        let page = place.says(&named("get_page"), json!({}));
        let begin = format!("URL: {url}\nTitle: Form\nHTML Length: ");
        assert!(
            page.starts_with(&begin) && page.contains("\nTruncated: false\n\n<button id=1>Grow</button>\n"),
            "{page}"
        );
        for line in [
            "<text>Our form</text>".to_owned(),
            format!("<link id=2>Next [{url}next]</link>"),
            "<input id=3>type=text placeholder=\"Your name\" name=\"who\"</input>".to_owned(),
            "<input id=4>type=password name=\"secret\"</input>".to_owned(),
            "<button id=5>Buy</button>".to_owned(),
        ] {
            assert!(page.lines().any(|answer| answer == line), "{line}: {page}");
        }
        assert!(!page.contains("hidden"), "{page}");
        // The first element, which moves all others.
        assert_eq!(place.says(&named("click"), json!({"element_id": 1, "timeout": 0})), "Element clicked successfully");
        for text in ["Bob", "Ann"] {
            let typed = json!({"element_id": id(&page, "\"who\""), "text": text});
            assert_eq!(place.says(&named("type"), typed), "Text typed successfully");
        }
        place.says(&named("click"), json!({"element_id": id(&page, "Buy"), "timeout": 10_000}));
        assert_eq!(place.says(&named("wait_for"), json!({"timeout": 30_000})), "Wait condition met successfully");
        let page = place.says(&named("get_page"), json!({}));
        assert!(page.contains("<text>Thanks, Ann</text>") && page.contains("<text>News</text>"), "{page}");
        let shot = place.says(&named("screenshot"), json!({"full_page": false, "format": "png"}));
        let (path, size) = shot.strip_prefix("Screenshot saved to ").unwrap().split_once(" (").unwrap();
        let sides: Vec<u32> = size.trim_end_matches(')').split('x').map(|side| side.parse().unwrap()).collect();
        assert!(path.starts_with('o') && sides.len() == 2 && sides.iter().all(|side| *side > 100), "{shot}");

        place.says(&named("click"), json!({"element_id": id(&page, "Next")}));
        let stale = place.fails(&named("click"), json!({"element_id": id(&page, "Buy")}));
        assert!(stale.starts_with("Error: ") && stale.contains("take a new snapshot"), "{stale}");
        let unknown = place.fails(&named("click"), json!({"element_id": 999}));
        assert!(unknown.starts_with("Error: the page has no element 999"), "{unknown}");
        let file = place.fails(&named("navigate"), json!({"url": "file:///etc/passwd"}));
        assert!(file.starts_with("Error: ") && file.contains("only http and https"), "{file}");
        let nothing = place.answer(&named("click"), &json!({"element_id": 0}));
        assert!(nothing.to_string().contains("element_id"), "{nothing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kodelet_dialect_lists_browser_tools_by_their_documented_names() {
    let place = Place::new(Some("kodelet")).await;
    let listed = block_in_place(|| place.session.list());
    let tool = |name: &str| listed.iter().find(|tool| tool["name"] == name);
    for (name, required, properties) in [
        ("navigate", json!(["url"]), &["url", "timeout"][..]),
        ("get_page", Value::Null, &[]),
        ("click", json!(["element_id"]), &["element_id", "timeout"]),
        ("type", json!(["element_id", "text"]), &["element_id", "text", "clear", "submit", "timeout"]),
        ("wait_for", Value::Null, &["timeout"]),
        ("screenshot", Value::Null, &["full_page", "format"]),
    ] {
        let schema = &tool(name).unwrap_or_else(|| panic!("`{name}` is not listed"))["inputSchema"];
        let message: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((&schema["required"], message.as_slice()), (&required, properties), "{name}");
        assert!(tool(&format!("browser_{name}")).is_none(), "`{name}` stands there twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_on_the_command_line_ends_with_its_call() {
    let place = Place::new(Some("kodelet")).await;
    let home = Home::new();
    let config = home.config(&place.config).to_string_lossy().into_owned();
    let call = |name: &str, arguments: Value| {
        let words = ["call", "--dialect", "kodelet", "--config", &config, name, &arguments.to_string()];
        let output = block_in_place(|| home.run(&words));
        (output.status.success(), format!("{}{}", stdout(&output), stderr(&output)))
    };
    let (done, answer) = call("navigate", json!({"url": place.url()}));
    assert!(done && answer.trim_end() == format!("Navigated to {}\nTitle: Form", place.url()), "{answer}");
    let (done, answer) = call("get_page", json!({}));
    assert!(!done && answer.contains("Error: no page is open in this session"), "{answer}");
}
