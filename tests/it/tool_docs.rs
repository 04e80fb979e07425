//! The pages of the built-in tools in `docs/reference/tools/`, made from the tools' definitions (`make tool-docs`).

use serde_json::Value;
use std::{fmt::Write as _, path::PathBuf, sync::Arc};
use toolstead_domain::Tool;
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, ToolEnvironment},
    sandbox::workspace::Workspace,
    system_clock::SystemClock,
};
use toolstead_presentation::composition_root::orchestration;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tools")
}

fn provider() -> InProcessTools {
    let world = ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), "Toolstead".into());
    InProcessTools::new(builtin::all(), world).unwrap()
}

/// One page: what a model reads, the parameters as a table, an example, the schema of the result.
fn page(tool: &Tool, example: &str) -> String {
    let mut page = format!("# {}\n\n{}\n\n", tool.name(), tool.description());
    let hints = tool.annotations();
    let reads = if hints.read_only_hint == Some(true) { "reads only" } else { "changes something" };
    writeln!(page, "Category: {}. It {reads}.", tool.category).unwrap();
    let mut aliases: Vec<&str> =
        tool.aliases.iter().map(|alias| alias.name).filter(|name| *name != tool.name().as_str()).collect();
    aliases.sort_unstable();
    aliases.dedup();
    if !aliases.is_empty() {
        writeln!(page, "Also understood as: `{}`.", aliases.join("`, `")).unwrap();
    }
    page += "\n## Parameters\n\n";
    let schema = tool.input_schema();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match schema["properties"].as_object() {
        Some(properties) if !properties.is_empty() => {
            page += "| parameter | type | required | default | meaning |\n| --- | --- | --- | --- | --- |\n";
            for (name, property) in properties {
                let kind = match (&property["enum"], &property["type"]) {
                    (Value::Array(words), _) => {
                        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
                    }
                    (_, Value::String(kind)) => kind.clone(),
                    (_, other) => other.to_string(),
                };
                let needed = if required.contains(&name.as_str()) { "yes" } else { "" };
                let default = property.get("default").map_or(String::new(), |default| format!("`{default}`"));
                let about = property["description"].as_str().unwrap_or("").replace('\n', " ").replace('|', "\\|");
                writeln!(page, "| `{name}` | {kind} | {needed} | {default} | {about} |").unwrap();
            }
        }
        _ => page += "None.\n",
    }
    writeln!(page, "\n## Example\n\n```sh\ntoolstead call {} '{}'\n```", tool.name(), example.replace('\'', "'\\''"))
        .unwrap();
    if let Some(output) = tool.output_schema() {
        let schema = serde_json::to_string_pretty(output).unwrap();
        writeln!(page, "\n## Structured result\n\n```json\n{schema}\n```").unwrap();
    }
    page
}

#[test]
fn each_tool_has_a_page_that_says_what_its_definition_says() {
    let provider = provider();
    let writes = std::env::var_os("TOOLSTEAD_WRITE_DOCS").is_some();
    let mut expected = vec!["README.md".to_owned()];
    let mut index = String::from(
        "# Built-in tools\n\nOne page a tool, made from its definition by `make tool-docs`.\n\n| tool | what it does |\n| --- | --- |\n",
    );
    let orchestration = orchestration();
    for tool in provider.definitions().iter().chain(orchestration.definitions()) {
        let name = tool.name();
        let example = provider.example(name.as_str()).or_else(|| orchestration.example(name.as_str()));
        let summary = tool.description().split_once(". ").map_or(tool.description(), |(first, _)| first);
        writeln!(index, "| [{name}]({name}.md) | {}. |", summary.trim_end_matches('.')).unwrap();
        check(&format!("{name}.md"), &page(tool, example.unwrap()), writes);
        expected.push(format!("{name}.md"));
    }
    check("README.md", &index, writes);
    let mut found: Vec<String> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "every page belongs to a tool");
}

#[track_caller]
fn check(name: &str, expected: &str, writes: bool) {
    let path = folder().join(name);
    if writes {
        std::fs::create_dir_all(folder()).unwrap();
        std::fs::write(&path, expected).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(current, expected, "docs/reference/tools/{name} is out of date: run `make tool-docs`");
}
