//! What a call answered, as MCP's `CallToolResult`.

use crate::error_kind::ErrorKind;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// What a model reads when a tool had nothing to say.
pub const NO_OUTPUT: &str = "(no output)";

/// The result of a call: the JSON object of MCP's `CallToolResult` as it came, members that nobody here knows included.
///
/// Shape: `content` (array of blocks), `structuredContent`, `isError`, `_meta` and whatever else was there
/// (MCP 2025-11-25, server/tools, "Tool Result"). Accessors read it where it stands; nothing is copied.
///
/// Most results are one text, whose object is built only where it is read.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The only text; `None` where `object` has the members.
    text: Option<String>,
    object: Option<Map<String, Value>>,
    /// Object of the only text, built on demand.
    object_of_text: OnceLock<Box<Map<String, Value>>>,
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

impl PartialEq for ToolResult {
    fn eq(&self, other: &Self) -> bool {
        (self.as_object(), self.error_kind) == (other.as_object(), other.error_kind)
    }
}

impl ToolResult {
    /// One text block. An empty text becomes [`NO_OUTPUT`]: a model never gets an empty result.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let text = if text.is_empty() { NO_OUTPUT.to_owned() } else { text };
        Self { text: Some(text), ..Self::of_object(None, None) }
    }

    fn of_object(object: Option<Map<String, Value>>, error_kind: Option<ErrorKind>) -> Self {
        Self { text: None, object, object_of_text: OnceLock::new(), error_kind, said: Said::default() }
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
        result.object_mut().insert("isError".into(), true.into());
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
        Self::of_object(Some(of_content(blocks)), None)
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
        Ok(Self::of_object(Some(object), error_kind))
    }

    /// The result of a request that is no call of a tool: these members, as they are.
    pub fn of_members(object: Map<String, Value>) -> Self {
        Self::of_object(Some(object), None)
    }

    /// A task that a call goes on as (`CreateTaskResult` of MCP's extension `io.modelcontextprotocol/tasks`), for a client
    /// that [takes tasks](crate::task_request::takes_tasks). The path puts its own name of the task into it.
    pub fn task(mut object: Map<String, Value>) -> Self {
        object.insert("resultType".into(), "task".into());
        Self::of_members(object)
    }

    /// Tells whether it is a [task](Self::task). Results have content.
    pub fn is_task(&self) -> bool {
        let members = self.object.as_ref().filter(|members| !members.contains_key("content"));
        members.and_then(|members| members.get("resultType")).is_some_and(|kind| kind == "task")
    }

    /// Adds structured content. MCP allows objects only (up to 2025-11-25), so another value is left out.
    #[must_use]
    pub fn with_structured_content(mut self, value: Value) -> Self {
        if value.is_object() {
            self.object_mut().insert("structuredContent".into(), value);
        }
        self
    }

    /// Both results in one: the blocks of `self`, then those of `last`, and `last`'s verdict.
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

    /// The content blocks. Those of a tool that is ours are never none.
    pub fn content(&self) -> &[Value] {
        self.as_object().get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The content blocks, to change them in place.
    pub fn content_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.object_mut().get_mut("content").and_then(Value::as_array_mut)
    }

    /// The same, whose blocks are all that the tool says: what is added from here on is said by others. Counts once.
    #[must_use]
    pub fn said_by_tool(mut self) -> Self {
        let blocks = if self.text.is_some() { 1 } else { self.content().len() };
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
        self.take_structured_content();
        let object = self.object_mut();
        object.insert("content".into(), blocks.into());
        object.shift_remove("isError");
        if is_error {
            object.insert("isError".into(), true.into());
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
        self.object.as_ref()?.get("structuredContent")
    }

    /// Takes the structured content out.
    pub fn take_structured_content(&mut self) -> Option<Value> {
        self.object.as_mut()?.shift_remove("structuredContent")
    }

    /// The members beside content, structured content and `isError`, `_meta` among them.
    pub fn rest(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.object.iter().flatten().filter(|(name, _)| !is_content(name))
    }

    /// Takes them out.
    pub fn take_rest(&mut self) -> Map<String, Value> {
        let Some(object) = &mut self.object else { return Map::new() };
        let (content, rest) = std::mem::take(object).into_iter().partition(|(name, _)| is_content(name));
        *object = content;
        rest
    }

    /// Adds a member to the result's `_meta`, which is for programs. Where `_meta` is no object nothing happens.
    pub fn insert_meta(&mut self, name: &str, value: Value) {
        let meta = self.object_mut().entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(name.to_owned(), value);
        }
    }

    /// Whether the tool says that the call failed.
    pub fn is_error(&self) -> bool {
        self.object.as_ref().is_some_and(|members| members.get("isError") == Some(&Value::Bool(true)))
    }

    /// The kind of the failure; `None` for a success.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.error_kind
    }

    /// All text blocks, joined by line breaks.
    pub fn joined_text(&self) -> String {
        self.text.clone().unwrap_or_else(|| joined(self.content()))
    }

    /// Returns the text of a result that is known to be one text block and nothing else.
    pub fn only_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The JSON object that goes on the wire.
    pub fn as_object(&self) -> &Map<String, Value> {
        let of_text = || Box::new(of_content(self.text.iter().cloned().map(text_block).collect()));
        self.object.as_ref().unwrap_or_else(|| self.object_of_text.get_or_init(of_text))
    }

    /// Returns the object to change it.
    fn object_mut(&mut self) -> &mut Map<String, Value> {
        let text = self.text.take();
        self.object_of_text.take();
        self.object.get_or_insert_with(|| of_content(text.map(text_block).into_iter().collect()))
    }

    /// The JSON object that goes on the wire.
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

/// A text block as JSON has it, without a copy of its text.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[cfg(feature = "serde")]
impl<'a> TextBlock<'a> {
    /// Creates the block of this text.
    pub fn new(text: &'a str) -> Self {
        Self { r#type: "text", text }
    }
}

/// A text block.
pub fn text_block(text: String) -> Value {
    let mut block = Map::with_capacity(2);
    block.insert("type".into(), "text".into());
    block.insert("text".into(), text.into());
    block.into()
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
    fn a_text_is_the_same_result_as_its_block() {
        let (text, block) = (ToolResult::text("x"), ToolResult::of_blocks(vec![text_block("x".into())]));
        assert_eq!((text.only_text(), block.only_text()), (Some("x"), None));
        assert_eq!(text, block);
        let changes: [fn(ToolResult) -> ToolResult; 6] = [
            |result| result,
            |result| result.with_block(text_block("y".into())),
            |result| result.with_structured_content(json!({"a": 1})),
            |result| result.followed_by(ToolResult::error(ErrorKind::Io, "z")),
            |result| result.said_by_tool().said_as(vec!["z".into()], true, None),
            |mut result| {
                result.insert_meta("k", json!(1));
                result.content_mut().unwrap().push(json!({"type": "image"}));
                result
            },
        ];
        for change in changes {
            let (text, block) = (change(text.clone()), change(block.clone()));
            assert_eq!((text.joined_text(), text.is_error()), (block.joined_text(), block.is_error()));
            assert_eq!(text.said_text(), block.said_text());
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
    fn partial_output_stands_before_the_error() {
        let both = ToolResult::text("half").followed_by(ToolResult::error(ErrorKind::Timeout, "too slow"));
        assert_eq!(
            (both.joined_text().as_str(), both.is_error(), both.error_kind()),
            ("half\ntoo slow", true, Some(ErrorKind::Timeout))
        );
    }
}
