//! The tool `help`.

use crate::builtin::tool_kit::{built_in_tool::BuiltInTool, tool_context::ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{
    Category, Tool, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind, tool_input_schema::nearest_name,
};

/// Tool that explains the other tools to a model.
pub(crate) struct Help;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A topic or the name of a tool. Without it: the list of tools and topics.
    #[schemars(length(max = 128))]
    #[schemars(extend("x-advertised" = ""))]
    topic: Option<String>,
}

/// Topics other than tools: name, summary for the list, text.
const TOPICS: &[(&str, &str, &str)] = &[
    (
        "paths",
        "how paths are resolved",
        "Paths are absolute, or relative to the folder that `working_directory` returns; `~/` is the home folder.\n\
         Only paths inside the workspace's roots can be used. Links are followed as long as they stay inside.\n\
         Pipes, devices and sockets are not read.",
    ),
    (
        "permissions",
        "why a call is refused, and what would allow it",
        "Every call is checked against rules before it runs: deny overrides ask, ask overrides allow.\n\
         Reading inside the roots is allowed unless a rule says otherwise; changing files needs approval, and is \
         refused if no approver is available.\n\
         A refusal names the rule and what would allow the call. Report that to your user: no other \
         form of the call avoids the rule.",
    ),
    (
        "finding",
        "which tool finds what",
        "`glob` finds files by name, `grep` finds text in files, `list_directory` lists a folder.\n\
         Begin with `grep` in its default mode (the files that match), then show lines with \
         `output_mode: \"content\"`.\n\
         When a result says that it was cut, narrow the search with `path`, `glob` or `file_type`.",
    ),
    (
        "outputs",
        "large results, handles, and how to pass a value on without repeating it",
        "A result that is too large is cut in its middle, and the cut names a handle such as `o17`: the whole result is \
         stored under it, unchanged, for some days. `read_file` and `grep` take a handle wherever they take a path: \
         `{\"path\": \"o17\", \"offset\": 310}`.\n\
         A handle can also be an argument of any tool, at any depth: `{\"$ref\": \"o17\"}` is replaced by the whole \
         content before the tool runs, `{\"$ref\": \"o17\", \"select\": \"/rows/3\"}` by a part of JSON (a JSON Pointer). \
         So `write_file` with `{\"path\": \"a.txt\", \"content\": {\"$ref\": \"o17\"}}` saves it without repeating it. \
         Where a string is required, JSON is passed as text. An object with any other member is plain data.\n\
         If you only pass a result on, add `\"$max_output\": 200` to the arguments of any tool: at most \
         that many characters of its result are shown, and all of it is stored as above.",
    ),
    (
        "editing",
        "how to change files safely",
        "Read the file first. `edit_file` replaces text that occurs exactly once; include enough surrounding lines \
         to make it unique, without the line numbers that `read_file` shows. The rest of the file is unchanged, \
         line endings included.\n\
         `write_file` is for new files, and for replacing a whole file. Both write in one step: a file is never left \
         half written.",
    ),
];

