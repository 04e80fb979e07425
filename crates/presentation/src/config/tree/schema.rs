//! Definitions of all configuration keys: type, merging of layers, treatment in untrusted files, and purpose. Checks,
//! merging and `docs/reference/configuration.md` all use this table.

use toolstead_domain::Effect;
use toolstead_infrastructure::dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO};

/// Definition of a key.
#[derive(Debug, PartialEq)]
pub(in crate::config) struct KeyDefinition {
    /// Path of the key; `*` stands for a name that the user chooses.
    pub(in crate::config) path: &'static [&'static str],
    pub(in crate::config) kind: ValueKind,
    pub(in crate::config) merging: MergeRule,
    pub(in crate::config) untrusted: UntrustedEffect,
    /// Default as JSON; `None` if an absent value has a meaning of its own.
    pub(in crate::config) default: Option<&'static str>,
    pub(in crate::config) about: &'static str,
}

/// Type of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::config) enum ValueKind {
    Boolean,
    Integer {
        least: u64,
        most: u64,
    },
    /// Any number within these bounds.
    Number {
        least: f64,
        most: f64,
    },
    /// Any text that is not empty.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Name of an environment variable. An invalid value may be a secret and is not included in messages.
    Variable,
    /// A path, relative to the folder of the file or starting with `~/`.
    Path,
    /// An `http` or `https` URL, which may contain `${…}`.
    Url,
    /// `IP:PORT`.
    Address,
    /// `sqlite://PATH`.
    Database,
    /// A selection of tools: `a,b`, or `+a,-b`, or a list of such words.
    Selection,
    /// `"none"`, or a list of host patterns.
    Hosts,
    /// A list of origins of web pages.
    Origins,
    Texts,
    /// A list of some of these words.
    Words(&'static [&'static str]),
    Paths,
    Rules(Effect),
    /// A table of names with texts.
    Map,
    /// A table of names with values of any JSON type.
    Json,
}

/// Rule for merging the values of several layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum MergeRule {
    /// The value of the layer with the highest precedence applies.
    Highest,
    /// Like `Highest`, but for keys that belong together: a layer that sets a head of one of [`KEY_GROUPS`] replaces the
    /// whole group.
    Launch,
    /// Like `Highest`, but limited by the administrator's value.
    Capped,
    /// The strictest value applies.
    Strictest(StrictnessOrder),
    /// Like `Strictest`, but a project file can only tighten the value, even if it is trusted.
    Users(StrictnessOrder),
    /// Lists are combined.
    Sum,
    /// Each layer adjusts the result of the layers below it.
    Steps,
    /// The highest value applies; layers that define the same name each define an object of their own.
    Own,
}

/// Effect of a key in a project file that is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum UntrustedEffect {
    /// No effect until the file is trusted.
    Waits,
    /// Full effect: the key can only tighten.
    Counts,
    /// The value applies if it is stricter than the effective value without it.
    Tightens(StrictnessOrder),
    /// The value applies as far as it lies within the effective value without it. This is computed where the key is
    /// used.
    Narrows,
}

/// Order of strictness of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum StrictnessOrder {
    /// The smaller number is stricter.
    Lowest,
    /// The mode that permits less is stricter.
    Mode,
    /// Fewer hosts are stricter: the intersection of both lists applies.
    Hosts,
    /// `true` is stricter.
    True,
    /// `false` is stricter.
    False,
}

/// Keys of `[mcp_servers.NAME]` that define the transport of a server, one per transport.
pub(in crate::config) const REACHED_BY: [&str; 2] = ["command", "url"];

/// Keys of `[models.NAME]` that name the source of the model's key. At most one may be set.
pub(in crate::config) const KEY_FROM: [&str; 3] = ["api_key_env", "api_key_file", "api_key_command"];

/// Keys of a section, or of its tables, that belong together: a layer that sets one of `heads` replaces the `members`
/// of lower layers.
#[derive(Debug)]
pub(in crate::config) struct KeyOverrideGroup {
    pub(in crate::config) section: &'static str,
    pub(in crate::config) heads: &'static [&'static str],
    /// Keys of the group; if empty, all keys that merge by [`MergeRule::Launch`].
    pub(in crate::config) members: &'static [&'static str],
    /// `true` if members in a project file apply only together with the head of the same file, so that a value of one
    /// file is never sent to an address of another.
    pub(in crate::config) is_one_file: bool,
}

/// Groups of keys. The key of a model or a service is sent only to the address in the file that names the key.
pub(in crate::config) const KEY_GROUPS: &[KeyOverrideGroup] = &[
    KeyOverrideGroup { section: "mcp_servers", heads: &REACHED_BY, members: &[], is_one_file: false },
    KeyOverrideGroup { section: "models", heads: &["provider", "base_url"], members: &[], is_one_file: true },
    KeyOverrideGroup { section: "models", heads: &KEY_FROM, members: &KEY_FROM, is_one_file: false },
    KeyOverrideGroup { section: "search", heads: &["provider", "base_url"], members: &[], is_one_file: true },
    KeyOverrideGroup { section: "tools", heads: &["base_url"], members: &[], is_one_file: true },
    KeyOverrideGroup { section: "google", heads: &GOOGLE_ADDRESSES, members: &[], is_one_file: true },
    KeyOverrideGroup { section: "anthropic_admin", heads: &["base_url"], members: &[], is_one_file: true },
];

/// Addresses at Google to which the client secret and the tokens are sent.
const GOOGLE_ADDRESSES: [&str; 5] =
    ["gmail_base_url", "calendar_base_url", "authorization_url", "token_url", "revocation_url"];

impl KeyOverrideGroup {
    /// Returns `true` if the section is that of the group and the key is one of its `members`, or if `members` is
    /// empty.
    pub(in crate::config) fn holds(&self, section: &str, key: &str) -> bool {
        self.section == section && (self.members.is_empty() || self.members.contains(&key))
    }
}

/// Names of the model protocols.
const PROVIDERS: [&str; 4] = ["anthropic", "openai", "openai_responses", "gemini"];

/// Result of looking up a path of names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::config) enum KeyLookup {
    Key(&'static KeyDefinition),
    Table,
    Nothing,
}

const fn positive_integer(most: u64) -> ValueKind {
    ValueKind::Integer { least: 1, most }
}

