//! What a call answered, as MCP's `CallToolResult`.

use crate::error_kind::ErrorKind;
use serde_json::{Map, Value, json};

/// What a model reads when a tool had nothing to say.
pub const NO_OUTPUT: &str = "(no output)";

/// The result of a call: the JSON object of MCP's `CallToolResult` as it came, members that nobody here knows included.
///
/// Shape: `content` (array of blocks), `structuredContent`, `isError`, `_meta` and whatever else was there
/// (MCP 2025-11-25, server/tools, "Tool Result"). Accessors read it where it stands; nothing is copied.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    object: Map<String, Value>,
    error_kind: Option<ErrorKind>,
    /// So many blocks the tool said itself; `None`: nobody counted them.
    said: Said,
}

/// The number of blocks of a result that are its tool's. Whatever two results say does not depend on it.
#[derive(Debug, Clone, Copy, Default)]
struct Said(Option<usize>);

impl PartialEq for Said {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ToolResult {
    /// One text block. An empty text becomes [`NO_OUTPUT`]: a model never gets an empty result.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let text = if text.is_empty() { NO_OUTPUT.to_owned() } else { text };
        Self::of_blocks(vec![text_block(text)])
    }

    /// The value as structured content, and its JSON as text for clients that read only text
    /// (MCP 2025-11-25, server/tools, "Structured Content"). A value that is no object is given as text alone.
    pub fn json(value: Value) -> Self {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        Self::text(text).with_structured_content(value)
    }

    /// A result with `isError` and the failure's kind.
    pub fn error(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut result = Self::text(message);
        result.object.insert("isError".into(), true.into());
        result.error_kind = Some(kind);
        result
    }

    /// A result for a call that did its work and has nothing to say.
    pub fn empty() -> Self {
        Self::text("")
    }

