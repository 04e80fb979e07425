//! Suggestions for users of the command line.

use super::{flags_and_operands, signing_in, trusting};
use toolstead_domain::{DefaultSuggestions, Suggestion, SuggestionFormatter};

/// Formats suggestions for users of the command line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CliSuggestionFormatter;

impl SuggestionFormatter for CliSuggestionFormatter {
    fn format(&self, suggestion: &Suggestion) -> Option<String> {
        Some(match suggestion {
            Suggestion::AllowRules(rules) => {
                let (flags, rules) = flags_and_operands(rules);
                format!("To allow it, run with `{flags}`, or for good: `toolstead permissions allow {rules}`.")
            }
            Suggestion::SelectTool(tool) => format!("To offer it, include `{tool}` in `--tools` or `[tools] select`."),
            Suggestion::AddRoot => {
                "To work there, start with `--root DIR` or add the folder to `[workspace] roots` in \
                                    the configuration."
                    .into()
            }
            Suggestion::TrustFile(path) => {
                format!("Review it, then trust it with `{}`.", trusting(path))
            }
            Suggestion::ChangeSettings(change) => format!("In the configuration, {change}."),
            Suggestion::SignIn { grant, principal } => {
                format!("`{}` signs in.", signing_in(grant, principal.as_deref()))
            }
            Suggestion::PrepareMachine(step) => {
                format!("To make it possible, {step}; `toolstead doctor` shows the state.")
            }
            Suggestion::DetachCall => "Give `\"detach\": true` among the arguments of `toolstead call` itself.".into(),
            Suggestion::InspectServer { server, reason } => {
                format!("The MCP server `{server}`: {reason}; `toolstead servers` shows more.")
            }
            Suggestion::ListTools => "`toolstead tools` lists the tools.".into(),
            Suggestion::ListResources => "`toolstead resources` lists what can be read.".into(),
            Suggestion::ListPrompts => "`toolstead prompts` lists the prompts.".into(),
            Suggestion::ChangeRule { .. } | Suggestion::SetUpTool(_) => return DefaultSuggestions.format(suggestion),
        })
    }
}
