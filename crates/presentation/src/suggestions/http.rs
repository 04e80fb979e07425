//! Suggestions for users of a server that is reached over HTTP: its operator carries them out.

use super::{flags_and_operands, signing_in, trusting};
use toolstead_domain::{DefaultSuggestions, Suggestion, SuggestionFormatter};

/// Suggestions for users of a server that is reached over HTTP: its operator carries them out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HttpSuggestions;

impl SuggestionFormatter for HttpSuggestions {
    fn format(&self, suggestion: &Suggestion) -> Option<String> {
        Some(match suggestion {
            Suggestion::AllowRules(rules) => {
                let (flags, rules) = flags_and_operands(rules);
                format!(
                    "To allow it, the operator starts the server with `{flags}`, or for good: `toolstead permissions \
                     allow {rules}`."
                )
            }
            Suggestion::SelectTool(tool) => {
                format!("To offer it, the operator includes `{tool}` in `--tools` or `[tools] select` of the server.")
            }
            Suggestion::AddRoot => {
                "To work there, the operator starts the server with `--root DIR`, or adds the folder \
                                    to `[workspace] roots` in its configuration."
                    .into()
            }
            Suggestion::TrustFile(path) => {
                format!("The operator reviews it, and then trusts it with `{}`.", trusting(path))
            }
            Suggestion::ChangeSettings(change) => {
                format!("The operator can change it: in the configuration of the server, {change}.")
            }
            Suggestion::SignIn { grant, principal } => {
                format!("`{}`, at the machine of the server, signs in.", signing_in(grant, principal.as_deref()))
            }
            Suggestion::PrepareMachine(step) => {
                format!("On the machine of the server: {step}; `toolstead doctor` shows the state.")
            }
            Suggestion::InspectServer { server, reason } => {
                format!(
                    "The MCP server `{server}` behind this one: {reason}; `toolstead servers` shows the operator more."
                )
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
