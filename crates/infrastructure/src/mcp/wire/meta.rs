//! The keys of `_meta` that MCP reserves (MCP 2026-07-28, basic, "`_meta`").

/// The revision that a request speaks: a text. Every request of 2026-07-28 has it.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client is: an `Implementation`. Optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do: `ClientCapabilities`. Every request of 2026-07-28 has it.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log message that the client wants to hear of this request. Optional.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The id of the `subscriptions/listen` request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Who the server is: an `Implementation`, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Asks for progress under this token: a text or a whole number, on requests of every revision.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The keys that belong to one hop: whoever passes a request on replaces them by its own.
pub const OF_ONE_HOP: &[&str] = &[PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, PROGRESS_TOKEN];

/// Members of a request's parameters that belong to one hop, beside those of its method. `task` asks for a task in the form
/// of 2025-11-25, which is not spoken here.
pub const PARAMS_OF_ONE_HOP: &[&str] = &["_meta", "inputResponses", "requestState", "task"];
