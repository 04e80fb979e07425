//! `Bash(git *)`: commands.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::{Access, CommandAccess},
    permission::{
        command_pattern::{CommandPattern, CommandPatternOutline, PatternPurpose},
        path_pattern::PatternContext,
        rule::{Effect, RuleSubject},
    },
    workspace_roots::WorkspaceRoots,
};
use std::sync::Arc;

#[derive(Debug)]
struct CommandRule(CommandPattern);

pub(super) fn parse(text: &str, effect: Effect, base: &PatternContext) -> RuleKindResult {
    let purpose = match effect {
        Effect::Allow => PatternPurpose::Covering { transparent_programs: base.transparent_programs },
        Effect::Ask | Effect::Deny => PatternPurpose::Catching,
    };
    Ok(Arc::new(CommandRule(CommandPattern::parse(text, purpose)?)))
}

impl RuleMatcher for CommandRule {
    fn subject(&self) -> RuleSubject {
        RuleSubject::Command
    }

    fn covers(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        matches!(access, Access::RunCommand(command) if self.0.covers(command))
    }

    fn catches(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        matches!(access, Access::RunCommand(command) if self.0.catches(command))
    }

    fn misses(&self, command: &CommandAccess) -> bool {
        self.0.misses(command)
    }

    fn fits_any_program(&self) -> bool {
        self.0.fits_any_program()
    }

    fn is_one_command(&self) -> bool {
        !self.0.has_wildcard()
    }

    fn outline(&self) -> Option<CommandPatternOutline> {
        self.0.outline()
    }
}
