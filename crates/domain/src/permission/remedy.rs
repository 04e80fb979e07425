//! Changes that would allow a call that was refused, in the words of the program that refused it.

use crate::permission::rule::RuleOrigin;
use std::fmt;

/// A change that would allow a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// These allow rules together, the narrowest that do; never none.
    Allow(Vec<String>),
    /// Another text of the rule that decided.
    ChangeRule {
        /// Its text.
        rule: String,
        /// Its place.
        origin: RuleOrigin,
    },
    /// The tool must be among those that are chosen.
    Choose(String),
    /// The folder must be a root of the workspace, or one that may be written.
    OpenFolder,
}

/// The words of a program for what would allow a call: a refusal is to name what helps in that program.
pub trait RemedyWords: Send + Sync + fmt::Debug {
    /// The remedy as sentences; `None` where this program has none.
    fn say(&self, remedy: &Remedy) -> Option<String>;
}

/// Words that hold in every program, as they name rules and roots and no way to set them.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainWords;

impl RemedyWords for PlainWords {
    fn say(&self, remedy: &Remedy) -> Option<String> {
        Some(match remedy {
            Remedy::Allow(rules) => {
                let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
                format!("To allow it, allow {}.", rules.join(" and "))
            }
            Remedy::ChangeRule { rule, origin } => format!("To allow it, change `{rule}` in {origin}."),
            Remedy::Choose(tool) => format!("To offer it, choose `{tool}` as well."),
            Remedy::OpenFolder => "To work there, make the folder a root of the workspace.".into(),
        })
    }
}
