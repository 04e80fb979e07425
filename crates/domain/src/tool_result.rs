//! The result of a call, as `CallToolResult` of MCP.

use crate::error_kind::ErrorKind;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Text for a model if a tool returned no output.
pub const NO_OUTPUT: &str = "(no output)";

/// Result of a call: the JSON object of MCP's `CallToolResult` as received, unknown members included.
///
/// Members: `content` (array of blocks), `structuredContent`, `isError`, `_meta` and any others (MCP 2025-11-25,
/// server/tools, "Tool Result"). Accessors read from this object without copying.
///
/// Most results are one text, whose object is built only when it is read.
///
/// ```
/// use toolstead_domain::tool_result::ToolResult;
///
/// let result = ToolResult::json(serde_json::json!({"files": 3}));
/// assert_eq!(result.structured_content().unwrap()["files"], 3);
/// assert!(!result.is_error());
/// assert_eq!(ToolResult::text("done").joined_text(), "done");
/// ```
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The only text; `None` if `object` has the members.
    text: Option<String>,
    object: Option<Map<String, Value>>,
    /// Object of the only text, built on demand.
    object_of_text: OnceLock<Box<Map<String, Value>>>,
    error_kind: Option<ErrorKind>,
    /// Number of blocks that are output of the tool; `None` if they were not counted.
    output_blocks: OutputBlockCount,
}

/// Number of blocks of a result that are output of its tool. Not part of the equality of results.
#[derive(Debug, Clone, Copy, Default)]
struct OutputBlockCount(Option<usize>);

impl PartialEq for OutputBlockCount {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PartialEq for ToolResult {
    fn eq(&self, other: &Self) -> bool {
        (self.as_object(), self.error_kind) == (other.as_object(), other.error_kind)
    }
}

impl ToolResult {
    /// Creates a result with one text block. An empty text becomes [`NO_OUTPUT`]: a model never receives an empty
    /// result.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let text = if text.is_empty() { NO_OUTPUT.to_owned() } else { text };
        Self { text: Some(text), ..Self::of_object(None, None) }
    }

    fn of_object(object: Option<Map<String, Value>>, error_kind: Option<ErrorKind>) -> Self {
        Self {
            text: None,
            object,
            object_of_text: OnceLock::new(),
            error_kind,
            output_blocks: OutputBlockCount::default(),
        }
    }

    /// Creates a result with the value as structured content, and its JSON as text for clients that read only text (MCP
    /// 2025-11-25, server/tools, "Structured Content"). A value other than an object is sent as text only.
    pub fn json(value: Value) -> Self {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        Self::text(text).with_structured_content(value)
    }

    /// Creates a result with `isError` and the kind of the failure.
    pub fn error(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut result = Self::text(message);
        result.object_mut().insert("isError".into(), true.into());
        result.error_kind = Some(kind);
        result
    }

    /// Creates the result of a call that succeeded without output.
    pub fn empty() -> Self {
        Self::text("")
    }

