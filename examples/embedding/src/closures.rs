use toolstead_presentation::prelude::*;

#[derive(Deserialize, JsonSchema)]
pub struct Sum {
    /// The numbers to add.
    #[serde(default)]
    numbers: Vec<f64>,
}

/// Receives its arguments as a type.
pub fn sum() -> CustomTool {
    let sum = tool_fn("sum", "Adds numbers.", |sum: Sum, _| {
        Box::pin(async move { Ok(json!({"sum": sum.numbers.iter().sum::<f64>()})) })
    });
    sum.touching_nothing().with_category(Category::Utility).with_tags(["arithmetic"])
}

/// Receives arguments that match a JSON schema, and reads a file.
pub fn word_count() -> CustomTool {
    let count = tool_fn("word_count", "Counts the words of a file.", |file: Map<String, Value>, run| {
        Box::pin(async move {
            let text = run.read(path(&file)).await?;
            Ok(format!("{} words", String::from_utf8_lossy(&text).split_whitespace().count()))
        })
    });
    let count = count.touches(|file: Map<String, Value>, world| {
        Box::pin(async move { Ok(Access::ReadPath(world.access(path(&file)).await?).into()) })
    });
    count.with_input_schema(json!({
        "type": "object",
        "properties": {"path": {"type": "string", "default": "README.md"}},
        "additionalProperties": false,
    }))
}

fn path(file: &Map<String, Value>) -> &str {
    file.get("path").and_then(Value::as_str).unwrap_or_default()
}
