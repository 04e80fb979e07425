//! A provider: it lists its tools, says what a call would touch, and runs it.

use async_trait::async_trait;
use serde_json::json;
use toolstead_domain::{
    Access, CallContext, CallOutcome, Category, ProviderListError, ServerName, Tool, ToolCall, ToolFailure, ToolName,
    ToolProvider, ToolResult, ToolSource,
};

/// The weather stations of a country.
pub struct Stations;

#[async_trait]
impl ToolProvider for Stations {
    fn name(&self) -> &str {
        "stations"
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        let failed = |error: &dyn std::error::Error| ProviderListError {
            provider: "stations".into(),
            reason: error.to_string(),
        };
        let server = ServerName::parse("stations").map_err(|error| failed(&error))?;
        let definition = json!({
            "name": "nearest",
            "description": "Names the weather station nearest to a city.",
            "inputSchema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
            "annotations": {"readOnlyHint": true},
        });
        let definition = definition.as_object().cloned().unwrap_or_default();
        let name = ToolName::for_upstream(&server, "nearest");
        Ok(vec![Tool::new(name, definition, Category::Utility, ToolSource::Embedded(server))])
    }

    async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn call(&self, call: &ToolCall, _: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let city = call.arguments.get("city").and_then(|city| city.as_str()).unwrap_or_default();
        Ok(CallOutcome::Done(ToolResult::text(format!("The station nearest to {city} is {city}-Airport."))))
    }
}
