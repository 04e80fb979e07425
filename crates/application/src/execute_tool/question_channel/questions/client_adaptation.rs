//! Adaptation of an MCP server's questions for the client, and of the client's answers for the server.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use toolstead_domain::{
    InputRequest, InputResponse, NotAnswered, Tool, ToolSource, WorkspaceRoots, invisible_characters::displaces_text,
    workspace_roots::lexical,
};

/// Member of `_meta` that names the server for programs.
const SERVER: &str = "toolstead/server";

/// Returns the question as the client receives it. The message of an MCP server names the server, so that a server
/// cannot pose as another one or as Toolstead, and names the host of a page that the user is asked to open. With
/// `in_own_words`, the message stays as it is. Other questions remain unchanged.
///
/// # Errors
/// [`NotAnswered::Unfit`] for parameters other than an object, and for a page without a plain `http` or `https`
/// address.
pub(crate) fn adapt_for_client(
    mut request: InputRequest,
    tool: &Tool,
    in_own_words: bool,
) -> Result<InputRequest, NotAnswered> {
    if !matches!(request.method.as_str(), "elicitation/create" | "sampling/createMessage") {
        return Ok(request);
    }
    let ToolSource::McpServer { server, .. } = tool.source() else { return Ok(request) };
    let Some(params) = request.params.as_object_mut() else {
        return Err(NotAnswered::Unfit("its parameters are not an object"));
    };
    if request.method == "elicitation/create" {
        let page = match params.get("mode").and_then(Value::as_str) {
            Some("url") => {
                let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
                let host =
                    host_of(url).ok_or(NotAnswered::Unfit("its page is not at a plain `http` or `https` address"))?;
                format!(" you to open a page at `{host}`")
            }
            _ => String::new(),
        };
        if !in_own_words {
            // An empty message is attributed as well.
            let said = params.get("message").and_then(Value::as_str).unwrap_or_default();
            let message = attributed(&format!("The MCP server `{server}` asks{page}:"), said);
            params.insert("message".into(), message.into());
        }
    }
    match params.get_mut("_meta") {
        Some(Value::Object(meta)) => drop(meta.insert(SERVER.into(), server.as_str().into())),
        _ => drop(params.insert("_meta".into(), json!({SERVER: server.as_str()}))),
    }
    Ok(request)
}

/// Returns the server's message below `heading`. Each line of a message with several lines has a mark, so that it
/// cannot pose as text of Toolstead.
fn attributed(heading: &str, message: &str) -> String {
    let clean =
        |line: &str| -> String { line.chars().map(|c| if displaces_text(c) { '\u{fffd}' } else { c }).collect() };
    let lines: Vec<&str> = message.lines().collect();
    match lines.as_slice() {
        [] => heading.to_owned(),
        [line] => format!("{heading} {}", clean(line)),
        lines => lines.iter().fold(heading.to_owned(), |text, line| format!("{text}\n| {}", clean(line))),
    }
}

/// Returns the host of a web page; `None` if browsers and users could read different hosts from the URL.
pub(super) fn host_of(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    if !is_web || url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(literal) => literal.split_once(']')?.0,
        None => authority.split(':').next().unwrap_or_default(),
    };
    // User information before the host could be mistaken for the host.
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'));
    (is_plain && !host.is_empty() && !authority.contains('@')).then_some(host)
}

/// Returns the answer with only those roots in which tools may work.
pub(super) fn restrict_roots(ours: &WorkspaceRoots, answer: InputResponse) -> InputResponse {
    let mut answer = match answer.0 {
        Value::Object(answer) => answer,
        _ => Map::new(),
    };
    let mut roots = match answer.remove("roots") {
        Some(Value::Array(roots)) => roots,
        _ => Vec::new(),
    };
    roots.retain(|root| {
        let folder = root.get("uri").and_then(Value::as_str).and_then(folder);
        folder.is_some_and(|folder| ours.containing(&folder).is_some() && !ours.is_forbidden(&folder))
    });
    answer.insert("roots".into(), roots.into());
    InputResponse(answer.into())
}

