//! Keys of `_meta` that MCP reserves (MCP 2026-07-28, basic, "`_meta`").

/// Protocol version of a request, a string. Required in every request of 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Description of the client, an `Implementation`. Optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of the client, `ClientCapabilities`. Required in every request of 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Minimum severity of the log messages that the client requests for this request. Optional.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Id of the `subscriptions/listen` request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Description of the server, an `Implementation`. Set in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Token for progress notifications, a string or an integer. Set in requests of every protocol version.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Keys that are valid for one connection only. A gateway replaces them by its own when it forwards a request.
pub const OF_ONE_HOP: &[&str] = &[PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, PROGRESS_TOKEN];

/// Members of any request's parameters that are valid for one connection only, and are not forwarded. `task` requests a
/// task in the form of 2025-11-25, which is not supported.
pub const PARAMS_OF_ONE_HOP: &[&str] = &["_meta", "inputResponses", "requestState", "task"];
