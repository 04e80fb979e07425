//! Fields and buttons as pages have them, and elements that cannot be used.

use super::{Rig, end, rig};
use crate::browser::{actions::PageCondition, references::ElementReference, session::BrowserSessionError};

/// Fields that report what happens to them.
const FIELDS: &str = r#"<!doctype html><title>Fields</title><style>
  .switch input { opacity: 0; position: absolute; width: 1px; height: 1px; left: -9px }
  .switch span { display: inline-block; width: 40px; height: 20px; background: #ccc } label, div { display: block }
</style>
<label class=switch><span></span><input type=checkbox onchange="say('dark ' + this.checked)">Dark mode</label>
<label>Plain <input type=checkbox onchange="say('plain ' + this.checked)"></label>
<label>Keys <input onkeydown="keys += event.key" onkeyup="say('keys ' + keys)"></label>
<label>Phone <input oninput="this.value = this.value.replace(/\D/g, '').replace(/(\d{3})(?=\d)/g, '$1 '); say('phone ' + this.value)"></label>
<label>Life <textarea onkeyup="say('long ' + event.key)" oninput="say('life ' + this.value.length)"></textarea></label>
<label>Colours <select multiple onchange="say('chose ' + [...this.selectedOptions].map(one => one.value))">
  <option>red<option>green<option>blue</select></label>
<div contenteditable oninput="say('note ' + this.textContent)">old <b>words</b></div>
<form onsubmit="say('sent'); return false"><label>Query <input oninput="say('query ' + this.value)"></label></form>
<button onclick="file.click()">Attach</button>
<input type=file id=file style="display: none" onchange="say('got ' + this.files[0].name)"><button>Other</button>
<p id=said role=status></p>
<script>let keys = ''; const say = text => document.getElementById('said').textContent = text;</script>"#;

/// Elements that are covered, disabled or far away.
const COVERED: &str = r#"<!doctype html><title>Covered</title>
<style>#cookies { position: fixed; left: 0; top: 0; width: 100%; height: 250px; background: #fff } body { margin: 0 }</style>
<button style="display: block">Under</button>
<iframe srcdoc="<button>Framed</button>" style="height: 60px; display: block"></iframe>
<label style="display: block; margin-top: 300px"><input type=checkbox style="opacity: 0; width: 0; height: 0"><a href="/terms" style="display: block">All of the terms</a></label>
<button disabled>Off</button><fieldset disabled><button>Off as well</button></fieldset>
<div style="height: 3000px"></div><button onclick="this.textContent = 'Reached'">Far</button>
<div style="height: 100px; overflow: auto"><div style="height: 2000px"></div>
  <button onclick="this.textContent = 'Found'">Deep</button></div><div style="height: 500px"></div>
<div id=cookies>Cookies?</div>"#;

async fn opened(page: &'static str) -> Rig {
    let rig = rig(Box::leak(Box::new([("/", page)]))).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    rig
}

impl Rig {
    async fn says(&self, text: &str) {
        let seen = self.session.wait_for(&PageCondition::Text(text.into()), end()).await;
        assert_eq!(seen, Ok(()), "{text}: {}", self.session.look().await.unwrap().0.text(5_000).0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkbox_is_toggled_directly_or_through_its_visible_label() {
    let rig = opened(FIELDS).await;
    for (part, said) in [
        ("checkbox \"Plain\"", "plain true"),
        ("checkbox \"Dark mode\"", "dark true"),
        ("checkbox \"Dark mode\"", "dark false"),
    ] {
        rig.session.click(rig.reference(part).await, false).await.unwrap();
        rig.says(said).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_text_reaches_the_page_as_keyboard_input() {
    let rig = opened(FIELDS).await;
    let long = "x".repeat(5_000);
    for (part, text, said) in [
        ("textbox \"Keys\"", "aÉ 1", "keys aÉ 1"),
        ("textbox \"Phone\"", "0123456789", "phone 012 345 678 9"),
        ("textbox \"Life\"", &*long, "long x"),
        ("textbox \"Life\"", "two\nlines", "life 9"),
        ("textbox \"Query\"", "two\nlines", "query two lines"),
        ("= \"old words\"", "new", "note new"),
    ] {
        rig.session.type_text(rig.reference(part).await, text, true, false).await.unwrap();
        rig.says(said).await;
    }
    rig.session.type_text(rig.reference("textbox \"Query\"").await, "", false, true).await.unwrap();
    rig.says("sent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_options_are_selected_in_a_multiple_choice_list() {
    let rig = opened(FIELDS).await;
    let list = rig.reference("listbox \"Colours\"").await;
    rig.session.select(list, &["red".into(), "blue".into()]).await.unwrap();
    rig.says("chose red,blue").await;
    rig.session.select(list, &["green".into()]).await.unwrap();
    rig.says("chose green").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_chooser_receives_files_only_after_its_button_is_clicked() {
    let rig = opened(FIELDS).await;
    let file = rig.folder.path().join("paper.txt");
    std::fs::write(&file, "12345").unwrap();
    let attach = rig.reference("button \"Attach\"").await;
    let refused = rig.session.give_files(attach, std::slice::from_ref(&file)).await.unwrap_err().to_string();
    assert!(refused.contains("click the button that requests them first"), "{refused}");
    rig.session.click(attach, false).await.unwrap();
    rig.session.when(end(), |state| state.current()?.file_chooser.as_ref().map(|_| ())).await.unwrap();
    rig.session.give_files(attach, &[file]).await.unwrap();
    rig.says("got paper.txt").await;
    assert_eq!(rig.session.state().current().unwrap().file_chooser, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_click_reports_its_reason_and_distant_elements_are_scrolled_into_view() {
    let rig = opened(COVERED).await;
    for (part, outcome) in [
        ("button \"Under\"", "&lt;div id=\"cookies\"> (\"Cookies?\") covers it"),
        ("button \"Framed\"", "&lt;div id=\"cookies\"> (\"Cookies?\") covers it"),
        ("checkbox \"All of the terms\"", "&lt;a> (\"All of the terms\") covers it"),
        ("button \"Off\"", "it is disabled"),
        ("button \"Off as well\"", "it is disabled"),
    ] {
        let reference = rig.reference(part).await;
        let refused = rig.session.click(reference, false).await;
        assert_eq!(refused, Err(BrowserSessionError::Unusable { reference, reason: outcome.into() }), "{part}");
    }
    let unknown = ElementReference(999);
    assert_eq!(rig.session.click(unknown, false).await, Err(BrowserSessionError::UnknownElement(unknown)));
    for (part, said) in [("button \"Far\"", "Reached"), ("button \"Deep\"", "Found")] {
        rig.session.click(rig.reference(part).await, false).await.unwrap();
        rig.says(said).await;
    }
}