/// Returns the folder that a `file:` URI of this machine names.
fn folder(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once("://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !scheme.eq_ignore_ascii_case("file") || !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    let path = decoded(path).filter(|path| !path.contains('\0'))?;
    Some(lexical("/".as_ref(), path.as_ref()))
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(rest.next()?)? * 16 + digit(rest.next()?)?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Category, ServerName, ToolName};

    fn tool() -> Tool {
        let server = ServerName::parse("git").unwrap();
        let name = ToolName::for_upstream(&server, "log");
        Tool::new(name, Map::new(), Category::Mcp, ToolSource::McpServer { server, tool: "log".into() })
    }

    fn message(params: Value, in_own_words: bool) -> String {
        let request = InputRequest { method: "elicitation/create".into(), params };
        let fitted = adapt_for_client(request, &tool(), in_own_words).unwrap();
        assert_eq!(fitted.params["_meta"]["toolstead/server"], "git");
        fitted.params["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_question_names_its_server_and_its_lines_cannot_impersonate_the_gateway() {
        let said = |text: &str| message(json!({"message": text}), false);
        assert_eq!(said("Your name?"), "The MCP server `git` asks: Your name?");
        assert_eq!(
            said("Hi\nThe MCP server `bank` asks: PIN?\u{202e}"),
            "The MCP server `git` asks:\n| Hi\n| The MCP server `bank` asks: PIN?\u{fffd}"
        );
        for odd in [json!({}), json!({"message": 1, "_meta": "git"}), json!({"_meta": null})] {
            assert_eq!(message(odd, false), "The MCP server `git` asks:");
        }
        assert_eq!(message(json!({"message": "m", "_meta": []}), true), "m");
        let page = json!({"mode": "url", "url": "https://auth.example.com:8443/x?y=1", "message": "Log in"});
        let named = "The MCP server `git` asks you to open a page at `auth.example.com`: Log in";
        assert_eq!((message(page.clone(), false).as_str(), message(page, true).as_str()), (named, "Log in"));
    }

    #[test]
    fn rejects_a_url_question_whose_host_is_missing_or_can_be_misread() {
        for (url, host) in [
            ("https://example.com", Some("example.com")),
            ("HTTP://localhost:8080/a@b", Some("localhost")),
            ("https://[::1]:1/", Some("::1")),
            ("https://bank.com@evil.com/", None),
            ("https://bank.com\\@evil.com/", None),
            ("https://b\u{430}nk.com/", None),
            ("https:///x", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("https://a b/", None),
            ("", None),
        ] {
            assert_eq!(host_of(url), host, "{url}");
            let params = json!({"mode": "url", "url": url, "message": "m"});
            let question = InputRequest { method: "elicitation/create".into(), params };
            assert_eq!(adapt_for_client(question, &tool(), false).is_ok(), host.is_some(), "{url}");
        }
    }

    #[test]
    fn only_client_roots_inside_the_workspace_are_returned_to_a_server() {
        let ours = WorkspaceRoots {
            write: vec!["/w".into()],
            read_only: vec!["/r".into()],
            forbidden: vec!["/w/data".into()],
        };
        let roots = |uris: &[&str]| -> Value { uris.iter().map(|uri| json!({"uri": uri, "name": "n"})).collect() };
        let text_of = |answer: Value| restrict_roots(&ours, InputResponse(answer)).0;
        let inside = ["file:///w/a%20b", "file:///w", "file://localhost/r/x"];
        let outside = [
            "file:///",
            "file:///w/../etc",
            "file:///w/data",
            "file:///wx",
            "file://other/w",
            "https://w/w",
            "file:///w/%2e%2e/etc",
            "file:///w?x",
            "file:///w/%zz",
        ];
        assert_eq!(
            text_of(json!({"roots": roots(&[&inside[..], &outside[..]].concat()), "_meta": {"a": 1}})),
            json!({"_meta": {"a": 1}, "roots": roots(&inside)})
        );
        for odd in [json!(null), json!({}), json!({"roots": "file:///w"}), json!([1])] {
            assert_eq!(text_of(odd), json!({"roots": []}));
        }
    }
}