    /// One image block; `data` is base64.
    pub fn image(data: impl Into<String>, mime_type: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "image", "data": data.into(), "mimeType": mime_type})])
    }

    /// One audio block; `data` is base64.
    pub fn audio(data: impl Into<String>, mime_type: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "audio", "data": data.into(), "mimeType": mime_type})])
    }

    /// One embedded text resource.
    pub fn resource(uri: &str, mime_type: &str, text: impl Into<String>) -> Self {
        Self::of_blocks(vec![
            json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text.into()}}),
        ])
    }

    /// One link to a resource.
    pub fn resource_link(uri: &str, name: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "resource_link", "uri": uri, "name": name})])
    }

    /// A result of these content blocks; none at all becomes [`NO_OUTPUT`].
    pub fn of_blocks(blocks: Vec<Value>) -> Self {
        let blocks = if blocks.is_empty() { vec![text_block(NO_OUTPUT.to_owned())] } else { blocks };
        let mut object = Map::new();
        object.insert("content".into(), blocks.into());
        Self { object, error_kind: None, said: Said::default() }
    }

    /// A result as an MCP server sent it: every member is kept, and none is added. Content may be empty, or not be there at
    /// all, as some servers leave it out beside structured content.
    ///
    /// # Errors
    /// [`MalformedResult`] when the value is no object or `content` is no array.
    pub fn from_upstream(value: Value) -> Result<Self, MalformedResult> {
        let Value::Object(object) = value else { return Err(MalformedResult("it is no object")) };
        if !matches!(object.get("content"), None | Some(Value::Null | Value::Array(_))) {
            return Err(MalformedResult("its `content` is no array"));
        }
        let error_kind = (object.get("isError") == Some(&Value::Bool(true))).then_some(ErrorKind::ExecutionFailed);
        Ok(Self { object, error_kind, said: Said::default() })
    }

    /// The result of a request that is no call of a tool: these members, as they are.
    pub fn of_members(object: Map<String, Value>) -> Self {
        Self { object, error_kind: None, said: Said::default() }
    }

    /// A task that a call goes on as (`CreateTaskResult` of MCP's extension `io.modelcontextprotocol/tasks`), for a client
    /// that [takes tasks](crate::task_request::takes_tasks). The path puts its own name of the task into it.
    pub fn task(mut object: Map<String, Value>) -> Self {
        object.insert("resultType".into(), "task".into());
        Self::of_members(object)
    }

    /// Tells whether it is a [task](Self::task). Results have content.
    pub fn is_task(&self) -> bool {
        !self.object.contains_key("content") && self.object.get("resultType").is_some_and(|kind| kind == "task")
    }

    /// Adds structured content. MCP allows objects only (up to 2025-11-25), so another value is left out.
    #[must_use]
    pub fn with_structured_content(mut self, value: Value) -> Self {
        if value.is_object() {
            self.object.insert("structuredContent".into(), value);
        }
        self
    }

    /// Both results in one: the blocks of `self`, then those of `last`, and `last`'s verdict.
    #[must_use]
    pub fn followed_by(mut self, last: Self) -> Self {
        let mut blocks = self.content().to_vec();
        blocks.extend_from_slice(last.content());
        self.object.extend(last.object);
        self.object.insert("content".into(), blocks.into());
        self.error_kind = last.error_kind;
        self
    }

    /// Joins adjacent text blocks without further members, with line breaks between their texts.
    #[must_use]
    pub fn with_joined_texts(mut self) -> Self {
        let Some(blocks) = self.content_mut() else { return self };
        let mut joined: Vec<Value> = Vec::with_capacity(blocks.len());
        for block in blocks.drain(..) {
            match (joined.last_mut().and_then(plain_text_mut), plain_text(&block)) {
                (Some(text), Some(more)) => {
                    if !text.ends_with('\n') {
                        text.push('\n');
                    }
                    text.push_str(more);
                }
                _ => joined.push(block),
            }
        }
        *blocks = joined;
        self
    }

    /// Adds a content block at the end.
    #[must_use]
    pub fn with_block(mut self, block: Value) -> Self {
        match self.content_mut() {
            Some(blocks) => blocks.push(block),
            None => drop(self.object.insert("content".into(), vec![block].into())),
        }
        self
    }

    /// The content blocks. Those of a tool that is ours are never none.
    pub fn content(&self) -> &[Value] {
        self.object.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The content blocks, to change them in place.
    pub fn content_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.object.get_mut("content").and_then(Value::as_array_mut)
    }

    /// The same, whose blocks are all that the tool says: what is added from here on is said by others. Counts once.
    #[must_use]
    pub fn said_by_tool(mut self) -> Self {
        let blocks = self.content().len();
        self.said.0.get_or_insert(blocks);
        self
    }

    /// Counts again after some of its blocks were left out, and before any is added: none that comes is the tool's.
    pub fn left_out_blocks(&mut self) {
        let blocks = self.content().len();
        self.said.0 = self.said.0.map(|said| said.min(blocks));
    }

    /// Tells whether it holds what its tool said, and nothing that somebody put in the place of that.
    pub fn is_said_by_tool(&self) -> bool {
        self.said.0.is_some()
    }

    /// The words of the tool, and those that were added to it on its way. Where nobody counted, all is the tool's.
    fn said_and_added(&self) -> (&[Value], &[Value]) {
        let blocks = self.content();
        blocks.split_at(self.said.0.unwrap_or(blocks.len()).min(blocks.len()))
    }

    /// The blocks of what the tool said.
    pub fn said_blocks(&self) -> &[Value] {
        self.said_and_added().0
    }

    /// The text of what the tool said.
    pub fn said_text(&self) -> String {
        joined(self.said_and_added().0)
    }

    /// The same with these texts in the place of what the tool said, as an error or not, and with other structured content.
    #[must_use]
    pub fn said_as(mut self, texts: Vec<String>, is_error: bool, structured: Option<Value>) -> Self {
        let count = texts.len();
        let told = |text: String| text_block(if text.is_empty() { NO_OUTPUT.to_owned() } else { text });
        let mut blocks: Vec<Value> = texts.into_iter().map(told).collect();
        blocks.extend_from_slice(self.said_and_added().1);
        self.object.insert("content".into(), blocks.into());
        self.take_structured_content();
        self.object.shift_remove("isError");
        if is_error {
            self.object.insert("isError".into(), true.into());
        }
        self.error_kind = is_error.then(|| self.error_kind.unwrap_or(ErrorKind::ExecutionFailed));
        self.said = Said(Some(count));
        match structured {
            Some(content) => self.with_structured_content(content),
            None => self,
        }
    }

    /// The structured content, if there is any.
    pub fn structured_content(&self) -> Option<&Value> {
        self.object.get("structuredContent")
    }

    /// Takes the structured content out.
    pub fn take_structured_content(&mut self) -> Option<Value> {
        self.object.shift_remove("structuredContent")
    }

    /// The members beside content, structured content and `isError`, `_meta` among them.
    pub fn rest(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.object.iter().filter(|(name, _)| !is_content(name))
    }

    /// Takes them out.
    pub fn take_rest(&mut self) -> Map<String, Value> {
        let (content, rest) = std::mem::take(&mut self.object).into_iter().partition(|(name, _)| is_content(name));
        self.object = content;
        rest
    }

    /// Adds a member to the result's `_meta`, which is for programs. Where `_meta` is no object nothing happens.
    pub fn insert_meta(&mut self, name: &str, value: Value) {
        let meta = self.object.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(name.to_owned(), value);
        }
    }

    /// Whether the tool says that the call failed.
    pub fn is_error(&self) -> bool {
        self.object.get("isError") == Some(&Value::Bool(true))
    }

    /// The kind of the failure; `None` for a success.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.error_kind
    }

    /// All text blocks, joined by line breaks.
    pub fn joined_text(&self) -> String {
        joined(self.content())
    }

    /// The JSON object that goes on the wire.
    pub fn as_object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// The JSON object that goes on the wire.
    pub fn into_object(self) -> Map<String, Value> {
        self.object
    }
}

