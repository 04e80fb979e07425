//! Suggestions for users of an MCP client that starts Toolstead.

use super::{flags_and_operands, signing_in, trusting};
use toolstead_domain::{DefaultSuggestions, Suggestion, SuggestionFormatter};

/// Suggestions for users of an MCP client that starts Toolstead.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct McpSuggestions;

impl SuggestionFormatter for McpSuggestions {
    fn format(&self, suggestion: &Suggestion) -> Option<String> {
        Some(match suggestion {
            Suggestion::AllowRules(rules) => {
                let (flags, rules) = flags_and_operands(rules);
                format!(
                    "To allow it, add `{flags}` to the arguments of Toolstead in the settings of the MCP client, or for \
                     good: `toolstead permissions allow {rules}`."
                )
            }
            Suggestion::SelectTool(tool) => {
                format!(
                    "To offer it, include `{tool}` in `--tools` in the settings of the MCP client, or in `[tools] select`."
                )
            }
            Suggestion::AddRoot => "To work there, open the folder in the MCP client, or add `--root DIR` to the \
                                    arguments of Toolstead in its settings."
                .into(),
            Suggestion::TrustFile(path) => {
                format!("Review it, then trust it with `{}`.", trusting(path))
            }
            Suggestion::ChangeSettings(change) => format!("In the configuration of Toolstead, {change}."),
            Suggestion::SignIn { grant, principal } => format!(
                "`{}`, at the machine that Toolstead runs on, signs in.",
                signing_in(grant, principal.as_deref())
            ),
            Suggestion::PrepareMachine(step) => {
                format!("To make it possible, {step}; `toolstead doctor` shows the state.")
            }
            Suggestion::InspectServer { server, reason } => {
                format!("The MCP server `{server}` behind Toolstead: {reason}; `toolstead servers` shows more.")
            }
            Suggestion::ListTools => "`tools/list` returns the tools.".into(),
            Suggestion::ListResources => {
                "`resources/list` and `resources/templates/list` return what can be read.".into()
            }
            Suggestion::ListPrompts => "`prompts/list` returns the prompts.".into(),
            Suggestion::DetachCall => return None,
            Suggestion::ChangeRule { .. } | Suggestion::SetUpTool(_) => return DefaultSuggestions.format(suggestion),
        })
    }
}