    /// Creates a result with one image block; `data` is base64.
    pub fn image(data: impl Into<String>, mime_type: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "image", "data": data.into(), "mimeType": mime_type})])
    }

    /// Creates a result with one audio block; `data` is base64.
    pub fn audio(data: impl Into<String>, mime_type: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "audio", "data": data.into(), "mimeType": mime_type})])
    }

    /// Creates a result with one embedded text resource.
    pub fn resource(uri: &str, mime_type: &str, text: impl Into<String>) -> Self {
        Self::of_blocks(vec![
            json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text.into()}}),
        ])
    }

    /// Creates a result with one link to a resource.
    pub fn resource_link(uri: &str, name: &str) -> Self {
        Self::of_blocks(vec![json!({"type": "resource_link", "uri": uri, "name": name})])
    }

    /// Creates a result with these content blocks; an empty list becomes [`NO_OUTPUT`].
    pub fn of_blocks(blocks: Vec<Value>) -> Self {
        let blocks = if blocks.is_empty() { vec![text_block(NO_OUTPUT.to_owned())] } else { blocks };
        Self::of_object(Some(of_content(blocks)), None)
    }

    /// Creates a result as an MCP server sent it: every member is preserved, and none is added. Content may be empty or
    /// missing, because some servers omit it beside structured content.
    ///
    /// # Errors
    /// [`MalformedResult`] if the value is not an object, or `content` is not an array.
    pub fn from_upstream(value: Value) -> Result<Self, MalformedResult> {
        let Value::Object(object) = value else { return Err(MalformedResult("it is not an object")) };
        if !matches!(object.get("content"), None | Some(Value::Null | Value::Array(_))) {
            return Err(MalformedResult("its `content` is not an array"));
        }
        let error_kind = (object.get("isError") == Some(&Value::Bool(true))).then_some(ErrorKind::ExecutionFailed);
        Ok(Self::of_object(Some(object), error_kind))
    }

    /// Creates the result of a request other than a tool call: these members, unchanged.
    pub fn of_members(object: Map<String, Value>) -> Self {
        Self::of_object(Some(object), None)
    }

    /// Creates the result of a call that continues as a task (`CreateTaskResult` of the MCP extension
    /// `io.modelcontextprotocol/tasks`), for a client that [accepts tasks](crate::task_request::takes_tasks). The call
    /// path replaces the id of the task by its own.
    pub fn task(mut object: Map<String, Value>) -> Self {
        object.insert("resultType".into(), "task".into());
        Self::of_members(object)
    }

    /// Returns `true` if it is a [task](Self::task). Other results have content.
    pub fn is_task(&self) -> bool {
        let members = self.object.as_ref().filter(|members| !members.contains_key("content"));
        members.and_then(|members| members.get("resultType")).is_some_and(|kind| kind == "task")
    }

    /// Adds structured content. MCP allows only objects (up to 2025-11-25), so another value is left out.
    #[must_use]
    pub fn with_structured_content(mut self, value: Value) -> Self {
        if value.is_object() {
            self.object_mut().insert("structuredContent".into(), value);
        }
        self
    }

    /// Combines two results: the blocks of `self`, then those of `last`, and the success or failure of `last`.
    #[must_use]
    pub fn followed_by(mut self, last: Self) -> Self {
        let mut blocks = self.content().to_vec();
        blocks.extend_from_slice(last.content());
        self.error_kind = last.error_kind;
        let object = self.object_mut();
        object.extend(last.into_object());
        object.insert("content".into(), blocks.into());
        self
    }

    /// Joins adjacent text blocks without further members, with line breaks between their texts.
    #[must_use]
    pub fn with_joined_texts(mut self) -> Self {
        if self.text.is_some() {
            return self;
        }
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
            None => drop(self.object_mut().insert("content".into(), vec![block].into())),
        }
        self
    }

    /// Returns the content blocks. Results of built-in tools always have at least one; those of MCP servers may have
    /// none.
    pub fn content(&self) -> &[Value] {
        self.as_object().get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the content blocks for changes; `None` if the result has no `content`.
    pub fn content_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.object_mut().get_mut("content").and_then(Value::as_array_mut)
    }

    /// Marks the current blocks as the output of the tool: blocks that are added later are not. Only the first call has
    /// an effect.
    #[must_use]
    pub fn mark_tool_output(mut self) -> Self {
        let blocks = if self.text.is_some() { 1 } else { self.content().len() };
        self.output_blocks.0.get_or_insert(blocks);
        self
    }

    /// Updates the number of output blocks after some were removed, before any is added: added blocks are not output of
    /// the tool.
    pub fn update_output_blocks(&mut self) {
        let blocks = self.content().len();
        self.output_blocks.0 = self.output_blocks.0.map(|said| said.min(blocks));
    }

    /// Returns `true` if the output of the tool was marked by [`mark_tool_output`](Self::mark_tool_output) or set by
    /// [`said_as`](Self::said_as); `false` for a result that replaces it.
    pub fn is_tool_output(&self) -> bool {
        self.output_blocks.0.is_some()
    }

    /// Returns the output blocks of the tool, and the blocks that were added to them. Without a count, all blocks are
    /// output.
    fn said_and_added(&self) -> (&[Value], &[Value]) {
        let blocks = self.content();
        blocks.split_at(self.output_blocks.0.unwrap_or(blocks.len()).min(blocks.len()))
    }

    /// Returns the output blocks of the tool; all blocks if its output was not marked.
    pub fn said_blocks(&self) -> &[Value] {
        self.said_and_added().0
    }

    /// Returns the texts of the output blocks of the tool, joined by line breaks; of all blocks if its output was not
    /// marked.
    pub fn tool_text(&self) -> String {
        joined(self.said_and_added().0)
    }

    /// Replaces the output blocks of the tool by these texts, as an error or a success, and the structured content by
    /// `structured`; `None` removes it. Blocks that were added to the output stay.
    #[must_use]
    pub fn said_as(mut self, texts: Vec<String>, is_error: bool, structured: Option<Value>) -> Self {
        let count = texts.len();
        let to_block = |text: String| text_block(if text.is_empty() { NO_OUTPUT.to_owned() } else { text });
        let mut blocks: Vec<Value> = texts.into_iter().map(to_block).collect();
        blocks.extend_from_slice(self.said_and_added().1);
        self.take_structured_content();
        let object = self.object_mut();
        object.insert("content".into(), blocks.into());
        object.shift_remove("isError");
        if is_error {
            object.insert("isError".into(), true.into());
        }
        self.error_kind = is_error.then(|| self.error_kind.unwrap_or(ErrorKind::ExecutionFailed));
        self.output_blocks = OutputBlockCount(Some(count));
        match structured {
            Some(content) => self.with_structured_content(content),
            None => self,
        }
    }

    /// Returns the structured content, if there is any.
    pub fn structured_content(&self) -> Option<&Value> {
        self.object.as_ref()?.get("structuredContent")
    }

    /// Removes and returns the structured content.
    pub fn take_structured_content(&mut self) -> Option<Value> {
        self.object.as_mut()?.shift_remove("structuredContent")
    }

    /// Returns the members other than content, structured content and `isError`, `_meta` included.
    pub fn rest(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.object.iter().flatten().filter(|(name, _)| !is_content(name))
    }

    /// Removes and returns the members of [`rest`](Self::rest).
    pub fn take_rest(&mut self) -> Map<String, Value> {
        let Some(object) = &mut self.object else { return Map::new() };
        let (content, rest) = std::mem::take(object).into_iter().partition(|(name, _)| is_content(name));
        *object = content;
        rest
    }

    /// Adds a member to the result's `_meta`, which is for programs. Does nothing if `_meta` is not an object.
    pub fn insert_meta(&mut self, name: &str, value: Value) {
        let meta = self.object_mut().entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(name.to_owned(), value);
        }
    }

    /// Returns `true` if the tool reports that the call failed.
    pub fn is_error(&self) -> bool {
        self.object.as_ref().is_some_and(|members| members.get("isError") == Some(&Value::Bool(true)))
    }

    /// Returns the kind of the failure; `None` for a success.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.error_kind
    }

    /// Returns all text blocks, joined by line breaks.
    pub fn joined_text(&self) -> String {
        self.text.clone().unwrap_or_else(|| joined(self.content()))
    }

    /// Returns the text of a result that is known to be one text block and nothing else.
    pub fn only_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the JSON object for the wire.
    pub fn as_object(&self) -> &Map<String, Value> {
        let of_text = || Box::new(of_content(self.text.iter().cloned().map(text_block).collect()));
        self.object.as_ref().unwrap_or_else(|| self.object_of_text.get_or_init(of_text))
    }

    /// Returns the object for changes.
    fn object_mut(&mut self) -> &mut Map<String, Value> {
        let text = self.text.take();
        self.object_of_text.take();
        self.object.get_or_insert_with(|| of_content(text.map(text_block).into_iter().collect()))
    }

    /// Returns the JSON object for the wire.
    pub fn into_object(mut self) -> Map<String, Value> {
        std::mem::take(self.object_mut())
    }
}

