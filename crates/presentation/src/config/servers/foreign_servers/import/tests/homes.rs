//! Home folders with the files of programs as these write them, and the outcome for each server in them.

use super::{Machine, sources};

#[track_caller]
fn check(homes: &[&str], program: &str, expected: &str) {
    let machine = Machine::with_homes(homes);
    let described = machine.described(&machine.plan(&sources(&[program]))).join("\n");
    assert_eq!(described.trim(), expected.trim(), "{program}:\n{described}");
}

#[test]
fn imports_servers_from_claude_code_files() {
    check(
        &["dot_claude.json", "project/dot_mcp.json", "project/dot_claude"],
        "claude-code",
        r#"
issues of Claude Code: [mcp_servers.issues]
command = "/usr/local/bin/issues-mcp"
args = ["--project", "web"]
cwd = "~/project"

context7 of Claude Code: [mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
disabled = true

sentry of Claude Code: [mcp_servers.sentry]
url = "https://mcp.sentry.dev/mcp"
type = "http"

linear server of Claude Code: [mcp_servers.linear-server]
url = "https://mcp.linear.app/sse"
type = "sse"
headers = { Authorization = "Bearer ${LINEAR_TOKEN}" }
timeout_seconds = 91
# the server `linear server` is called `linear-server` here: its name is not valid here
# set the environment variable `LINEAR_TOKEN`

shared of Claude Code: [mcp_servers.shared]
command = "node"
args = ["./tools/server.js", "--level", "${LEVEL:-info}"]
cwd = "~/project"

shared-off of Claude Code: [mcp_servers.shared-off]
url = "https://mcp.example.com/off"
type = "http"
disabled = true

settings-off of Claude Code: [mcp_servers.settings-off]
url = "https://mcp.example.com/settings-off"
type = "http"
disabled = true
"#,
    );
}

#[test]
fn servers_disabled_in_claude_code_stay_disabled_if_their_file_is_named() {
    check(
        &["dot_claude.json", "project/dot_mcp.json", "project/dot_claude"],
        ".mcp.json",
        r#"
shared of Claude Code: [mcp_servers.shared]
command = "node"
args = ["./tools/server.js", "--level", "${LEVEL:-info}"]
cwd = "~/project"

shared-off of Claude Code: [mcp_servers.shared-off]
url = "https://mcp.example.com/off"
type = "http"
disabled = true

settings-off of Claude Code: [mcp_servers.settings-off]
url = "https://mcp.example.com/settings-off"
type = "http"
disabled = true
"#,
    );
}

#[test]
fn imports_servers_from_claude_desktop_files() {
    check(
        &["dot_config/Claude"],
        "claude-desktop",
        r#"
filesystem of Claude Desktop: [mcp_servers.filesystem]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"]

brave-search of Claude Desktop: [mcp_servers.brave-search]
command = "docker"
args = ["run", "-i", "--rm", "-e", "BRAVE_API_KEY", "mcp/brave-search"]
env_file = "~/.config/toolstead/servers/brave-search.env"
# its secrets are moved to `~/.config/toolstead/servers/brave-search.env`, which only you can read

literal of Claude Desktop: [mcp_servers.literal]
command = "literal-mcp"
args = ["$${HOME}/stays"]
"#,
    );
}

#[test]
fn imports_servers_from_cursor_files() {
    check(
        &["dot_cursor"],
        "cursor",
        r#"
github of Cursor: [mcp_servers.github]
url = "https://api.githubcopilot.com/mcp/"
headers = { Authorization = "Bearer ${IMPORTED_GITHUB_AUTHORIZATION}" }
# set the environment variable `IMPORTED_GITHUB_AUTHORIZATION`: the secret in ~/.cursor/mcp.json:3

notes of Cursor: [mcp_servers.notes]
command = "${userHome}/bin/notes-mcp"
args = ["--folder", "${workspaceFolder}", "--token", "${NOTES_TOKEN}"]
env_file = "~/.notes.env"
# set the environment variable `NOTES_TOKEN`

context7 of Cursor: [mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp@1.0.0"]
disabled = true
# the server `context7` runs tools without approval by `autoApprove`, which does not apply here: name such tools in `allow_tools`
"#,
    );
}

#[test]
fn imports_servers_from_windsurf_files() {
    check(
        &["dot_codeium"],
        "windsurf",
        r#"
figma of Windsurf: [mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
headers = { Authorization = "Bearer ${FIGMA_TOKEN}" }
deny_tools = ["get_screenshot", "create_design_system_rules"]
# set the environment variable `FIGMA_TOKEN`

postgres of Windsurf: [mcp_servers.postgres]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-postgres", "${IMPORTED_POSTGRES_ARGUMENT_3}"]
disabled = true
# set the environment variable `IMPORTED_POSTGRES_ARGUMENT_3`: the secret in ~/.codeium/windsurf/mcp_config.json:11

from-file of Windsurf: rejected: only the other program knows the value of `${file:~/.secrets/key}`
"#,
    );
}

#[test]
fn imports_servers_from_vs_code_files() {
    check(
        &["dot_config/Code", "project/dot_vscode"],
        "vscode",
        r#"
github of VS Code: [mcp_servers.github]
url = "https://api.githubcopilot.com/mcp/"
type = "http"

perplexity of VS Code: [mcp_servers.perplexity]
command = "npx"
args = ["-y", "server-perplexity-ask"]
env = { PERPLEXITY_API_KEY = "${PERPLEXITY_KEY}", RETRIES = "3" }
# set the environment variable `PERPLEXITY_KEY`: Perplexity API key

playwright of VS Code: [mcp_servers.playwright]
command = "npx"
args = ["@playwright/mcp@0.0.41", "--output-dir", "${workspaceFolder}/out"]

picked of VS Code: rejected: only the other program knows the value of `${command:extension.pick}`

code of VS Code: [mcp_servers.code]
command = "~/project/run"
args = ["project"]
cwd = "~/project"
env_file = "~/project/.env"
"#,
    );
}

#[test]
fn imports_servers_from_zed_files() {
    check(
        &["dot_config/zed"],
        "zed",
        r#"
mcp-server-github of Zed: rejected: its program belongs to an extension of the editor; write its command into `[mcp_servers]`

zed-notes of Zed: [mcp_servers.zed-notes]
command = "notes-server"
args = ["--stdio"]
env = { LOG = "info" }
timeout_seconds = 45
disabled = true

older of Zed: [mcp_servers.older]
command = "/opt/older/bin/serve"
args = ["mcp"]
# the server `older` has keys without a meaning here: `settings`

remote of Zed: [mcp_servers.remote]
url = "https://mcp.example.com/zed"
headers = { X-Team = "web" }
"#,
    );
}

#[test]
fn imports_servers_from_codex_files() {
    check(
        &["dot_codex", "project/dot_codex"],
        "codex",
        r#"
docs of Codex: [mcp_servers.docs]
command = "docs-mcp"
args = ["serve"]
env = { DOCS_TOKEN = "${DOCS_TOKEN}", DOCS_REGION = "${DOCS_REGION}", LOG_LEVEL = "$${not_a_reference}" }
only_tools = ["search", "fetch"]
deny_tools = ["fetch"]
connect_timeout_seconds = 21
timeout_seconds = 90
# the server `docs` runs tools without approval by `tools.search.approval_mode`, which does not apply here: name such tools in `allow_tools`
# the server `docs` is `required`, which does not apply here: without it a start would fail
# set the environment variable `DOCS_REGION`
# set the environment variable `DOCS_TOKEN`

figma of Codex: [mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
headers = { Authorization = "Bearer ${FIGMA_TOKEN}", X-Figma-Region = "us-east-1", X-Org = "${FIGMA_ORG}" }
disabled = true
# set the environment variable `FIGMA_ORG`
# set the environment variable `FIGMA_TOKEN`

build of Codex: [mcp_servers.build]
command = "build-mcp"
cwd = "~/project"
timeout_seconds = 120
"#,
    );
}

#[test]
fn imports_servers_from_gemini_files() {
    check(
        &["dot_gemini"],
        "gemini",
        r#"
python-tools of Gemini CLI: [mcp_servers.python-tools]
command = "python"
args = ["-m", "my_mcp_server", "--port", "8080"]
cwd = "/opt/mcp-servers/python"
env = { DATABASE_URL = "${DB_CONNECTION_STRING}", API_KEY = "${EXTERNAL_API_KEY}" }
timeout_seconds = 15
# the server `python-tools` runs tools without approval by `trust`, which does not apply here: name such tools in `allow_tools`
# set the environment variable `DB_CONNECTION_STRING`
# set the environment variable `EXTERNAL_API_KEY`

search of Gemini CLI: [mcp_servers.search]
url = "https://api.example.com/mcp"
type = "http"
only_tools = ["web_search"]
deny_tools = ["admin"]

experiments of Gemini CLI: [mcp_servers.experiments]
command = "experiments-mcp"
disabled = true

guarded of Gemini CLI: rejected: `includeTools` restricts arguments (the text "run(ls)"), which a list of tools cannot do here

socket of Gemini CLI: rejected: it has neither a command nor a URL
"#,
    );
}

#[test]
fn imports_servers_from_clai_files() {
    check(
        &["dot_config/dot_clai"],
        "clai",
        r#"
everything of clai: [mcp_servers.everything]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-everything"]
env_file = "~/.clai.env"
timeout_seconds = 60
"#,
    );
}

#[test]
fn imports_servers_from_micro_x_files() {
    check(
        &["project/config.json"],
        "micro-x",
        r#"
system-info of Micro-X: [mcp_servers.system-info]
command = "dotnet"
args = ["run", "--project", "mcp-servers/system-info"]
cwd = "~/project"
"#,
    );
}

#[test]
fn imports_servers_from_kodelet_files() {
    check(
        &["dot_kodelet"],
        "kodelet",
        r#"
fs of kodelet: [mcp_servers.fs]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/src"]
only_tools = ["list_directory"]

issues of kodelet: [mcp_servers.issues]
url = "https://issues.example.com/sse"
type = "sse"
headers = { X-Team = "web" }

tokened of kodelet: [mcp_servers.tokened]
command = "tokened-mcp"
env = { TRACKER_TOKEN = "${TRACKER_TOKEN}" }
# set the environment variable `TRACKER_TOKEN`
"#,
    );
}