const fn key(
    path: &'static [&'static str],
    kind: ValueKind,
    merging: MergeRule,
    untrusted: UntrustedEffect,
    default: Option<&'static str>,
    about: &'static str,
) -> KeyDefinition {
    KeyDefinition { path, kind, merging, untrusted, default, about }
}

use MergeRule::{Capped, Highest, Launch, Own, Steps, Strictest, Sum, Users};
use UntrustedEffect::{Counts, Narrows, Tightens, Waits};

const DAY: u64 = 86_400;
const SMALLER: UntrustedEffect = Tightens(StrictnessOrder::Lowest);

/// A price in dollars per million tokens.
const PRICE: ValueKind = ValueKind::Number { least: 0.0, most: 1e6 };
const TOKENS: u64 = 1 << 40;

/// All keys, in the order of the documentation.
#[rustfmt::skip]
pub(in crate::config) const KEYS: &[KeyDefinition] = &[
    key(&["workspace", "roots"], ValueKind::Paths, Sum, Narrows, None, "Folders that tools may read and write. Without any: the start folder, unless that is `/` or the home folder."),
    key(&["workspace", "read_only_roots"], ValueKind::Paths, Sum, Narrows, Some("[]"), "Folders that tools may read."),
    key(&["dialect", "name"], ValueKind::Word(&["native", MICRO_X.0, CLAI.0, CLAUDE_CODE.0, TFO.0, KODELET.0]), Highest, Waits, Some("\"native\""), "The tool system whose names, texts and defaults tools use. The tool names of all other systems are accepted, too."),
    key(&["dialect", "tags"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether to enclose results in the tags `<result>` and `<error>`, in a dialect that supports it (`kodelet`)."),
    key(&["permissions", "mode"], ValueKind::Word(&["default", "plan", "accept_edits", "dont_ask", "bypass"]), Strictest(StrictnessOrder::Mode), Tightens(StrictnessOrder::Mode), Some("\"default\""), "Decision for calls that no rule decides. From strict to lenient: `plan`, `dont_ask`, `default`, `accept_edits`, `bypass`."),
    key(&["permissions", "disable_bypass"], ValueKind::Boolean, Strictest(StrictnessOrder::True), Counts, Some("false"), "Rejects the mode `bypass` in every layer and flag."),
    key(&["permissions", "allow"], ValueKind::Rules(Effect::Allow), Sum, Waits, Some("[]"), "Rules for calls that run without approval."),
    key(&["permissions", "ask"], ValueKind::Rules(Effect::Ask), Sum, Counts, Some("[]"), "Rules for calls that require approval."),
    key(&["permissions", "deny"], ValueKind::Rules(Effect::Deny), Sum, Counts, Some("[]"), "Rules for calls that never run."),
    key(&["permissions", "import"], ValueKind::Paths, Sum, Waits, Some("[]"), "Files of other programs whose rules count as if they were in this file: settings of Claude Code, configurations of kodelet and clai, and blocks of tools in YAML."),
    key(&["permissions", "read_only_commands"], ValueKind::Boolean, Strictest(StrictnessOrder::False), Waits, Some("false"), "Common commands that only read, such as `ls`, `cat`, `grep` and `git status`, run without approval."),
    key(&["permissions", "approval_timeout"], positive_integer(DAY), Capped, SMALLER, Some("300"), "Seconds that the approver has to answer. Then the call is refused."),
    key(&["tools", "select"], ValueKind::Selection, Steps, Narrows, None, "The tools that are offered, as with `--tools`: `\"a,b\"` replaces the choice, `\"+a,-b\"` adjusts it, `\"\"` is none. A list of the same words works too."),
    key(&["tools", "defer_above"], ValueKind::Integer { least: 0, most: 1_000_000 }, Highest, Waits, Some("100"), "Number of tools above which lists contain only some tools, and models find the others with `tool_search`. 0: no limit."),
    key(&["tools", "defer_above_tokens"], ValueKind::Integer { least: 0, most: TOKENS }, Highest, Waits, Some("15000"), "Size of the definitions, in tokens of four bytes, above which lists contain only some tools, too. 0: no limit."),
    key(&["tools", "search", "embeddings", "base_url"], ValueKind::Url, Launch, Waits, None, "The address of a service with OpenAI's `/embeddings`, such as `http://localhost:11434/v1`, which ranks tools by meaning. It receives the definitions and each query. Default: tools are ranked by words."),
    key(&["tools", "search", "embeddings", "model"], ValueKind::Text, Launch, Waits, None, "Its model, required with `base_url`."),
    key(&["tools", "search", "embeddings", "api_key_env"], ValueKind::Variable, Launch, Waits, None, "The environment variable that holds its key. Default: no key."),
    key(&["tools", "search", "embeddings", "api_key_file"], ValueKind::Path, Launch, Waits, None, "The file that holds its key, readable by its owner alone."),
    key(&["tools", "*", "allowed_commands"], ValueKind::Texts, Sum, Waits, None, "Commands that run without approval: each `c` is the allow rules `Bash(c)` and `Bash(c *)`. For shell tools."),
    key(&["tools", "*", "denied_commands"], ValueKind::Texts, Sum, Counts, None, "Commands that never run: each `c` is the deny rules `Bash(c)` and `Bash(c *)`. For shell tools."),
    key(&["tools", "*", "allowed_paths"], ValueKind::Paths, Sum, Waits, None, "Paths that the tool may touch without approval; a folder is a root, too. For tools that change files these are `Write` rules."),
    key(&["tools", "*", "denied_paths"], ValueKind::Paths, Sum, Counts, None, "Paths that the tool may never touch. For tools that change files these are `Write` rules."),
    key(&["tools", "*", "timeout"], positive_integer(DAY), Highest, Waits, None, "Timeout in seconds for calls of the tool that set none."),
    key(&["sandbox", "network"], ValueKind::Hosts, Strictest(StrictnessOrder::Hosts), Tightens(StrictnessOrder::Hosts), Some("\"none\""), "Hosts that commands may reach: `\"none\"`, or a list of host patterns."),
    key(&["sandbox", "minimum_tier"], ValueKind::Integer { least: 1, most: 2 }, Users(StrictnessOrder::Lowest), SMALLER, Some("1"), "The weakest sandbox that may be used. 1: every layer, with user namespaces. 2: where those are unavailable, Landlock (ABI 6) and a system call filter, which isolate less and allow less: see `docs/guide/sandbox.md`."),
    key(&["sandbox", "require"], ValueKind::Words(&["landlock"]), Sum, Counts, Some("[]"), "Layers without which confined commands are refused, even if other layers could replace them."),
    key(&["limits", "output_bytes"], ValueKind::Integer { least: 1_000, most: 10_000_000 }, Capped, SMALLER, Some("30000"), "Maximum size of one result for a model."),
    key(&["limits", "media_bytes"], ValueKind::Integer { least: 0, most: 16 << 20 }, Capped, SMALLER, Some("5242880"), "Maximum number of base64 bytes of images, sounds and other binary content of one result."),
    key(&["limits", "timeout_seconds"], positive_integer(DAY), Capped, SMALLER, Some("120"), "Timeout of a call that sets none."),
    key(&["limits", "max_timeout_seconds"], positive_integer(DAY), Capped, SMALLER, Some("600"), "Maximum timeout that a call may set."),
    key(&["limits", "memory_bytes"], ValueKind::Integer { least: 1 << 20, most: 1 << 50 }, Capped, SMALLER, Some("4294967296"), "Maximum private writable memory in bytes of each process of a command."),
    key(&["limits", "processes"], positive_integer(1 << 22), Capped, SMALLER, Some("512"), "Maximum number of processes of a command."),
    key(&["limits", "file_bytes"], ValueKind::Integer { least: 1, most: 1 << 50 }, Capped, SMALLER, Some("1073741824"), "Maximum size in bytes of a file that a command writes."),
    key(&["limits", "calls_in_flight"], positive_integer(100_000), Capped, SMALLER, Some("256"), "Maximum number of open calls of all clients together."),
    key(&["limits", "sessions"], positive_integer(1_000_000), Capped, SMALLER, Some("256"), "Maximum number of sessions of the server. One more ends the session that was idle for longest; if all are in use, it is refused."),
    key(&["limits", "connections"], positive_integer(100_000), Capped, SMALLER, Some("512"), "Maximum number of connections of the server that have sent the token; more wait. As many may have sent none; beyond that, the oldest of the address with the most are closed."),
    key(&["files", "text_bytes"], ValueKind::Integer { least: 1 << 10, most: 1 << 30 }, Capped, SMALLER, Some("10485760"), "Maximum size in bytes of a file that is edited, or that has to be decoded as a whole."),
    key(&["files", "result_bytes"], ValueKind::Integer { least: 1 << 10, most: 1 << 32 }, Capped, SMALLER, Some("52428800"), "Maximum size in bytes of a file after a change, and of all files that one call changes. A larger file is neither replaced nor deleted, because that could not be undone."),
    key(&["files", "image_side"], ValueKind::Integer { least: 16, most: 8_000 }, Capped, SMALLER, Some("2000"), "Maximum length in pixels of the longer side of an image that is sent to a model. Larger images are scaled down."),
    key(&["files", "image_pixels"], ValueKind::Integer { least: 1 << 10, most: 64_000_000 }, Capped, SMALLER, Some("1150000"), "Maximum number of pixels of such an image. Larger images are scaled down."),
    key(&["files", "image_bytes"], ValueKind::Integer { least: 8 << 10, most: 16 << 20 }, Capped, SMALLER, Some("786432"), "Maximum number of base64 characters of such an image. Larger images are scaled down."),
    key(&["files", "search_entries"], positive_integer(100_000_000), Capped, SMALLER, Some("1000000"), "Maximum number of folder entries that `grep` visits."),
    key(&["files", "search_hits"], positive_integer(1_000_000), Capped, SMALLER, Some("10000"), "Maximum number of lines that `grep` finds before it ends, or of files if it lists no lines."),
    key(&["files", "search_seconds"], positive_integer(DAY), Capped, SMALLER, Some("10"), "Seconds after which `grep` ends with what it found."),
    key(&["files", "list_entries"], positive_integer(100_000_000), Capped, SMALLER, Some("100000"), "Maximum number of folder entries that `glob` and `list_directory` visit."),
    key(&["files", "document_bytes"], ValueKind::Integer { least: 1 << 10, most: 1 << 30 }, Capped, SMALLER, Some("52428800"), "Maximum size in bytes of a document (PDF, docx, xlsx, pptx, notebook)."),
    key(&["files", "document_seconds"], positive_integer(DAY), Capped, SMALLER, Some("60"), "Maximum processor time in seconds for reading a document."),
    key(&["files", "document_memory_bytes"], ValueKind::Integer { least: 256 << 20, most: 1 << 40 }, Capped, SMALLER, Some("1073741824"), "Maximum address space in bytes of the child process that reads a document."),
    key(&["files", "zip_entries"], positive_integer(1_000_000), Capped, SMALLER, Some("10000"), "Maximum number of entries of a zip archive, such as a docx."),
    key(&["files", "zip_entry_bytes"], ValueKind::Integer { least: 1 << 10, most: 1 << 32 }, Capped, SMALLER, Some("52428800"), "Maximum size in bytes of one unpacked entry of a zip archive."),
    key(&["files", "zip_total_bytes"], ValueKind::Integer { least: 1 << 10, most: 1 << 34 }, Capped, SMALLER, Some("209715200"), "Maximum size in bytes of all unpacked entries of a zip archive."),
    key(&["files", "zip_ratio"], positive_integer(100_000), Capped, SMALLER, Some("100"), "Maximum factor by which an entry of a zip archive grows when it is unpacked."),
    key(&["mcp_servers", "*", "command"], ValueKind::Text, Launch, Waits, None, "The program of a stdio server. `${VAR}` and `${VAR:-default}` are expanded."),
    key(&["mcp_servers", "*", "args"], ValueKind::Texts, Launch, Waits, Some("[]"), "Its arguments. Expanded like `command`."),
    key(&["mcp_servers", "*", "env"], ValueKind::Map, Launch, Waits, Some("{}"), "Its environment; nothing else is inherited. Expanded like `command`."),
    key(&["mcp_servers", "*", "env_file"], ValueKind::Path, Launch, Waits, None, "A file of `NAME=value` lines, added to its environment; `env` wins."),
    key(&["mcp_servers", "*", "cwd"], ValueKind::Path, Launch, Waits, None, "The folder that it is started in. Default: the folder of the project for a project's file, else the first root."),
    key(&["mcp_servers", "*", "url"], ValueKind::Url, Launch, Waits, None, "The address of an HTTP server. Expanded like `command`."),
    key(&["mcp_servers", "*", "type"], ValueKind::Word(&["stdio", "http", "sse"]), Launch, Waits, None, "Transport: `stdio` with `command`; with `url` `http` (streamable HTTP) or `sse` (the old HTTP+SSE of MCP 2024-11-05). Default: derived from `command` or `url`; a `url` that does not accept streamable HTTP is tried as HTTP+SSE."),
    key(&["mcp_servers", "*", "headers"], ValueKind::Map, Launch, Waits, Some("{}"), "Headers of every request to it. Expanded like `command`."),
    key(&["mcp_servers", "*", "auth", "type"], ValueKind::Word(&["oauth", "client_credentials", "exchange", "id_jag"]), Launch, Waits, None, "How requests to it are authorized: `oauth` (each principal signs in with `toolstead auth login NAME`), `client_credentials` (Toolstead's own), `exchange` (a token of each principal, RFC 8693) or `id_jag` (an identity token of each principal). Default: the sign-in of the local user, if there is one."),
    key(&["mcp_servers", "*", "auth", "scopes"], ValueKind::Texts, Launch, Waits, Some("[]"), "The scopes to request. Default: those that the server names."),
    key(&["mcp_servers", "*", "auth", "client_id"], ValueKind::Text, Launch, Waits, None, "The id of a client that is registered at the authorization server. Default with `oauth`: Toolstead registers itself. Expanded like `command`."),
    key(&["mcp_servers", "*", "auth", "client_secret"], ValueKind::Text, Launch, Waits, None, "The secret of this client. Expanded like `command`."),
    key(&["mcp_servers", "*", "auth", "client_metadata_url"], ValueKind::Url, Launch, Waits, None, "The `https` address of a client ID metadata document, which `oauth` uses at authorization servers that support it."),
    key(&["mcp_servers", "*", "auth", "issuer"], ValueKind::Url, Launch, Waits, None, "The only authorization server that is accepted. It may be in a private network. Required with `client_secret`. Default: the one that the server names, at a public address or on the server's own host."),
    key(&["mcp_servers", "*", "auth", "token_url"], ValueKind::Url, Launch, Waits, None, "The token endpoint of `exchange`, which requires it."),
    key(&["mcp_servers", "*", "auth", "audience"], ValueKind::Text, Launch, Waits, None, "The audience that `exchange` requests, if the token endpoint requires one."),
    key(&["mcp_servers", "*", "auth", "subject_token_file"], ValueKind::Path, Launch, Waits, None, "The file with the token that `exchange` and `id_jag` exchange, read each time; `{principal}` in it stands for the principal of the call. It belongs to the user alone (`chmod 600`)."),
    key(&["mcp_servers", "*", "auth", "subject_token_type"], ValueKind::Text, Launch, Waits, None, "The type of this token in `exchange`. Default: `urn:ietf:params:oauth:token-type:access_token`."),
    key(&["mcp_servers", "*", "auth", "idp_issuer"], ValueKind::Url, Launch, Waits, None, "The issuer of the identity tokens of `id_jag`."),
    key(&["mcp_servers", "*", "auth", "idp_token_url"], ValueKind::Url, Launch, Waits, None, "The token endpoint of that issuer."),
    key(&["mcp_servers", "*", "auth", "idp_client_id"], ValueKind::Text, Launch, Waits, None, "The id of the client that is registered there. Expanded like `command`."),
    key(&["mcp_servers", "*", "auth", "idp_client_secret"], ValueKind::Text, Launch, Waits, None, "Its secret, if it has one. Expanded like `command`."),
    key(&["mcp_servers", "*", "allow_tools"], ValueKind::Texts, Sum, Waits, Some("[]"), "Its tools that run without approval, by their names on the server; `*` matches any characters."),
    key(&["mcp_servers", "*", "deny_tools"], ValueKind::Texts, Sum, Counts, Some("[]"), "Its tools that are never listed nor run, written like `allow_tools`."),
    key(&["mcp_servers", "*", "only_tools"], ValueKind::Texts, Launch, Waits, None, "The tools that are listed and can be called, by their names on the server; `*` matches any characters. Default: all."),
    key(&["mcp_servers", "*", "names"], ValueKind::Word(&["qualified", "plain"]), Highest, Waits, Some("\"qualified\""), "`qualified` offers its tools as `mcp__server__tool`, `plain` under their own names."),
    key(&["mcp_servers", "*", "may_ask"], ValueKind::Words(&["elicitation", "sampling", "roots"]), Highest, Waits, Some("[\"elicitation\"]"), "What it may request from the client of a call, if the client declared it: `elicitation` (forms and pages for the user), `sampling` (the client's model), `roots` (the client's folders inside the workspace)."),
    key(&["mcp_servers", "*", "output"], ValueKind::Word(&["bounded", "whole"]), Highest, Waits, Some("\"bounded\""), "`bounded` stores the part of a result above `limits.output_bytes` and `limits.media_bytes` under a handle; `whole` passes results on unchanged, for clients that accept large ones."),
    key(&["mcp_servers", "*", "protocol"], ValueKind::Word(&["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]), Highest, Waits, None, "Fixes the revision of MCP. Default: negotiated."),
    key(&["mcp_servers", "*", "connect_timeout_seconds"], positive_integer(3_600), Highest, Waits, Some("30"), "Timeout for starting and for listing its tools."),
    key(&["mcp_servers", "*", "timeout_seconds"], positive_integer(DAY), Highest, Waits, None, "Timeout of calls of its tools that set none. Default: `limits.timeout_seconds`."),
    key(&["mcp_servers", "*", "max_tools"], positive_integer(10_000), Highest, Waits, Some("512"), "Maximum number of its tools."),
    key(&["mcp_servers", "*", "required"], ValueKind::Boolean, Highest, Waits, Some("false"), "Fails the start if the server is unavailable."),
    key(&["mcp_servers", "*", "idle_seconds"], ValueKind::Integer { least: 0, most: 30 * DAY }, Highest, Waits, None, "Time after which an unused connection to it ends; the next use connects again. 0: never. Default: 900, with `stateful` 0."),
    key(&["mcp_servers", "*", "stateful"], ValueKind::Boolean, Highest, Waits, Some("false"), "It stores state per connection: each principal has its own connection, which ends with its last session."),
    key(&["mcp_servers", "*", "profile"], ValueKind::Word(&["guarded", "strict", "open"]), Highest, Waits, Some("\"guarded\""), "How a stdio server is confined: `guarded` starts in the first root, reads and writes there and at the absolute paths among its arguments and variables, has its own lasting home folder, and the network; `strict` has no network and only declared roots; `open` is not confined."),
    key(&["mcp_servers", "*", "roots"], ValueKind::Paths, Sum, Waits, Some("[]"), "Folders and files that a stdio server may read and write, besides those of its profile."),
    key(&["mcp_servers", "*", "always_load"], ValueKind::Boolean, Highest, Waits, Some("false"), "Keeps its tools in every list, even if others are deferred (`tools.defer_above`)."),
    key(&["mcp_servers", "*", "on_change"], ValueKind::Word(&["pin", "pass", "quarantine"]), Highest, Waits, Some("\"pin\""), "What happens when its definitions change: `pin` serves the approved ones and requires approval of a wider schema or a new tool at the next call; `pass` applies every change at once; `quarantine` makes a changed or new tool unavailable until `toolstead servers approve`."),
    key(&["mcp_servers", "*", "disabled"], ValueKind::Boolean, Highest, Tightens(StrictnessOrder::True), Some("false"), "Disables the server without removing it."),
    key(&["hooks", "import"], ValueKind::Paths, Sum, Waits, Some("[]"), "Settings files of Claude Code whose `hooks` run here. A file below a root, or that a file of a project names, counts once `toolstead config trust FILE` has trusted its content."),
    key(&["hooks", "timeout_seconds"], positive_integer(3_600), Capped, Waits, Some("60"), "Timeout of a hook that sets none."),
    key(&["hooks", "concurrency"], positive_integer(256), Capped, Waits, Some("8"), "Hooks that run at once, over all calls."),
    key(&["hooks", "*", "event"], ValueKind::Word(&["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure", "PreCompact", "Notification", "Stop", "SessionEnd"]), Own, Waits, None, "When the hook runs. Hooks of the same name in several layers all run."),
    key(&["hooks", "*", "matcher"], ValueKind::Text, Own, Waits, None, "Tools that it runs for, or for `PreCompact` `auto` or `manual`: a name or several between `|` or `,`, else a regular expression, not anchored. Default: all."),
    key(&["hooks", "*", "if"], ValueKind::Text, Own, Waits, None, "Calls of these tools that it runs for: a permission rule."),
    key(&["hooks", "*", "command"], ValueKind::Text, Own, Waits, None, "What runs: a line for the shell, or with `args` a program."),
    key(&["hooks", "*", "args"], ValueKind::Texts, Own, Waits, None, "The arguments of the program, which is started without a shell then."),
    key(&["hooks", "*", "env"], ValueKind::Map, Own, Waits, None, "Variables that it gets besides the usual ones. `${VAR}` and `${VAR:-default}` are expanded."),
    key(&["hooks", "*", "timeout_seconds"], positive_integer(3_600), Own, Waits, None, "Timeout. Default: `hooks.timeout_seconds`."),
    key(&["hooks", "*", "gate"], ValueKind::Boolean, Own, Waits, None, "Whether a call, or a prompt, continues only if the hook allows it. For `PreToolUse` and `UserPromptSubmit`."),
    key(&["hooks", "*", "on_error"], ValueKind::Word(&["allow", "ask", "deny"]), Own, Waits, None, "Decision if it fails before a call. Default: `allow`, for a gate `deny`."),
    key(&["hooks", "*", "background"], ValueKind::Boolean, Own, Waits, None, "Whether to run it in the background; its output is then ignored."),
    key(&["default_model"], ValueKind::Text, Highest, Waits, None, "The model to use if neither a profile nor a flag names one. Default: the only configured model."),
    key(&["models", "*", "provider"], ValueKind::Word(&PROVIDERS), Launch, Waits, None, "The protocol that it speaks: `openai` is Chat Completions, which many other servers speak, too. A file that sets this or `base_url` must set all of the connection: the key and the headers of lower layers are ignored."),
    key(&["models", "*", "model"], ValueKind::Text, Highest, Waits, None, "The provider's name of the model."),
    key(&["models", "*", "base_url"], ValueKind::Url, Launch, Waits, None, "Address of the API. `${VAR}` and `${VAR:-default}` are expanded. Default: the provider's own."),
    key(&["models", "*", "api_key_env"], ValueKind::Variable, Launch, Waits, None, "The environment variable that holds the key. Default if `base_url` is not set: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`."),
    key(&["models", "*", "api_key_file"], ValueKind::Path, Launch, Waits, None, "The file that holds the key, for its owner alone (mode 0600)."),
    key(&["models", "*", "api_key_command"], ValueKind::Texts, Launch, Waits, None, "A program with its arguments that prints the key. It starts without a shell, and may be nothing that tools can write to."),
    key(&["models", "*", "headers"], ValueKind::Map, Launch, Waits, Some("{}"), "Headers of every request to it. Expanded like `base_url`."),
    key(&["models", "*", "max_output_tokens"], positive_integer(TOKENS), Highest, Waits, None, "Maximum tokens of one answer. Default: the known limit of the model, else 8192."),
    key(&["models", "*", "context_tokens"], positive_integer(TOKENS), Highest, Waits, None, "Tokens of its context window. Default: the known size for the model, else 128000."),
    key(&["models", "*", "thinking_tokens"], ValueKind::Integer { least: 0, most: TOKENS }, Highest, Waits, None, "Maximum thinking tokens, if its provider takes a number; 0: no thinking."),
    key(&["models", "*", "reasoning_effort"], ValueKind::Word(&["none", "minimal", "low", "medium", "high", "xhigh"]), Highest, Waits, None, "Thinking effort, if its provider takes a word."),
    key(&["models", "*", "images"], ValueKind::Boolean, Highest, Waits, None, "Accepts images. Default: the known ability of the model, else `false`."),
    key(&["models", "*", "temperature"], ValueKind::Number { least: 0.0, most: 2.0 }, Highest, Waits, None, "Sampling temperature. Default: the provider's."),
    key(&["models", "*", "prices", "input"], PRICE, Highest, Waits, None, "US dollars per million input tokens. Default of all four: the known prices of the model at its provider."),
    key(&["models", "*", "prices", "output"], PRICE, Highest, Waits, None, "US dollars per million output tokens."),
    key(&["models", "*", "prices", "cache_read"], PRICE, Highest, Waits, None, "US dollars per million tokens read from a cache. Default: `input`."),
    key(&["models", "*", "prices", "cache_write"], PRICE, Highest, Waits, None, "US dollars per million tokens written to a cache. Default: `input`."),
    key(&["profiles", "import"], ValueKind::Paths, Sum, Waits, Some("[]"), "Files of clai, kodelet, micro-x and Claude Code whose profile and model count as if they were in this file: a profile of the file's `name`, else of its file name, and the model under its provider's name."),
    key(&["profiles", "*", "model"], ValueKind::Text, Highest, Waits, None, "The model, by its name in `[models]`. Default: `default_model`."),
    key(&["profiles", "*", "tools"], ValueKind::Selection, Steps, Waits, None, "The tools that are offered, if the rules do not deny them: as `tools.select`, and `--tools` adjusts or replaces it. A project's file can only remove tools from a profile that another file also defines."),
    key(&["profiles", "*", "use_tools"], ValueKind::Boolean, Strictest(StrictnessOrder::False), Waits, Some("true"), "Whether any tools are offered."),
    key(&["profiles", "*", "prompt"], ValueKind::Text, Highest, Waits, None, "The system prompt, in place of `agent.prompt`."),
    key(&["profiles", "*", "mcp_servers"], ValueKind::Texts, Steps, Waits, None, "The MCP servers whose tools are offered; a project's file can only remove some. Default: all."),
    key(&["profiles", "*", "view"], ValueKind::Text, Highest, Waits, None, "The view whose tools are offered, by its name in `[views]`. `tools` selects among them."),
    key(&["views", "*", "tools"], ValueKind::Texts, Own, Waits, None, "The tools of the view: names, or patterns with `*`. Default: all. Rules that deny a tool apply as well."),
    key(&["views", "*", "resources"], ValueKind::Texts, Own, Waits, Some("[]"), "URIs of the resources of the view, with `*`. A template is offered if one of its URIs can match."),
    key(&["views", "*", "prompts"], ValueKind::Texts, Own, Waits, Some("[]"), "Names of the prompts of the view, with `*`."),
    key(&["views", "*", "deny"], ValueKind::Rules(Effect::Deny), Own, Waits, Some("[]"), "Rules for calls that never run through the view."),
    key(&["views", "*", "ask"], ValueKind::Rules(Effect::Ask), Own, Waits, Some("[]"), "Rules for calls that require approval in the view."),
    key(&["views", "*", "allow"], ValueKind::Rules(Effect::Allow), Own, Waits, Some("[]"), "Rules for calls that need no approval of the view. With at least one such rule, the view requires approval like a configuration without rules; without one, it requires none of its own."),
    key(&["views", "*", "timeout_seconds"], positive_integer(DAY), Own, Waits, None, "Maximum timeout of a call through the view."),
    key(&["views", "*", "output_bytes"], ValueKind::Integer { least: 1_000, most: 10_000_000 }, Own, Waits, None, "Maximum size of one result of a call through the view."),
    key(&["views", "*", "calls_in_flight"], positive_integer(100_000), Own, Waits, None, "Calls through the view that are open at once, over all clients; more are refused."),
    key(&["views", "*", "overlay", "*", "name"], ValueKind::Text, Own, Waits, None, "The name of the tool in the view. The second `NAME` of the key is the tool's own name."),
    key(&["views", "*", "overlay", "*", "description"], ValueKind::Text, Own, Waits, None, "Its description in the view."),
    key(&["views", "*", "overlay", "*", "fixed"], ValueKind::Json, Own, Waits, Some("{}"), "Values of parameters that clients of the view neither see nor set."),
    key(&["views", "*", "overlay", "*", "hide"], ValueKind::Texts, Own, Waits, Some("[]"), "Parameters that clients of the view neither see nor set, without a value. A required parameter needs a value in `fixed`."),
    key(&["agent", "prompt"], ValueKind::Text, Highest, Waits, None, "System prompt of every run. Default: a short text on the tools and the workspace."),
    key(&["agent", "instructions"], ValueKind::Boolean, Strictest(StrictnessOrder::False), Tightens(StrictnessOrder::False), Some("true"), "Whether agents receive the instructions of `AGENTS.md` and `CLAUDE.md` in trusted folders."),
    key(&["agent", "max_calls"], positive_integer(TOKENS), Capped, SMALLER, None, "Maximum number of tool calls in one run. Default: no limit, like each key here without a default."),
    key(&["agent", "max_turns"], positive_integer(TOKENS), Capped, SMALLER, Some("200"), "Answers of the model in one run."),
    key(&["agent", "max_tokens"], positive_integer(TOKENS), Capped, SMALLER, None, "Tokens of one run, in and out."),
    key(&["agent", "max_cost"], ValueKind::Number { least: 0.0, most: 1e6 }, Capped, SMALLER, None, "US dollars of one run. Counts only where the prices of the model are known."),
    key(&["agent", "max_seconds"], positive_integer(30 * DAY), Capped, SMALLER, None, "Time of one run."),
    key(&["agent", "compact_at"], ValueKind::Number { least: 0.1, most: 0.95 }, Highest, Waits, Some("0.8"), "How full the model's context window may become before the oldest messages are shortened."),
    key(&["agent", "summarizer"], ValueKind::Text, Highest, Waits, None, "The model that then writes summaries, by its name in `[models]`. Default: the model of the run."),
    key(&["agent", "weak_model"], ValueKind::Text, Highest, Waits, None, "The model for small work, which tools and subagents use as `weak`. Default: `default_model`."),
    key(&["agent", "strong_model"], ValueKind::Text, Highest, Waits, None, "The model for hard work, which they use as `strong`. Default: `default_model`."),
    key(&["web", "allow_private_hosts"], ValueKind::Texts, Sum, Waits, Some("[]"), "Hosts in a private network that pages may be fetched from: patterns as in `sandbox.network`, with a port unless it is 80 or 443. For this machine, write its address or `localhost`. Link-local addresses are never reached."),
    key(&["web", "proxy"], ValueKind::Url, Highest, Waits, None, "An HTTP proxy that pages are fetched through. Environment variables are ignored."),
    key(&["web", "respect_robots"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether to check a site's `robots.txt` before a page is fetched."),
    key(&["browser", "program"], ValueKind::Path, Highest, Waits, None, "The browser that pages are opened in: Chromium, or a browser based on it. Default: the first one on the `PATH`."),
    key(&["browser", "idle_seconds"], positive_integer(DAY), Capped, SMALLER, Some("300"), "Time after which an unused browser ends."),
    key(&["search", "provider"], ValueKind::Word(&["brave", "searxng", "tavily", "exa", "duckduckgo"]), Launch, Waits, None, "Web search provider. Default: `brave`, if `BRAVE_API_KEY` is set."),
    key(&["search", "base_url"], ValueKind::Url, Launch, Waits, None, "Its address, required for `searxng`. `${VAR}` is expanded."),
    key(&["search", "api_key_env"], ValueKind::Variable, Launch, Waits, None, "The environment variable that holds the key. Default if `base_url` is not set: `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY`."),
    key(&["google", "client_id"], ValueKind::Text, Launch, Waits, None, "The client of this program at Google, an installed application. Default: `GOOGLE_CLIENT_ID` of the environment."),
    key(&["google", "client_secret_env"], ValueKind::Variable, Launch, Waits, None, "The environment variable that holds its secret. Default if neither `token_url` nor `revocation_url` is set: `GOOGLE_CLIENT_SECRET`."),
    key(&["google", "gmail_base_url"], ValueKind::Url, Launch, Waits, None, "The address of Gmail's API. Default: `https://gmail.googleapis.com`."),
    key(&["google", "calendar_base_url"], ValueKind::Url, Launch, Waits, None, "The address of the API of Google Calendar. Default: `https://www.googleapis.com`."),
    key(&["google", "authorization_url"], ValueKind::Url, Launch, Waits, None, "The page where the user signs in. Default: Google's."),
    key(&["google", "token_url"], ValueKind::Url, Launch, Waits, None, "Where tokens are issued. Default: Google's."),
    key(&["google", "revocation_url"], ValueKind::Url, Launch, Waits, None, "Where tokens are revoked. Default: Google's."),
    key(&["linkedin", "enabled"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether the guest pages of LinkedIn are searched for jobs. Its terms of use hold: see `docs/guide/web.md`."),
    key(&["linkedin", "base_url"], ValueKind::Url, Highest, Waits, None, "Their address. Default: `https://www.linkedin.com`."),
    key(&["linkedin", "user_agent"], ValueKind::Text, Highest, Waits, None, "User agent of requests to them. Default: one that names Toolstead."),
    key(&["anthropic_admin", "api_key_env"], ValueKind::Variable, Launch, Waits, None, "The environment variable that holds the key of an administrator (`sk-ant-admin…`). Default if `base_url` is not set: `ANTHROPIC_ADMIN_API_KEY`."),
    key(&["anthropic_admin", "base_url"], ValueKind::Url, Launch, Waits, None, "The address of Anthropic's Admin API. Default: `https://api.anthropic.com`."),
    key(&["secrets", "key_file"], ValueKind::Path, Highest, Waits, None, "The file with the 32 bytes of the key that encrypts tokens, readable by its owner alone. Default: `secrets.key` in the configuration folder, created once."),
    key(&["events", "tool_call_details"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether events of ended calls include input and result, with secrets redacted."),
    key(&["database", "url"], ValueKind::Database, Highest, Waits, None, "Database of the tools and the audit log: `sqlite://PATH`. Default: `toolstead.db` in the data folder."),
    key(&["audit", "arguments"], ValueKind::Word(&["redacted", "full", "none"]), Highest, Waits, Some("\"redacted\""), "What the audit log stores of arguments, besides their digest, and of texts that contain them."),
    key(&["audit", "power_safe"], ValueKind::Boolean, Highest, Waits, Some("false"), "Audit records survive a power failure, not only a kill; every call takes longer."),
    key(&["audit", "retention_days"], positive_integer(36_500), Highest, Waits, Some("90"), "Older audit records are deleted."),
    key(&["audit", "retention_rows"], ValueKind::Integer { least: 1000, most: 1 << 40 }, Highest, Waits, Some("5000000"), "Maximum number of audit records, some 3 GB by default; the oldest are deleted."),
    key(&["outputs", "retention_days"], positive_integer(36_500), Highest, Waits, Some("7"), "Time for which stored outputs and replaced file contents are retained."),
    key(&["outputs", "retention_bytes"], ValueKind::Integer { least: 1 << 20, most: 1 << 50 }, Highest, Waits, Some("2147483648"), "Bytes of all outputs and replaced files together; the oldest are deleted first."),
    key(&["outputs", "spool_folder"], ValueKind::Path, Highest, Waits, None, "The folder for what a command prints beyond 1 MiB, in files without names, until the command ends. It must exist, on a disk rather than in memory. Default: the folder of the database."),
    key(&["outputs", "max_bytes"], ValueKind::Integer { least: 1 << 20, most: 1 << 32 }, Highest, Waits, Some("67108864"), "Maximum stored bytes of one output."),
    key(&["server", "listen"], ValueKind::Address, Highest, Waits, Some("\"127.0.0.1:7332\""), "Where `toolstead-server` listens; port 0 picks one."),
    key(&["server", "allowed_hosts"], ValueKind::Texts, Sum, Waits, Some("[]"), "Names under which clients may reach the server, besides those of loopback."),
    key(&["server", "allowed_origins"], ValueKind::Origins, Sum, Waits, Some("[]"), "Origins of web pages that may call the server, such as `https://app.example.com`; `http://localhost:*` is any port. By default only its own may."),
    key(&["server", "output_schemas"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether tool lists over MCP include the output schemas of built-in tools. Those of MCP servers are passed on unchanged."),
    key(&["server", "token_file"], ValueKind::Path, Highest, Waits, None, "The file that holds the token, for its owner alone. Default: `TOOLSTEAD_SERVER_TOKEN`, else one created once in the data folder."),
    key(&["server", "session_idle_seconds"], positive_integer(30 * DAY), Highest, Waits, Some("1800"), "Time after which an unused session ends."),
    key(&["server", "head_timeout_seconds"], positive_integer(3_600), Highest, Waits, Some("30"), "Timeout for the head of a request, and for silence between two requests."),
    key(&["server", "log_calls"], ValueKind::Boolean, Highest, Waits, Some("false"), "Whether the log has a line for each call: id of its audit record, tool, decision, outcome, milliseconds. `-v` does the same."),
    key(&["server", "drain_seconds"], ValueKind::Integer { least: 0, most: 3_600 }, Highest, Waits, Some("8"), "Time that running calls have to finish after the server receives a signal to end; then they are cancelled, and the server ends at most 1.5 s later."),
];

impl KeyDefinition {
    /// Returns `true` if the path matches this key.
    pub(in crate::config) fn fits(&self, path: &[String]) -> bool {
        self.path.len() == path.len() && self.begins_with(path)
    }

    fn begins_with(&self, path: &[String]) -> bool {
        self.path.len() >= path.len()
            && self.path.iter().zip(path).all(|(pattern, name)| *pattern == "*" || pattern == name)
    }

    /// Returns the dotted path, with `NAME` for a name that the user chooses.
    pub(in crate::config) fn written(&self) -> String {
        self.path.iter().map(|name| if *name == "*" { "NAME" } else { name }).collect::<Vec<_>>().join(".")
    }
}

/// Looks up a path. A key with a fixed name takes precedence over one with a name that the user chooses.
pub(in crate::config) fn find(path: &[String]) -> KeyLookup {
    if let Some(key) = KEYS.iter().find(|key| key.fits(path)) {
        return KeyLookup::Key(key);
    }
    match KEYS.iter().any(|key| key.begins_with(path)) {
        true => KeyLookup::Table,
        false => KeyLookup::Nothing,
    }
}

/// Returns the names that may follow the path, except names that the user chooses.
pub(in crate::config) fn names_below(path: &[String]) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        KEYS.iter().filter(|key| key.begins_with(path)).filter_map(|key| key.path.get(path.len()).copied()).collect();
    names.retain(|name| *name != "*");
    names.dedup();
    names
}

/// Returns the definition with this dotted path, in which `*` stands for a name that the user chooses.
pub(in crate::config) fn named(path: &str) -> Option<&'static KeyDefinition> {
    KEYS.iter().find(|key| key.path.iter().copied().eq(path.split('.')))
}

/// Returns the reference of all keys, as Markdown.
pub fn reference() -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        if key.path[0] != section {
            section = key.path[0];
            text.push_str(&format!("\n### `{section}`\n\n"));
            text.push_str(
                "| key | takes | default | layers | before trust | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
            );
        }
        let default = key.default.map_or(String::new(), |json| format!("`{json}`"));
        let (layers, untrusted) = (key.merging.describe(), key.untrusted.describe());
        let cells = [&format!("`{}`", key.written()), &key.kind.describe(), &default, layers, untrusted, key.about];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

impl ValueKind {
    /// Describes the type in words.
    pub(in crate::config) fn describe(&self) -> String {
        match self {
            Self::Boolean => "`true` or `false`".into(),
            Self::Integer { least, most } if least == most => format!("`{least}`"),
            Self::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Self::Number { least, most } => format!("a number from {least} to {most}"),
            Self::Variable => "the name of an environment variable".into(),
            Self::Text => "a text".into(),
            Self::Word(words) => format!("one of {}", listed(words)),
            Self::Words(words) => format!("a list of some of {}", listed(words)),
            Self::Path => "a path".into(),
            Self::Url => "a URL that begins with `http://` or `https://`".into(),
            Self::Address => "an address such as `\"127.0.0.1:7332\"`".into(),
            Self::Database => "a URL such as `\"sqlite:///var/lib/toolstead.db\"`".into(),
            Self::Selection => "a choice of tools, such as `\"a,b\"` or `\"+a,-b\"`".into(),
            Self::Hosts => "`\"none\"` or a list of host patterns".into(),
            Self::Origins => "a list of origins such as `\"https://app.example.com\"`".into(),
            Self::Texts => "a list of texts".into(),
            Self::Paths => "a list of paths".into(),
            Self::Rules(_) => "a list of rules".into(),
            Self::Map => "a table of texts".into(),
            Self::Json => "a table of values".into(),
        }
    }
}

/// Formats words as they are written in a file.
fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
}

impl MergeRule {
    fn describe(self) -> &'static str {
        match self {
            Self::Highest | Self::Launch => "precedence",
            Self::Capped => "precedence, at most the administrator's",
            Self::Strictest(_) => "the strictest",
            Self::Users(_) => "the strictest, and of a project's files what is stricter",
            Self::Sum => "add up",
            Self::Steps => "one after the other",
            Self::Own => "each its own",
        }
    }
}

impl UntrustedEffect {
    fn describe(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Counts => "counts",
            Self::Tightens(_) => "counts where stricter",
            Self::Narrows => "counts where narrower",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_path_and_every_default_is_json() {
        for key in KEYS {
            let path: Vec<String> = key.path.iter().map(|name| name.replace('*', "name")).collect();
            assert_eq!(find(&path), KeyLookup::Key(key), "{path:?}");
            assert_eq!(find(&path[..path.len() - 1]), KeyLookup::Table, "{path:?}");
            if let Some(default) = key.default {
                assert!(serde_json::from_str::<serde_json::Value>(default).is_ok(), "{path:?} {default}");
            }
            assert!(key.about.ends_with('.'), "{path:?}");
        }
    }

    #[test]
    fn a_literal_key_takes_precedence_over_a_wildcard_name() {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(matches!(find(&path(&["tools", "select"])), KeyLookup::Key(key) if key.kind == ValueKind::Selection));
        assert_eq!(find(&path(&["tools", "echo"])), KeyLookup::Table);
        assert_eq!(find(&path(&["tools", "echo", "nonsense"])), KeyLookup::Nothing);
        assert_eq!(names_below(&path(&["tools"])), ["select", "defer_above", "defer_above_tokens", "search"]);
    }
}
