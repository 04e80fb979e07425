//! The output of `tool`: a result for the next program in the pipe, lists and errors for the user.

use super::{ErrorExit, UNAVAILABLE};
use serde_json::Value;
use toolstead_domain::tool_result::NO_OUTPUT;

/// Member in `_meta` that lists the stored outputs of a result.
const OUTPUTS: &str = "toolstead/outputs";

/// Returns the result of a call: its structured content on one line, else its text.
pub(super) fn result(answer: &Value) -> Result<String, ErrorExit> {
    let result = &answer["result"];
    if result["isError"] == Value::Bool(true) {
        return Err(ErrorExit { code: 1, message: text(result) });
    }
    Ok(match result.get("structuredContent") {
        Some(content) => content.to_string(),
        None => text(result),
    })
}

fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let handles = result["_meta"][OUTPUTS].as_array().map(Vec::as_slice).unwrap_or_default();
    // The placeholder that models receive for an empty result is useless to a program.
    let said = blocks.iter().filter(|block| block["text"] != NO_OUTPUT);
    let mut shown: Vec<String> = said.map(block).collect();
    shown.extend(
        handles.iter().filter_map(|kept| Some(format!("[stored under the handle {}]", kept["handle"].as_str()?))),
    );
    shown.join("\n")
}

fn block(block: &Value) -> String {
    let text = |name: &str| block[name].as_str();
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let bytes = text("data").map_or(0, |data| data.trim_end_matches('=').len() * 3 / 4);
            format!("[{kind} of {}, {bytes} bytes]", text("mimeType").unwrap_or("unknown type"))
        }
        Some("resource") => match block["resource"]["text"].as_str() {
            Some(content) => content.to_owned(),
            None => format!("[resource {}]", block["resource"]["uri"].as_str().unwrap_or("without an address")),
        },
        Some("resource_link") => {
            format!("[{}]({})", text("name").unwrap_or("resource"), text("uri").unwrap_or_default())
        }
        _ => block.to_string(),
    }
}

/// Returns the offered tools, one a line with the first sentence of the description.
pub(super) fn list(answer: &Value) -> String {
    let line = |tool: &Value| {
        let what = tool["description"].as_str().unwrap_or_default();
        let what = what.split_inclusive(['.', '\n']).next().unwrap_or_default().trim();
        format!("{}\t{what}", tool["name"].as_str().unwrap_or_default())
    };
    let tools = answer["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns one tool with its fields.
pub(super) fn help(answer: &Value) -> String {
    let tool = &answer["tools"][0];
    let schema = &tool["inputSchema"];
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut lines = vec![
        format!(
            "tool {} — {}",
            tool["name"].as_str().unwrap_or_default(),
            tool["description"].as_str().unwrap_or_default()
        ),
        String::new(),
    ];
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let kind = match &field["type"] {
            Value::String(one) => one.clone(),
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            _ => "value".into(),
        };
        let is_required = if required.contains(&name.as_str()) { ", required" } else { "" };
        lines.push(format!("  --{name} ({kind}{is_required})  {}", field["description"].as_str().unwrap_or_default()));
    }
    lines.join("\n").trim_end().to_owned()
}

/// Returns the failure of a call, with the exit code that was sent with it.
pub(super) fn failure(error: &Value) -> ErrorExit {
    let code = error["exit"].as_u64().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    let mut message = error["message"].as_str().unwrap_or("the call failed without a reason").to_owned();
    if let Some(partial) = error.get("partial") {
        message = format!("{message}\n{}", text(partial));
    }
    ErrorExit { code: code.unwrap_or(UNAVAILABLE), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_prints_as_one_json_line_or_text_and_an_error_result_fails() {
        let of = |result: Value| {
            super::result(&json!({"result": result})).map_err(|trouble| (trouble.code, trouble.message))
        };
        let words = |text: &str| json!({"type": "text", "text": text});
        for (result, expected) in [
            (json!({"content": [words("a\n")], "structuredContent": {"b": [1, "x\ny"]}}), Ok("{\"b\":[1,\"x\\ny\"]}")),
            (json!({"content": [words("a"), words("b\n")]}), Ok("a\nb\n")),
            (json!({"content": [words("no")], "structuredContent": {}, "isError": true}), Err((1, "no"))),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}],
                    "_meta": {"toolstead/outputs": [{"of": "image", "handle": "o3"}]}}),
                Ok("[image of image/png, 3 bytes]\n[stored under the handle o3]"),
            ),
            (json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}), Ok("t")),
            (json!({"content": []}), Ok("")),
            (json!({"content": [words("(no output)")]}), Ok("")),
        ] {
            let expected =
                expected.map(str::to_owned).map_err(|(code, message): (u8, &str)| (code, message.to_owned()));
            assert_eq!(of(result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn a_failure_exits_with_the_code_it_contains_and_never_with_zero() {
        let of = |error: Value| (failure(&error).code, failure(&error).message);
        assert_eq!(of(json!({"exit": 3, "message": "refused"})), (3, "refused".into()));
        assert_eq!(of(json!({"exit": 0, "message": "odd"})), (4, "odd".into()));
        let partial = json!({"content": [{"type": "text", "text": "half"}]});
        assert_eq!(of(json!({"exit": 5, "message": "late", "partial": partial})), (5, "late\nhalf".into()));
    }
}
