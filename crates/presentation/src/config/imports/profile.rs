//! Translates profiles of clai, and the models named in files of clai, kodelet, micro-x and Claude Code, to Toolstead's
//! own keys.

use crate::config::{
    imports::at,
    sections::policy::{is_known_tool, is_of_mcp},
    servers::foreign_servers,
    tree::{
        check::PathBase,
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};
use std::path::Path;

/// Default address of Ollama.
const OLLAMA: &str = "http://127.0.0.1:11434/v1";

/// Settings of a model in a file, each with its origin.
#[derive(Default)]
struct ForeignModelSettings {
    provider: Option<(String, Origin)>,
    model: Option<(String, Origin)>,
    weak_model: Option<(String, Origin)>,
    /// Other members for the model's table.
    settings: Vec<Member>,
}

/// A model that another system names.
struct ResolvedForeignModel {
    provider: &'static str,
    model: String,
    base_url: Option<&'static str>,
}

/// Translates the file to a profile, its models and its servers. Adds notes about entries without an equivalent.
pub(super) fn translate(
    root: Node,
    path: &Path,
    base: PathBase<'_>,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> Vec<Node> {
    let Node { content, origin } = root;
    let NodeContent::Table(members) = content else {
        return vec![Node { content, origin }];
    };
    let mut name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (mut named, mut profile, mut roots, mut ignored) =
        (ForeignModelSettings::default(), Vec::new(), Vec::new(), Vec::new());
    for Member { name: key, origin, node } in members {
        let content = node.content;
        match (key.as_str(), content) {
            ("name", NodeContent::Text(text)) => name = text,
            ("provider" | "Provider", NodeContent::Text(text)) => named.provider = Some((text, origin)),
            ("model" | "Model", NodeContent::Text(text)) => named.model = Some((text, origin)),
            ("weak_model", NodeContent::Text(text)) => named.weak_model = Some((text, origin)),
            ("max_tokens" | "MaxTokens", content) => named.set("max_output_tokens", content, &origin),
            ("thinking_budget_tokens", content) => named.set("thinking_tokens", content, &origin),
            ("reasoning_effort", content) => named.set("reasoning_effort", content, &origin),
            ("temperature" | "Temperature", content) => named.set("temperature", content, &origin),
            ("prompt", NodeContent::Text(text)) if text.trim().is_empty() => {}
            ("prompt", content @ NodeContent::Text(_)) => profile.push(member("prompt", content, &origin)),
            ("use_tools" | "use-tools", content) => profile.push(member("use_tools", content, &origin)),
            ("tools", NodeContent::List(nodes)) => {
                let chosen = nodes.into_iter().filter(|node| is_chosen(node, notes)).collect();
                profile.push(member("tools", NodeContent::List(chosen), &origin));
            }
            // A restriction is never ignored: an invalid value is reported when it is checked.
            ("tools", content) => profile.push(member("tools", content, &origin)),
            ("mcp_servers" | "mcp-servers" | "mcpServers", NodeContent::Table(servers)) => {
                let names = servers.iter().map(|one| at(&one.origin, NodeContent::Text(one.name.clone()))).collect();
                profile.push(member("mcp_servers", NodeContent::List(names), &origin));
                for server in servers {
                    match foreign_servers::as_configuration(server, base, notes) {
                        Ok(root) => roots.push(root),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            (key, _) => ignored.push(format!("`{key}`")),
        }
    }
    if !ignored.is_empty() {
        let message = format!("keys without a meaning for profiles are not read: {}", ignored.join(", "));
        notes.push(Problem::new(origin.clone(), message));
    }
    let ForeignModelSettings { provider, model, weak_model, settings } = named;
    let provider = provider.as_ref().map(|(word, origin)| (word.as_str(), origin));
    let models = [(model, settings, true), (weak_model, Vec::new(), false)];
    for (named, settings, is_of_profile) in models {
        let Some((text, place)) = named else { continue };
        match resolve_model(&text, provider) {
            Ok(found) => {
                let own = found.model.clone();
                if is_of_profile {
                    profile.push(member("model", NodeContent::Text(own.clone()), &place));
                }
                roots.push(section("models", &own, model_table(found, settings, &place), &place));
            }
            Err(reason) => notes.push(Problem::new(place, reason)),
        }
    }
    if !profile.is_empty() {
        roots.push(section("profiles", &name, profile, &origin));
    }
    roots
}

impl ForeignModelSettings {
    /// Sets a key, unless the value is empty. kodelet writes 0 for a number that is not set.
    fn set(&mut self, key: &str, content: NodeContent, origin: &Origin) {
        let is_nothing = match &content {
            NodeContent::Integer(number) => *number == 0 && key == "max_output_tokens",
            NodeContent::Text(text) => text.is_empty(),
            NodeContent::Other(what) => *what == "nothing",
            _ => false,
        };
        if !is_nothing {
            self.settings.push(member(key, content, origin));
        }
    }
}

fn model_table(found: ResolvedForeignModel, settings: Vec<Member>, origin: &Origin) -> Vec<Member> {
    let text = |key, text: String| member(key, NodeContent::Text(text), origin);
    let address = found.base_url.map(|url| text("base_url", url.to_owned()));
    let own = [text("provider", found.provider.to_owned()), text("model", found.model)];
    own.into_iter().chain(address).chain(settings).collect()
}

/// Returns the name of the model at its provider, and the provider: the one in the file, or else the one that the
/// model's name implies.
///
/// # Errors
/// Advice about a model that is not known here.
fn resolve_model(text: &str, provider: Option<(&str, &Origin)>) -> Result<ResolvedForeignModel, String> {
    let model = |provider, model: &str| Ok(ResolvedForeignModel { provider, model: model.to_owned(), base_url: None });
    // Claude Code uses short names, and appends a large context window in brackets.
    let plain = text.split('[').next().unwrap_or(text);
    let plain = match plain {
        "sonnet" => "claude-sonnet-4-5",
        "opus" => "claude-opus-4-5",
        "haiku" => "claude-haiku-4-5",
        other => other,
    };
    if let Some(name) = plain.strip_prefix("ollama:") {
        return Ok(ResolvedForeignModel { provider: "openai", model: name.to_owned(), base_url: Some(OLLAMA) });
    }
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| plain.starts_with(beginning));
    match provider.map(|(word, _)| word.to_ascii_lowercase()).as_deref() {
        Some("anthropic") => model("anthropic", plain),
        Some("openai") => model("openai", plain),
        Some("google" | "gemini") => model("gemini", plain),
        None if begins(&["claude-"]) => model("anthropic", plain),
        None if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) => model("openai", plain),
        None if begins(&["gemini-"]) => model("gemini", plain),
        _ => Err(format!(
            "the model `{text}` is left out, because its provider is unknown; add it to `[models]`, and its name to \
             the profile"
        )),
    }
}

/// Returns `true` if an entry of a list of tools names a tool that exists in Toolstead, and adds a note if it does not.
/// Entries with signs or commas are not accepted, because they would adjust the selection.
fn is_chosen(node: &Node, notes: &mut Vec<Problem>) -> bool {
    // Anything but a text is reported when the list is checked.
    let NodeContent::Text(text) = &node.content else { return true };
    let is_name = !text.contains(',') && !text.trim_start().starts_with(['+', '-']);
    let is_chosen = is_name && (text.contains('*') || is_of_mcp(text) || is_known_tool(text));
    if !is_chosen {
        let message = format!("no tool is called `{text}` here: it is not chosen");
        notes.push(Problem::new(node.origin.clone(), message));
    }
    is_chosen
}

fn member(name: &str, content: NodeContent, origin: &Origin) -> Member {
    Member { name: name.to_owned(), origin: origin.clone(), node: at(origin, content) }
}

/// Creates a table that contains a single table.
fn section(section: &str, name: &str, members: Vec<Member>, origin: &Origin) -> Node {
    let table = member(name, NodeContent::Table(members), origin);
    at(origin, NodeContent::Table(vec![member(section, NodeContent::Table(vec![table]), origin)]))
}