fn of_content(blocks: Vec<Value>) -> Map<String, Value> {
    let mut object = Map::with_capacity(1);
    object.insert("content".into(), blocks.into());
    object
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

/// Text block in JSON form, without a copy of its text.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct TextBlockRef<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[cfg(feature = "serde")]
impl<'a> TextBlockRef<'a> {
    /// Creates the block of this text.
    pub fn new(text: &'a str) -> Self {
        Self { r#type: "text", text }
    }
}

/// Returns a text block.
pub fn text_block(text: String) -> Value {
    let mut block = Map::with_capacity(2);
    block.insert("type".into(), "text".into());
    block.insert("text".into(), text.into());
    block.into()
}

/// Value that is not a valid tool result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the result is malformed: {0}")]
pub struct MalformedResult(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_result_of_an_own_tool_becomes_the_no_output_text() {
        let said_nothing = [ToolResult::empty(), ToolResult::text(""), ToolResult::of_blocks(vec![])];
        for result in said_nothing {
            assert_eq!(result.joined_text(), NO_OUTPUT);
        }
    }

    #[test]
    fn an_upstream_result_keeps_unknown_members() {
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
    fn a_text_result_equals_the_result_of_its_text_block() {
        let (text, block) = (ToolResult::text("x"), ToolResult::of_blocks(vec![text_block("x".into())]));
        assert_eq!((text.only_text(), block.only_text()), (Some("x"), None));
        assert_eq!(text, block);
        let changes: [fn(ToolResult) -> ToolResult; 6] = [
            |result| result,
            |result| result.with_block(text_block("y".into())),
            |result| result.with_structured_content(json!({"a": 1})),
            |result| result.followed_by(ToolResult::error(ErrorKind::Io, "z")),
            |result| result.mark_tool_output().said_as(vec!["z".into()], true, None),
            |mut result| {
                result.insert_meta("k", json!(1));
                result.content_mut().unwrap().push(json!({"type": "image"}));
                result
            },
        ];
        for change in changes {
            let (text, block) = (change(text.clone()), change(block.clone()));
            assert_eq!((text.joined_text(), text.is_error()), (block.joined_text(), block.is_error()));
            assert_eq!(text.tool_text(), block.tool_text());
            assert_eq!(text.rest().collect::<Vec<_>>(), block.rest().collect::<Vec<_>>());
            assert_eq!(
                serde_json::to_string(text.as_object()).unwrap(),
                serde_json::to_string(block.as_object()).unwrap()
            );
            assert_eq!(text.into_object(), block.into_object());
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
    fn partial_output_precedes_the_error_text() {
        let both = ToolResult::text("half").followed_by(ToolResult::error(ErrorKind::Timeout, "too slow"));
        assert_eq!(
            (both.joined_text().as_str(), both.is_error(), both.error_kind()),
            ("half\ntoo slow", true, Some(ErrorKind::Timeout))
        );
    }
}
