//! A tool: its arguments and what it does, in one type.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};
use toolstead_infrastructure::builtin::{BuiltInTool, ToolContext};

/// Returns tomorrow's weather from a table.
pub struct Forecast;

/// What the tool takes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The city, such as "Bern".
    city: String,
}

const TABLE: &[(&str, &str, i32)] = &[("Bern", "sunny", 21), ("Bergen", "rain", 9)];

impl BuiltInTool for Forecast {
    const NAME: &str = "forecast";
    const TITLE: &str = "Forecast";
    const DESCRIPTION: &str = "Returns tomorrow's weather in a city. Use it to plan a day.";
    const CATEGORY: Category = Category::Utility;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"city": "Bern"}"#;
    type Input = Input;

    async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let known = TABLE.iter().find(|(city, ..)| *city == input.city).ok_or_else(|| {
            let cities: Vec<&str> = TABLE.iter().map(|(city, ..)| *city).collect();
            ToolFailure::new(ErrorKind::NotFound, format!("there is no forecast for `{}`", input.city))
                .next(format!("Ask for one of {}.", cities.join(", ")))
        })?;
        let (city, sky, degrees) = known;
        Ok(ToolResult::text(format!("Tomorrow in {city}: {sky}, {degrees} °C"))
            .with_structured_content(json!({"city": city, "sky": sky, "degrees_celsius": degrees})))
    }
}
