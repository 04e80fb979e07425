//! The tool `network_info`.

use crate::{
    builtin::{
        text::report::TextReport,
        tool_kit::{
            answer::answer, blocking::on_blocking_thread, built_in_tool::BuiltInTool, schema::output_schema,
            tool_context::ToolContext,
        },
    },
    host::interfaces::interfaces,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Tool that lists the active network interfaces.
pub(crate) struct NetworkInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Include the loopback interface.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    include_loopback: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    interfaces: Vec<Interface>,
}

#[derive(Serialize, JsonSchema)]
struct Interface {
    name: String,
    r#type: &'static str,
    is_loopback: bool,
    /// Megabits a second; absent if the driver does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mbps: Option<u64>,
    addresses: Vec<Address>,
}

#[derive(Serialize, JsonSchema)]
struct Address {
    /// `IPv4` or `IPv6`.
    family: &'static str,
    address: String,
}

impl BuiltInTool for NetworkInfo {
    const NAME: &str = "network_info";
    const TITLE: &str = "Network information";
    const DESCRIPTION: &str =
        "Lists the network interfaces that are up, with type, speed and addresses. It opens no connections.";
    const BRIEF: &str = "Lists the network interfaces with their addresses.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["host", "network"];
    const KEYWORDS: &str = "adapter connection ethernet ip lan mac wifi wireless";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"include_loopback": true}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let found = on_blocking_thread(|| {
            interfaces().map_err(|error| {
                ToolFailure::new(ErrorKind::Io, format!("the interfaces could not be read: {error}")).caused_by(error)
            })
        });
        let mut report = TextReport::titled("Network Information");
        let mut output = Output { interfaces: Vec::new() };
        for found in found.await? {
            if !found.is_up || (found.is_loopback && !input.include_loopback) {
                continue;
            }
            let mut lines = vec![
                ("Type", found.kind.to_owned()),
                ("Speed", found.speed_mbps.map_or("unknown".into(), |speed| format!("{speed} Mbps"))),
            ];
            lines.extend(found.addresses.iter().map(|address| (family(address), address.to_string())));
            report = report.section(&found.name, &lines);
            let address = |address: &IpAddr| Address { family: family(address), address: address.to_string() };
            output.interfaces.push(Interface {
                name: found.name,
                r#type: found.kind,
                is_loopback: found.is_loopback,
                speed_mbps: found.speed_mbps,
                addresses: found.addresses.iter().map(address).collect(),
            });
        }
        if output.interfaces.is_empty() {
            report = report.line("No interface is up.");
        }
        answer(report.into_text(), &output)
    }
}

fn family(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn the_loopback_interface_is_listed_only_on_request() {
        let bench = Bench::new();
        let loopbacks = |arguments| {
            let result = bench.call("network_info", arguments).unwrap();
            assert!(result.joined_text().starts_with("Network Information\n===================\n"));
            let interfaces = result.structured_content().unwrap()["interfaces"].as_array().unwrap().clone();
            interfaces.iter().filter(|interface| interface["is_loopback"] == true).count()
        };
        assert_eq!(loopbacks(json!({})), 0);
        assert!(loopbacks(json!({"include_loopback": true})) <= 1);
    }
}