impl BuiltInTool for Help {
    const NAME: &str = "help";
    const TITLE: &str = "Help";
    const DESCRIPTION: &str = "Explains the built-in tools: lists all, or explains one tool or topic in full. Call it when unsure which \
         tool to use, or why a call was refused.";
    const BRIEF: &str = "Explains a tool with all its parameters (lists name the usual ones) and an example, or a topic: `paths`, `permissions`, `finding`, `outputs`, `editing`.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["documentation"];
    const KEYWORDS: &str = "documentation guide instructions manual support usage";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"topic": "editing"}"#;
    type Input = Input;

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        // Tools that this caller may never call, or that its list has no use for, are not mentioned.
        let (grant, calls) = (run.context().grant, run.context().calls);
        let is_offered = |tool: &&Tool| tool.is_callable() && grant.advertises(tool) && calls.offers(tool);
        let tools: Vec<&Tool> = run.tools().filter(is_offered).collect();
        let topic = input.topic.as_deref().map(str::trim).unwrap_or_default();
        if topic.is_empty() {
            return Ok(ToolResult::text(overview(&tools)));
        }
        if let Some((_, _, text)) = TOPICS.iter().find(|(name, ..)| *name == topic) {
            return Ok(ToolResult::text(*text));
        }
        let named =
            |tool: &&&Tool| tool.name().as_str() == topic || tool.aliases.iter().any(|alias| alias.name == topic);
        if let Some(tool) = tools.iter().find(named) {
            return Ok(ToolResult::text(explained(tool)));
        }
        let known = tools.iter().map(|tool| tool.name().as_str()).chain(TOPICS.iter().map(|(name, ..)| *name));
        let failure = ToolFailure::new(ErrorKind::NotFound, format!("`{topic}` is not a tool or topic"));
        Err(match nearest_name(topic, known) {
            Some(name) => failure.next(format!("Did you mean `{name}`?")),
            None => failure.next("Call `help` without a topic for the list."),
        })
    }
}

fn overview(tools: &[&Tool]) -> String {
    let mut text = String::from("Tools:\n");
    for category in Category::ALL {
        for tool in tools.iter().filter(|tool| tool.category == *category) {
            text.push_str(&format!("- `{}` ({category}): {}\n", tool.name(), first_sentence(tool.description())));
        }
    }
    text.push_str("\nTopics:\n");
    for (name, line, _) in TOPICS {
        text.push_str(&format!("- `{name}`: {line}\n"));
    }
    text.push_str(
        "\nCall `help` with a `topic` for more. Tools of MCP servers are named `mcp__server__tool`; they are in your \
         list of tools.",
    );
    text
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn explained(tool: &Tool) -> String {
    let mut text = format!("`{}`: {}\n", tool.name(), tool.description());
    let schema = tool.input_schema();
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut lines = properties
        .map(|(name, property)| {
            let text_of = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
            let need = if required(name) { ", required" } else { "" };
            let default = property.get("default").map(|value| format!(" Default: {value}.")).unwrap_or_default();
            format!("- `{name}` ({}{need}): {}{default}\n", text_of("type"), text_of("description"))
        })
        .peekable();
    text.push_str(if lines.peek().is_some() { "\nParameters:\n" } else { "\nNo parameters.\n" });
    text.extend(lines);
    for example in schema.get("examples").and_then(Value::as_array).into_iter().flatten() {
        text.push_str(&format!("\nExample: {example}\n"));
    }
    let mut aliases: Vec<&str> = tool.aliases.iter().map(|alias| alias.name).collect();
    aliases.retain(|name| *name != tool.name().as_str());
    if !aliases.is_empty() {
        text.push_str(&format!("\nAlso understood as: {}\n", aliases.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn tools_and_topics_are_listed_and_explained() {
        let bench = Bench::new();
        let list = bench.text("help", json!({}));
        assert!(list.contains("- `read_file` (file): ") && list.contains("- `editing`: "), "{list}");
        assert!(bench.text("help", json!({"topic": "paths"})).contains("working_directory"));
        let tool = bench.text("help", json!({"topic": "Grep"}));
        assert!(tool.starts_with("`grep`: ") && tool.contains("- `pattern` (string, required): "), "{tool}");
        assert!(tool.contains("Also understood as: Grep"), "{tool}");
    }

    #[test]
    fn help_omits_tools_that_rules_deny() {
        let bench = Bench::with_deny(&["grep"]);
        assert!(!bench.text("help", json!({})).contains("- `grep`"));
        assert!(bench.call("help", json!({"topic": "grep"})).is_err());
    }

    #[test]
    fn an_unknown_topic_is_answered_with_the_nearest_one() {
        let answer = Bench::new().call("help", json!({"topic": "read_fil"})).unwrap_err().text();
        assert_eq!(answer, "`read_fil` is not a tool or topic. Did you mean `read_file`?");
    }
}
