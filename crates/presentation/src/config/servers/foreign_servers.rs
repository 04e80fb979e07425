//! Servers that other MCP clients define in files of a project. They are listed, and used once the user trusts the
//! file.

use crate::config::{
    imports::prohibitions,
    is_trusted,
    layers::{Layer, LayerKind, folders::Folders},
    tree::{
        check::{Base, check},
        format::Format,
        node::{Content, Member, Node},
        origin::Origin,
        problem::Problem,
        source_file::{SourceFile, project_folders, project_of},
    },
    trust::TrustedFiles,
};

/// Paths of the files; the first has the highest precedence.
const FILES: &[&str] = &[".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// The keys of other clients that list the tools a server may offer: kodelet, Gemini CLI, Codex.
const ONLY_TOOLS: &[&str] = &[
    "tool_white_list",
    "includeTools",
    "enabledTools",
    "only_tools",
    "enabled_tools",
    "allowedTools",
    "allowed_tools",
];

/// The keys of other clients that list the tools a server may not offer: Roo Code, Gemini CLI, Codex.
const DENY_TOOLS: &[&str] =
    &["disabledTools", "disabled_tools", "excludeTools", "disallowedTools", "tool_black_list", "deny_tools"];

/// Returns the nearest file of each name.
pub(in crate::config) fn discover(folders: &Folders, notes: &mut Vec<Problem>) -> Vec<SourceFile> {
    let mut files = Vec::new();
    for (kind, name) in (0_u8..).map(LayerKind::Foreign).zip(FILES.iter().rev()) {
        for folder in project_folders(folders) {
            match SourceFile::read(kind, &folder.join(name)) {
                Ok(None) => continue,
                Ok(Some(file)) => files.push(file),
                Err(problem) => notes.push(problem),
            }
            break;
        }
    }
    files
}

/// Returns the servers of a file as a layer. Problems are only notes, because the file belongs to another client.
pub(in crate::config) fn layer(
    file: &SourceFile,
    folders: &Folders,
    trusted: &TrustedFiles,
    notes: &mut Vec<Problem>,
) -> Layer {
    let mut entries = Vec::new();
    match Format::Json.read(&file.text, &file.path) {
        Err(problem) => notes.push(problem),
        Ok(root) => {
            // The client starts in this folder, and relative paths in the file refer to it.
            let base = Base { folder: project_of(&file.path), home: folders.home.as_deref() };
            for server in servers(root) {
                let name = server.name.clone();
                let (found, problems) = match as_configuration(server, base, notes) {
                    Ok(server) => check(&server, base),
                    Err(problem) => (Vec::new(), vec![problem]),
                };
                if problems.is_empty() {
                    entries.extend(found);
                } else {
                    notes.extend(problems.into_iter().map(|problem| {
                        let message = format!("the server `{name}` is left out: {}", problem.message);
                        Problem::new(problem.origin, message)
                    }));
                }
            }
        }
    }
    Layer { kind: file.kind, trusted: is_trusted(file, trusted), entries }
}

/// Returns the servers in `mcpServers`, or in `servers` as VS Code writes it, at the root or in `mcp`.
fn servers(root: Node) -> Vec<Member> {
    let Content::Table(members) = root.content else { return Vec::new() };
    let tables = members.into_iter().flat_map(|table| match (table.name.as_str(), table.node.content) {
        ("mcpServers" | "McpServers" | "servers", Content::Table(servers)) => servers,
        ("mcp", content) => servers(Node { content, origin: table.node.origin }),
        _ => Vec::new(),
    });
    tables.collect()
}

/// Returns a server with Toolstead's own keys. Keys without an equivalent are omitted, with a note.
///
/// # Errors
/// A [`Problem`] if the transport is unknown, if a key may restrict the server and has no equivalent, or if two keys
/// have the same meaning.
pub(in crate::config) fn as_configuration(
    server: Member,
    base: Base<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    let Member { name, origin, node } = server;
    let content = match node.content {
        Content::Table(members) => {
            let kind = members.iter().find(|member| is_transport(&member.name)).map(kind_of_url).transpose()?.flatten();
            let (mut ignored, mut narrowing) = (Vec::new(), None);
            let ours = members.into_iter().filter_map(|mut member| {
                let known = match member.name.as_str() {
                    "command" | "args" | "env" | "cwd" | "url" | "headers" | "disabled" => member.name.clone(),
                    "envFile" | "envfile" => "env_file".into(),
                    "serverUrl" | "base_url" => "url".into(),
                    "enabled" => {
                        member.node.content = negated(member.node.content);
                        "disabled".into()
                    }
                    name if ONLY_TOOLS.contains(&name) => "only_tools".into(),
                    // GitHub Copilot.
                    "tools" if matches!(member.node.content, Content::List(_)) => "only_tools".into(),
                    name if DENY_TOOLS.contains(&name) => "deny_tools".into(),
                    name if is_transport(name) => return None,
                    name if prohibitions::may_narrow(name, &member.node.content) => {
                        narrowing.get_or_insert_with(|| (member.name.clone(), member.origin.clone()));
                        return None;
                    }
                    _ => {
                        ignored.push(format!("`{}`", member.name));
                        return None;
                    }
                };
                if let ("env_file" | "cwd", Content::Text(path)) = (known.as_str(), &mut member.node.content) {
                    *path = in_folder(path, base);
                }
                member.name = known;
                Some(member)
            });
            let mut ours: Vec<Member> = ours.collect();
            if let Some((key, origin)) = narrowing {
                let message = format!(
                    "`{key}` may narrow what it offers and is not known here; describe the server in `toolstead.toml`, with \
                     `only_tools` or `deny_tools`"
                );
                return Err(Problem::new(origin, message));
            }
            if let Some(key) = repeated(&ours) {
                let message = format!("two of its keys mean `{key}`: keep one");
                return Err(Problem::new(origin, message));
            }
            if ours.iter().any(|member| member.name == "url") {
                ours.extend(kind);
            }
            let content = Content::Table(ours);
            if !ignored.is_empty() {
                let message = format!("the server `{name}` has keys without a meaning here: {}", ignored.join(", "));
                notes.push(Problem::new(origin.clone(), message));
            }
            content
        }
        other => other,
    };
    let inside = |name: &str, content, origin: &Origin| {
        let node = Node { content, origin: origin.clone() };
        Content::Table(vec![Member { name: name.to_owned(), origin: origin.clone(), node }])
    };
    let named = inside(&name, content, &origin);
    Ok(Node { content: inside("mcp_servers", named, &origin), origin })
}

/// Returns `false` for `true` and the reverse. Other values are returned unchanged and rejected by the check.
fn negated(content: Content) -> Content {
    match content {
        Content::Boolean(value) => Content::Boolean(!value),
        other => other,
    }
}

/// Returns the first name that two members have.
fn repeated(members: &[Member]) -> Option<&str> {
    let is_repeated = |(at, member): &(usize, &Member)| members[..*at].iter().any(|one| one.name == member.name);
    members.iter().enumerate().find(is_repeated).map(|(_, member)| member.name.as_str())
}

/// Returns `true` if other clients use this key for the transport of a server.
fn is_transport(key: &str) -> bool {
    matches!(key, "type" | "transport" | "transportType" | "server_type")
}

/// Returns the `type` of a server with a URL; `None` for `stdio`, which is implied by `command`.
///
/// # Errors
/// A [`Problem`] if the type is unknown.
fn kind_of_url(named: &Member) -> Result<Option<Member>, Problem> {
    let Content::Text(kind) = &named.node.content else { return Ok(None) };
    let word = match kind.as_str() {
        "stdio" => return Ok(None),
        "http" | "streamable-http" | "streamableHttp" | "streamable_http" => "http",
        "sse" => "sse",
        other => {
            let message = format!("its type is `stdio`, `http` or `sse`, not {other:?}");
            return Err(Problem::new(named.node.origin.clone(), message));
        }
    };
    let node = Node { content: Content::Text(word.into()), origin: named.node.origin.clone() };
    Ok(Some(Member { name: "type".into(), origin: named.origin.clone(), node }))
}

/// Replaces the variables with which other clients name the project and the home folder in a path.
fn in_folder(path: &str, base: Base<'_>) -> String {
    let folder = base.folder.to_string_lossy();
    let path = path.replace("${workspaceFolder}", &folder).replace("${pathSeparator}", "/").replace("${/}", "/");
    match base.home {
        Some(home) => path.replace("${userHome}", &home.to_string_lossy()),
        None => path,
    }
}
