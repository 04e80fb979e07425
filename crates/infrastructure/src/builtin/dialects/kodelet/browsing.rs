//! Dialect adapters for kodelet's browser: elements by numbers, and results with few details of an action.

use super::{format_result, plain};
use serde_json::Value;
use std::fmt::Write as _;
use toolstead_domain::{AdaptedResult, AdapterInput, error_kind::ErrorKind};

/// Returns a text member, or an empty text.
fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the notes, saved file and errors of the page, for which kodelet's format has no place.
fn page_notes(answered: &AdapterInput<'_>) -> Option<String> {
    let lines = |name| answered.member(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let errors: Vec<&str> = lines("messages").collect();
    let errors = (!errors.is_empty()).then(|| format!("Errors of the page:\n{}", errors.join("\n")));
    let saved = answered.member("saved_path").and_then(Value::as_str).map(|path| format!("Saved as `{path}`."));
    let news: Vec<String> = lines("notes").map(str::to_owned).chain(saved).chain(errors).collect();
    (!news.is_empty()).then(|| news.join("\n"))
}

fn done(answered: &AdapterInput<'_>, words: &str) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return plain(answered);
    }
    Some(format_result(answered, None, Some(words.into())).with_extra_block(page_notes(answered)))
}

pub(super) fn clicked(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    done(answered, "Element clicked successfully")
}

pub(super) fn typed(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    done(answered, "Text typed successfully")
}

pub(super) fn navigated(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let Some(facts) = answered.structured() else { return plain(answered) };
    done(answered, &format!("Navigated to {}\nTitle: {}", text(facts, "url"), text(facts, "title")))
}

pub(super) fn waited(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind() == Some(ErrorKind::Timeout) {
        return Some(format_result(answered, Some("Wait timeout - condition not met".into()), None));
    }
    done(answered, "Wait condition met successfully")
}

pub(super) fn pictured(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    // Without a path the result is the picture.
    let (Some(facts), Some(path)) = (answered.structured(), answered.member("path").and_then(Value::as_str)) else {
        return plain(answered);
    };
    done(answered, &format!("Screenshot saved to {path} ({}x{})", facts["width"], facts["height"]))
}

pub(super) fn page(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let elements = answered.member("elements").and_then(Value::as_array);
    let (None, Some(elements), Some(facts)) = (answered.error_kind(), elements, answered.structured()) else {
        return plain(answered);
    };
    let lines = elements.iter().map(line).collect::<Vec<_>>().join("\n");
    let left_out = facts["left_out"].as_u64().unwrap_or_default();
    let rest = match facts.get("handle").and_then(Value::as_str) {
        _ if left_out == 0 => None,
        Some(handle) => Some(format!(
            "[{left_out} more elements are left out. All of the page is `{handle}`, where click and type accept the \
             references in brackets, such as `e12`, as `ref`.]"
        )),
        None => Some(format!("[{left_out} more elements are left out.]")),
    };
    let said = format!(
        "URL: {}\nTitle: {}\nHTML Length: {} characters\nTruncated: {}\n\n{lines}",
        text(facts, "url"),
        text(facts, "title"),
        lines.chars().count(),
        left_out > 0
    );
    let beside: Vec<String> = rest.into_iter().chain(page_notes(answered)).collect();
    Some(format_result(answered, None, Some(said)).with_extra_block(Some(beside.join("\n"))))
}

/// Returns an element in kodelet's format.
fn line(element: &Value) -> String {
    let (role, name, url) = (text(element, "role"), text(element, "name"), text(element, "url"));
    let Some(id) = element.get("id") else { return format!("<text>{name}</text>") };
    let (kind, inside) = match (role, text(element, "tag")) {
        ("link", _) if url.is_empty() => ("link", name.to_owned()),
        ("link", _) => ("link", format!("{name} [{url}]")),
        ("image", _) => ("img", attributes(&[("alt", name), ("src", url)])),
        (_, "select") => ("select", options(element)),
        (_, "textarea") => ("textarea", field(element)),
        (_, "input") => {
            let kind = element.get("type").and_then(Value::as_str).unwrap_or("text");
            let checked = if element["checked"] == true { " checked" } else { "" };
            ("input", format!("type={kind} {}{checked}", field(element)))
        }
        ("heading", _) => ("text", name.to_owned()),
        _ => ("button", name.to_owned()),
    };
    let inside = inside.trim();
    match inside.is_empty() {
        true => format!("<{kind} id={id}/>"),
        false => format!("<{kind} id={id}>{inside}</{kind}>"),
    }
}

fn options(element: &Value) -> String {
    let options = element.get("options").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    format!("options: {}", options.collect::<Vec<_>>().join(", "))
}

fn field(element: &Value) -> String {
    let (label, placeholder) = (text(element, "name"), text(element, "placeholder"));
    let label = if label == placeholder { "" } else { label };
    attributes(&[
        ("placeholder", placeholder),
        ("value", text(element, "value")),
        ("name", text(element, "field")),
        ("label", label),
    ])
}

