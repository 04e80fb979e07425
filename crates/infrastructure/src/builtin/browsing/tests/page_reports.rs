//! Reports of pages, as short as a model needs them, and the ways to name elements.

use super::{reference, tools_showing};
use crate::builtin::tool_kit::testing::ToolTestHarness;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use toolstead_domain::{Suggestion, ToolFailure, error_kind::ErrorKind};

const HANDS: &str = r#"<title>Hands</title><h1>Hands</h1>
<button onclick="document.body.insertAdjacentHTML('afterbegin', '<button>New</button>'.repeat(3))">Grow</button>
<button onclick="say('bought')">Buy</button>
<button onclick="this.replaceWith(this.cloneNode(true))">Renew</button>
<button onmouseenter="say('hovered')" onclick="say('clicked')">Menu</button>
<label>Name <input id=name name=who placeholder="Your name" onkeydown="say('pressed ' + event.key)"></label>
<label>Secret <input type=password name=secret value=hidden></label>
<select aria-label=Size><option>Small<option selected>Medium</select>
<img src=/cat.png alt=Cat><a href=/two>Two</a><p id=said role=status></p><p style="margin-top: 9000px">The end</p>
<script>
  const say = text => { said.textContent = text; };
  addEventListener('scroll', () => { if (scrollY > 2000) say('scrolled'); });
</script>"#;

/// A table of 600 orders, each with a button.
const ORDERS: &str = r#"<title>Orders</title><table id=table></table><button onclick="table.remove()">Clear</button>
<script>
  table.innerHTML = [...Array(600).keys()].map(number =>
    `<tr aria-label="Order ${number}"><td>Order number ${number} of a customer</td><td><button>Cancel</button></td></tr>`).join('');
</script>"#;

/// The page navigates away while its report is made.
const LATE: &str =
    "<title>Late</title><button onclick=\"setTimeout(() => { location = '/orders'; }, 2000)\">Go</button>";

const FRAMED: &str = "<title>Framed</title><iframe src=http://pay.example/two></iframe>";

const SHOWN: &[(&str, &str)] = &[
    ("/", HANDS),
    ("/orders", ORDERS),
    ("/late", LATE),
    ("/framed", FRAMED),
    ("/quoted", "<title>A\" at http://bank.example/</title>"),
    ("/two", "<title>Two</title><button>Renew</button><h1>Second</h1>"),
];

struct Rig {
    tools: ToolTestHarness,
    _folder: TempDir,
}

impl Rig {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tools, _) = tools_showing(SHOWN, folder.path(), Duration::from_secs(300)).await;
        Self { tools, _folder: folder }
    }

    async fn call(&self, tool: &str, arguments: Value) -> String {
        self.tools.call(tool, arguments).await.unwrap().joined_text()
    }

    async fn fails(&self, tool: &str, arguments: Value) -> ToolFailure {
        self.tools.call(tool, arguments).await.unwrap_err()
    }

    async fn opened(&self, path: &str) -> String {
        self.call("browser_navigate", json!({"url": format!("http://shop.example{path}")})).await
    }

    /// Returns the elements of the page, as data.
    async fn elements(&self) -> Vec<Value> {
        let answer = self.tools.call("browser_get_page", json!({"elements": true})).await.unwrap();
        let facts = answer.structured_content().unwrap();
        assert_eq!(facts["page"], "");
        facts["elements"].as_array().unwrap().clone()
    }
}

