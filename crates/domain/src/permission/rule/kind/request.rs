//! `Resource(up:demo://*)`, `Prompt(up:review)`: resources and prompts of one server.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::Access,
    permission::{
        path_pattern::PatternContext,
        rule::{Effect, RuleSubject},
    },
    server_name::ServerName,
    tool_selection::{patterns_meet, wildcard_match},
    workspace_roots::WorkspaceRoots,
};
use std::{borrow::Cow, sync::Arc};

/// Maximum length of a URI template that is compared with a pattern expression by expression, in bytes. A deny or ask
/// rule catches every longer one.
const LONGEST_TEMPLATE: usize = 8_192;

/// Patterns of the name of a server and of what is requested from it, with `*` for any characters.
#[derive(Debug)]
struct ResourceOrPromptRule {
    subject: RuleSubject,
    server: String,
    name: String,
}

pub(super) fn parse_resource(text: &str, effect: Effect, _: &PatternContext) -> RuleKindResult {
    if text.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//")) {
        return Err(format!("the server's name is missing: write `Resource(SERVER:{text})`"));
    }
    parse(RuleSubject::Resource, text, effect)
}

pub(super) fn parse_prompt(text: &str, effect: Effect, _: &PatternContext) -> RuleKindResult {
    parse(RuleSubject::Prompt, text, effect)
}

fn parse(subject: RuleSubject, text: &str, effect: Effect) -> RuleKindResult {
    let form = match subject {
        RuleSubject::Prompt => "Prompt(SERVER:NAME)",
        _ => "Resource(SERVER:URI)",
    };
    let Some((server, name)) = text.split_once(':').map(|(server, name)| (server.trim(), name.trim())) else {
        return Err(format!("`{text}` names no server: write `{form}`, with `*` for any characters"));
    };
    if name.is_empty() {
        return Err(format!("nothing follows the server's name: write `{form}`, or `*` for everything"));
    }
    // A star can match any part of a name, and is replaced by a letter that is valid everywhere.
    if ServerName::parse(&server.replace('*', "a")).is_err() {
        return Err(format!("`{server}` is not the name of a server: write `{form}`"));
    }
    if effect == Effect::Allow && server.contains('*') {
        return Err(format!("an allow rule must name the server without `*`: write `{form}`"));
    }
    Ok(Arc::new(ResourceOrPromptRule { subject, server: server.into(), name: name.into() }))
}

impl ResourceOrPromptRule {
    /// Returns the name or URI that the access requests, if this rule applies to such a request to its server.
    fn requested<'a>(&self, access: &'a Access) -> Option<&'a str> {
        let (subject, server, name) = match access {
            Access::ReadResource { server, uri } => (RuleSubject::Resource, server, uri),
            Access::GetPrompt { server, prompt } => (RuleSubject::Prompt, server, prompt),
            _ => return None,
        };
        (subject == self.subject && wildcard_match(&self.server, server.as_str())).then_some(name)
    }

    fn is_about_everything(&self) -> bool {
        self.name.bytes().all(|byte| byte == b'*')
    }

    /// Returns `true` if the server may resolve this URI to one that the pattern does not match.
    fn may_lead_elsewhere(&self, name: &str) -> bool {
        self.subject == RuleSubject::Resource && has_dot_segment(name)
    }
}

impl RuleMatcher for ResourceOrPromptRule {
    fn subject(&self) -> RuleSubject {
        self.subject
    }

    /// Covers a template only if the pattern matches each of its URIs, and a URI with dot segments only if the pattern
    /// is `*` or that URI, word for word.
    fn covers(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        self.requested(access).is_some_and(|name| {
            (self.is_about_everything() || self.name == name || !self.may_lead_elsewhere(name))
                && wildcard_match(&self.name, name)
                && (!name.contains('{') || wildcard_match(&self.name, &opened(name)))
        })
    }

    /// Catches a template if one of its URIs matches the pattern, a URI in any escaping and case, and every URI with
    /// dot segments.
    fn catches(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        self.requested(access).is_some_and(|name| {
            let fits = |name: &str| match name.contains('{') {
                true => name.len() > LONGEST_TEMPLATE || patterns_meet(&folded(&self.name), &folded(&opened(name))),
                false => false,
            };
            wildcard_match(&self.name, name)
                || wildcard_match(&folded(&self.name), &folded(name))
                || fits(name)
                || self.may_lead_elsewhere(name)
        })
    }

    fn server(&self) -> Option<&str> {
        Some(&self.server)
    }

    fn covers_server(&self, server: &str) -> bool {
        wildcard_match(&self.server, server) && self.is_about_everything()
    }
}

/// Replaces each expression of a URI template by a star.
fn opened(template: &str) -> String {
    let mut opened = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        opened.push_str(before);
        opened.push('*');
        rest = behind.split_once('}').map_or("", |(_, behind)| behind);
    }
    opened + rest
}

/// Returns `true` if a segment of the URI is `.` or `..`, escaped at most twice.
fn has_dot_segment(uri: &str) -> bool {
    let once = folded(uri);
    folded(&once).split(['/', '\\', ':', '?', '#', ';']).any(|segment| matches!(segment, "." | ".."))
}

/// Returns the text in lower case with its percent-encoding decoded once.
fn folded(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte != b'%' && !byte.is_ascii_uppercase();
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |at: usize| bytes.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded.make_ascii_lowercase();
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}