fn attributes(all: &[(&str, &str)]) -> String {
    all.iter().filter(|(_, value)| !value.is_empty()).fold(String::new(), |mut text, (name, value)| {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{name}=\"{}\"", value.replace('"', "'"));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use toolstead_domain::{ToolFailure, ToolResult};

    type Answer = fn(&AdapterInput<'_>) -> Option<AdaptedResult>;

    #[track_caller]
    fn adapted(answer: Answer, outcome: Result<&ToolResult, &ToolFailure>, in_tags: bool) -> AdaptedResult {
        let arguments = Map::new();
        answer(&AdapterInput { arguments: &arguments, characters: 9_999, in_tags, outcome }).unwrap()
    }

    fn facts(more: Value) -> ToolResult {
        let mut facts = json!({"url": "https://shop.example/", "title": "Shop", "tab": 1, "tabs": 1, "page": "",
            "left_out": 0, "notes": [], "messages": []});
        facts.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ToolResult::text("ours").with_structured_content(facts).mark_tool_output()
    }

    #[test]
    fn page_elements_are_formatted_as_in_kodelet() {
        for (element, expected) in [
            (
                json!({"id": 1, "role": "link", "name": "Home", "url": "https://a.b/"}),
                "<link id=1>Home [https://a.b/]</link>",
            ),
            (json!({"id": 2, "role": "button", "name": "Buy"}), "<button id=2>Buy</button>"),
            (json!({"id": 3, "role": "button"}), "<button id=3/>"),
            (
                json!({"id": 4, "role": "textbox", "name": "Your mail", "tag": "input", "type": "email", "placeholder": "you@a.b", "value": "x\"y", "field": "mail"}),
                "<input id=4>type=email placeholder=\"you@a.b\" value=\"x'y\" name=\"mail\" label=\"Your mail\"</input>",
            ),
            (
                json!({"id": 5, "role": "textbox", "tag": "input", "type": "password"}),
                "<input id=5>type=password</input>",
            ),
            (
                json!({"id": 6, "role": "checkbox", "tag": "input", "type": "checkbox", "field": "agree", "checked": true}),
                "<input id=6>type=checkbox name=\"agree\" checked</input>",
            ),
            (
                json!({"id": 7, "role": "combobox", "tag": "select", "options": ["Small", "Medium"], "value": "Small"}),
                "<select id=7>options: Small, Medium</select>",
            ),
            (
                json!({"id": 8, "role": "textbox", "tag": "textarea", "value": "a"}),
                "<textarea id=8>value=\"a\"</textarea>",
            ),
            (
                json!({"id": 9, "role": "image", "name": "Cat", "url": "/c.png"}),
                "<img id=9>alt=\"Cat\" src=\"/c.png\"</img>",
            ),
            (json!({"role": "heading", "name": "Our shop"}), "<text>Our shop</text>"),
        ] {
            assert_eq!(line(&element), expected, "{element}");
        }
    }

    #[test]
    fn browser_results_match_kodelet_and_page_notes_follow_them() {
        let news = facts(json!({"notes": ["b.example may not be reached"], "messages": ["x is not defined"]}));
        let behind = "b.example may not be reached\nErrors of the page:\nx is not defined";
        let answers: [(Answer, &str); 4] = [
            (navigated, "Navigated to https://shop.example/\nTitle: Shop"),
            (clicked, "Element clicked successfully"),
            (typed, "Text typed successfully"),
            (waited, "Wait condition met successfully"),
        ];
        for (answer, expected) in answers {
            let reply = adapted(answer, Ok(&news), false);
            assert_eq!(
                (reply.text.as_str(), reply.extra_block.as_deref(), reply.is_error),
                (expected, Some(behind), false)
            );
            assert_eq!(adapted(answer, Ok(&facts(json!({}))), false).extra_block, None);
            assert_eq!(adapted(answer, Ok(&news), true).text, format!("<result>\n{expected}\n</result>"));
        }
    }

    #[test]
    fn a_truncated_page_reports_the_truncation_and_the_handle_of_the_whole_page() {
        let elements = json!([{"id": 1, "role": "button", "name": "Buy"}]);
        let answer = adapted(page, Ok(&facts(json!({"elements": elements, "left_out": 7, "handle": "o3"}))), false);
        let head = "URL: https://shop.example/\nTitle: Shop\nHTML Length: 25 characters\nTruncated: true";
        assert_eq!(answer.text, format!("{head}\n\n<button id=1>Buy</button>"));
        assert!(answer.extra_block.is_some_and(|beside| beside.contains("7 more") && beside.contains("`o3`")));
        let whole = adapted(page, Ok(&facts(json!({"elements": []}))), false);
        assert!(whole.text.contains("Truncated: false") && whole.extra_block.is_none());
    }

    #[test]
    fn a_screenshot_is_reported_with_path_and_size_or_shown_if_it_has_no_path() {
        let picture = |path: Value| {
            ToolResult::text("ours")
                .with_structured_content(json!({"url": "u", "width": 800, "height": 600, "path": path}))
                .mark_tool_output()
        };
        assert_eq!(adapted(pictured, Ok(&picture("o7".into())), false).text, "Screenshot saved to o7 (800x600)");
        let arguments = Map::new();
        let shown = picture(Value::Null);
        let answered = AdapterInput { arguments: &arguments, characters: 9, in_tags: false, outcome: Ok(&shown) };
        assert_eq!(pictured(&answered), None);
    }

    #[test]
    fn browser_errors_match_the_wording_of_kodelet() {
        let late = ToolFailure::new(ErrorKind::Timeout, "it did not come about in time");
        assert_eq!(adapted(waited, Err(&late), false).text, "Error: Wait timeout - condition not met");
        let gone = ToolFailure::new(ErrorKind::NotFound, "no page is open").next("Open one.");
        let answers: [Answer; 6] = [navigated, page, clicked, typed, waited, pictured];
        for answer in answers {
            assert_eq!(adapted(answer, Err(&gone), false).text, "Error: no page is open. Open one.");
        }
    }
}