fn joined(blocks: &[Value]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    texts.join("\n")
}

/// Returns the text of a block that has no further members.
fn plain_text(block: &Value) -> Option<&str> {
    let members = block
        .as_object()
        .filter(|members| members.len() == 2 && members.get("type").is_some_and(|kind| kind == "text"))?;
    members.get("text")?.as_str()
}

fn plain_text_mut(block: &mut Value) -> Option<&mut String> {
    plain_text(block)?;
    match block.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn is_content(member: &str) -> bool {
    matches!(member, "content" | "structuredContent" | "isError")
}

/// A text block.
pub fn text_block(text: String) -> Value {
    json!({"type": "text", "text": text})
}

/// A value that is no tool result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the result is malformed: {0}")]
pub struct MalformedResult(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_never_gets_an_empty_result_of_a_tool_that_is_ours() {
        let said_nothing = [ToolResult::empty(), ToolResult::text(""), ToolResult::of_blocks(vec![])];
        for result in said_nothing {
            assert_eq!(result.joined_text(), NO_OUTPUT);
        }
    }

    #[test]
    fn an_upstream_result_keeps_what_nobody_here_knows() {
        for raw in [
            json!({"x": 1, "content": [{"type": "video", "y": [2]}], "_meta": {"z": null}, "isError": false}),
            json!({"isError": true, "content": []}),
            json!({"structuredContent": [1], "y": {}}),
            json!({"content": null}),
            json!({}),
        ] {
            let result = ToolResult::from_upstream(raw.clone()).unwrap();
            let with_notice = result.clone().with_block(text_block("n".into()));
            assert_eq!(Value::Object(result.into_object()).to_string(), raw.to_string());
            assert_eq!(with_notice.content().last(), Some(&text_block("n".into())));
        }
    }

    #[test]
    fn a_malformed_upstream_result_is_refused() {
        for bad in [json!(null), json!([]), json!("x"), json!({"content": "x"}), json!({"content": {}})] {
            assert!(ToolResult::from_upstream(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn adjacent_texts_are_joined_and_nothing_else() {
        let check = |blocks: Value, expected: Value| {
            let result = ToolResult::of_blocks(blocks.as_array().unwrap().clone()).with_joined_texts();
            assert_eq!(Value::from(result.content().to_vec()), expected);
        };
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let annotated = json!({"type": "text", "text": "x", "annotations": {}});
        check(json!([text("a"), text("b\n"), text("c")]), json!([text("a\nb\nc")]));
        check(json!([text("a"), image, text("b")]), json!([text("a"), image, text("b")]));
        check(json!([text("a"), annotated, text("b")]), json!([text("a"), annotated, text("b")]));
    }

    #[test]
    fn partial_output_stands_before_the_error() {
        let both = ToolResult::text("half").followed_by(ToolResult::error(ErrorKind::Timeout, "too slow"));
        assert_eq!(
            (both.joined_text().as_str(), both.is_error(), both.error_kind()),
            ("half\ntoo slow", true, Some(ErrorKind::Timeout))
        );
    }
}