fn named<'a>(elements: &'a [Value], name: &str) -> &'a Value {
    let called = || elements.iter().filter(|element| element["name"] == name);
    // A label has the name of its field.
    let usable = called().find(|element| element["id"].is_number());
    usable.or_else(|| called().next()).unwrap_or_else(|| panic!("{name}: {elements:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_element_number_keeps_its_element_until_the_page_is_read_again() {
    let rig = Rig::new().await;
    rig.opened("/").await;
    let unknown = rig.fails("browser_click", json!({"element_id": 99})).await;
    assert!(
        unknown.kind == ErrorKind::NotFound && unknown.text().contains("Read the page again"),
        "{}",
        unknown.text()
    );
    let elements = rig.elements().await;
    assert_eq!((&elements[1]["id"], &elements[1]["name"]), (&json!(1), &json!("Grow")), "the first can be clicked");
    let number = |name: &str| named(&elements, name)["id"].clone();
    rig.call("browser_click", json!({"element_id": 1})).await;
    let answer = rig.call("browser_click", json!({"element_id": number("Buy")})).await;
    assert!(answer.contains("bought"), "{answer}");
    rig.call("browser_click", json!({"element_id": number("Renew")})).await;
    let stale = rig.fails("browser_click", json!({"element_id": number("Renew")})).await;
    assert_eq!(stale.kind, ErrorKind::StaleFile);
    for id in [0, 99] {
        assert!(rig.tools.call("browser_click", json!({"element_id": id})).await.is_err());
    }
    assert_eq!(named(&rig.elements().await, "New")["id"], 1, "numbers are of the page that was read last");
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_listed_with_their_attributes_and_without_the_value_of_a_password() {
    let rig = Rig::new().await;
    rig.opened("/").await;
    let elements = rig.elements().await;
    let with = |name: &str, expected: Value| {
        let element = named(&elements, name);
        let differs = expected.as_object().unwrap().iter().find(|(member, value)| element[member.as_str()] != **value);
        assert_eq!(differs, None, "{element}");
    };
    with("Name", json!({"role": "textbox", "tag": "input", "placeholder": "Your name", "field": "who"}));
    with("Secret", json!({"type": "password", "field": "secret", "value": null}));
    with("Size", json!({"tag": "select", "options": ["Small", "Medium"]}));
    with("Cat", json!({"role": "image", "url": "/cat.png"}));
    with("Two", json!({"role": "link", "url": "http://shop.example/two"}));
    with("Hands", json!({"role": "heading", "id": null}));
    assert!(elements.iter().all(|element| element["role"] != "option"), "{elements:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_for_a_missing_element_lists_similar_elements() {
    let rig = Rig::new().await;
    let page = rig.opened("/").await;
    let (renew, buy) = (reference(&page, "\"Renew\""), reference(&page, "\"Buy\""));
    let changed = rig.call("browser_click", json!({"ref": renew})).await;
    let new = reference(&changed, "now: button \"Renew\"");
    assert_ne!(new, renew);
    let gone = rig.fails("browser_click", json!({"ref": renew})).await.text();
    assert!(
        gone.contains(&format!("It was button \"Renew\". Like it on the page as it is now: button \"Renew\" [{new}]")),
        "{gone}"
    );
    rig.opened("/two").await;
    let gone = rig.fails("browser_click", json!({"ref": renew})).await.text();
    assert!(gone.contains("Like it on the page as it is now: button \"Renew\" [e"), "{gone}");
    let gone = rig.fails("browser_type", json!({"ref": buy, "text": "x"})).await.text();
    assert!(gone.contains("It was button \"Buy\"; nothing on the page is like it now"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_pressed_in_a_field_or_at_the_focus_and_hovering_does_not_click() {
    let rig = Rig::new().await;
    let page = rig.opened("/").await;
    let (name, menu) = (reference(&page, "textbox \"Name\""), reference(&page, "\"Menu\""));
    let answer = rig.call("browser_type", json!({"ref": name, "text": "Ann", "keys": ["Escape"]})).await;
    assert!(answer.contains("pressed Escape") && answer.contains("\"Ann\""), "{answer}");
    let answer = rig.call("browser_type", json!({"ref": name, "keys": ["Control+a", "Backspace"]})).await;
    assert!(answer.contains("pressed Backspace") && !answer.contains("= \"Ann\""), "{answer}");
    let answer = rig.call("browser_click", json!({"ref": menu, "hover": true})).await;
    assert!(answer.contains("hovered") && !answer.contains("clicked"), "{answer}");
    rig.call("browser_type", json!({"keys": ["Shift+Tab", "End"]})).await;
    rig.call("browser_wait_for", json!({"condition": "text", "value": "scrolled", "timeout_ms": 60_000})).await;
    for (arguments, answer) in [
        (json!({"ref": name, "keys": ["Sesame"]}), "`Sesame` is not a known key"),
        (json!({"keys": ["a"]}), "`a` is not a known key"),
        (json!({"ref": name}), "give `text`, `keys` or both, or else `files`"),
        (json!({"text": "x"}), "`ref` says which element"),
        (json!({"ref": name, "keys": ["Enter"], "files": ["x"]}), "give `text`, `keys` or both, or else `files`"),
    ] {
        let failure = rig.fails("browser_type", arguments).await;
        assert!(failure.kind == ErrorKind::InvalidInput && failure.message.contains(answer), "{}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_typed_like_a_text_and_a_password_typed_as_text_returns_a_hint() {
    let rig = Rig::new().await;
    let page = rig.opened("/").await;
    let (name, secret) = (reference(&page, "textbox \"Name\""), reference(&page, "textbox \"Secret\""));
    let hint = "Use `secret` instead";
    let answer = rig.call("browser_type", json!({"ref": name, "secret": "Ann"})).await;
    assert!(answer.contains("= \"Ann\"") && !answer.contains(hint), "{answer}");
    let answer = rig.call("browser_type", json!({"ref": secret, "secret": "open sesame"})).await;
    assert!(answer.contains("Typed into") && !answer.contains("sesame") && !answer.contains(hint), "{answer}");
    let answer = rig.call("browser_type", json!({"ref": secret, "text": "open sesame"})).await;
    assert!(answer.contains(hint) && !answer.contains("sesame"), "{answer}");
    let both = rig.fails("browser_type", json!({"ref": name, "text": "a", "secret": "b"})).await;
    assert!(both.kind == ErrorKind::InvalidInput && both.message.contains("either `text` or `secret`"), "{both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_a_click_reports_the_click() {
    let rig = Rig::new().await;
    let buy = reference(&rig.opened("/").await, "\"Buy\"");
    let failed = rig.fails("browser_click", json!({"ref": buy, "save_as": "none.txt", "timeout_ms": 5_000})).await;
    assert!(failed.kind == ErrorKind::Timeout && failed.message.starts_with(&format!("Clicked {buy}.")), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_in_a_page_title_cannot_imitate_an_address() {
    let rig = Rig::new().await;
    rig.opened("/quoted").await;
    let tabs = rig.call("browser_tabs", json!({})).await;
    assert!(tabs.contains("\"A' at http://bank.example/\" at http://shop.example/quoted"), "{tabs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_presses_stop_when_the_focus_enters_a_frame_of_another_host() {
    let rig = Rig::new().await;
    let page = rig.opened("/framed").await;
    assert!(page.contains("button \"Renew\""), "{page}");
    let refused = rig.fails("browser_type", json!({"keys": ["Tab", "Tab", "Enter"]})).await;
    assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{}", refused.message);
    let rules = vec!["WebFetch(domain:pay.example)".to_owned()];
    assert_eq!(refused.suggestion.as_deref(), Some(&Suggestion::AllowRules(rules)), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_page_is_shortened_while_its_full_text_is_stored_and_searchable() {
    let rig = Rig::new().await;
    let page = rig.opened("/orders").await;
    assert!(page.len() < 16_000 && page.contains("more lines are left out"), "{} characters", page.len());
    let handle = page.split("read_file {\"path\": \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let kept = rig.tools.call("browser_get_page", json!({})).await.unwrap();
    assert_eq!(kept.structured_content().unwrap()["handle"], handle, "the same page is kept once");
    assert_eq!(rig.tools.outputs().len(), 1);
    let full = rig.call("browser_get_page", json!({"full": true})).await;
    assert!(full.len() > page.len() && full.len() < 30_000, "{} characters", full.len());
    let found = rig.call("browser_get_page", json!({"find": "row order 577"})).await;
    assert!(found.len() < 600 && found.contains("button \"Cancel\" [e"), "{found}");
    let clear = reference(&rig.call("browser_get_page", json!({"find": "BUTTON clear"})).await, "\"Clear\"");
    let nothing = rig.call("browser_get_page", json!({"find": "nowhere"})).await;
    assert!(nothing.contains("No line of the page holds all of these words"), "{nothing}");
    let waited = rig.call("browser_wait_for", json!({})).await;
    assert!(waited.len() < 300 && waited.contains("Nothing that shows has changed"), "{waited}");
    let cleared = rig.call("browser_click", json!({"ref": clear})).await;
    assert!(cleared.len() < 400, "what is gone of a long page is not told line by line: {cleared}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_returns_a_short_answer_even_if_a_long_page_appears() {
    let rig = Rig::new().await;
    let go = reference(&rig.opened("/late").await, "\"Go\"");
    rig.call("browser_click", json!({"ref": go})).await;
    let last = "Order number 599";
    let waited = rig.call("browser_wait_for", json!({"condition": "text", "value": last, "timeout_ms": 60_000})).await;
    assert!(waited.len() < 400 && !waited.contains("Order number"), "{waited}");
    assert!(rig.call("browser_get_page", json!({"find": last})).await.contains(last));
}
