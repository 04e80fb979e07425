//! Tests of the whole product through its external interfaces: the binaries, the wire, the database file. One binary,
//! so that it is linked once. The name of a file is its subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "what a long test measured is worth reading")]
#![allow(missing_docs, reason = "tests are named as sentences")]

/// Signing in to services.
mod accounts;
/// Agents on the command line and in programs, with a model over real HTTP.
mod agent;
/// Calls require approval, and the answer is stored as far as the user chose.
mod approvals;
/// Dependencies between crates, and licences.
mod architecture;
/// Tools ask the configured models.
mod asked_models;
/// MCP mounted in a server of a team's own.
mod axum_mount_example;
/// A real browser in a small shop, through the binaries.
mod browser;
/// Each session has its own browser, which ends with it.
mod browser_sessions;
/// The small shop, and its visitors.
mod browser_shop;
/// The tools of Google Calendar, against a fake of it.
mod calendar;
/// The configuration: files, environment and flags in, one value out.
mod configuration;
/// Resources and prompts: both transports, both generations, the command line.
mod context;
/// Conversations with agents are shown, copied and undone with their file changes.
mod conversations;
/// Literal calls of other tool systems are answered as these systems answer.
mod dialect_answers;
/// The console blocks of the documentation, run as they are written.
mod doc_examples;
/// Changes of files by several processes, and across kills.
mod editing;
/// The built-in tools in one folder, for tests of these.
mod editor;
/// A program that embeds Toolstead adds tools of its own.
mod embedding;
/// Tools in Rust: the examples and their page.
mod embedding_example;
/// Messages of servers reach clients unchanged.
mod fidelity;
/// MCP servers of other programs are listed and imported on the command line.
mod imported_servers;
/// Limits on wording that the style rules forbid.
mod language;
/// Jobs at LinkedIn, with fake guest pages over HTTP.
mod linkedin;
/// One MCP server as a tool provider, against third-party and hostile servers.
mod mcp_client;
/// The MCP server over HTTP.
mod mcp_http;
/// The MCP server over pipes.
mod mcp_stdio;
/// A provider of models with prepared answers.
mod model_server;
/// Models of other providers, over real HTTP.
mod models;
/// `toolstead models`.
mod models_command;
/// Dependencies between the modules of the crates, and the number of crates that each requires.
mod module_dependencies;
/// Large results: truncated to their budget, stored under handles, passed on by reference.
mod output_handles;
mod outputs;
mod permissions;
/// Definitions of servers are served as they were approved.
mod pinned_definitions;
/// The public API of the crates, as a stored listing.
mod public_api;
/// `grep` and `glob` find what ripgrep and fd find.
mod search;
/// The log of the server.
mod server_log;
/// The token of the server: where it is shown, and its replacement.
mod server_token;
/// Keys of services: what is missing without one, and who never sees them.
mod service_keys;
/// Shell texts are read as bash reads them.
mod shell_oracle;
/// The end of the server: signals and the drain.
mod shutdown;
/// The stores on SQLite keep the ports' contracts, also across kills, several processes and bad files.
mod sqlite;
/// Support for the tests of the MCP server.
mod support;
/// No race with renames leads a file tool out of the workspace.
mod swap_race;
/// Calls that continue as tasks of an MCP server.
mod tasks;
/// The pages of the built-in tools are those of their definitions.
mod tool_docs;
/// Tools beyond a threshold are found by a search.
mod tool_search;
/// A command calls tools by the program `tool`, through the command line.
mod tools_as_commands;
/// An agent asks the user: by forms, at a terminal, and deferred.
mod user_questions;

/// The names and parameters that other systems know our file tools by.
mod aliases;
/// The real binaries and the real peers, for the tests below.
mod binaries;
/// The command line, through the real binary.
mod cli;
/// The folders of a client on stdio as roots.
mod client_roots;
/// Real clients list and call our tools, in each of their protocol modes.
mod clients;
/// The official conformance suite, against us and through us.
mod conformance;
/// Cost of the list of tools for a model.
mod context_cost;
/// Dangerous calls are refused or contained, and ordinary work passes.
mod corpus;
/// `kill -9` under load loses nothing that was answered.
mod crash;
/// The cost of each dialect to a model.
mod dialect_cost;
/// The tool systems that Toolstead unites, as their own documents describe them.
mod dialects;
/// Documents are read in a child process, which takes down nothing but itself.
mod documents;
/// Events for subscribers.
mod events;
/// Mail at a fake Google.
mod gmail;
/// Google: tokens, and Gmail.
mod google_server;
/// Snapshots of the help pages.
mod help_pages;
/// Hooks of the user.
mod hooks;
mod hostile_schemas;
/// Tool definitions as sent to model providers.
mod model_definitions;
/// Turns over the protocols of OpenAI and Gemini.
mod model_providers;
/// Calls that other calls make.
mod nested_calls;
/// Notifications outside of requests.
mod notifications;
/// Ordinary work succeeds in the sandbox.
mod ordinary_commands;
/// Questions of servers to clients through the gateway, and to a person at a terminal.
mod questions;
/// Real upstream servers, of which one may be killed.
mod real_servers;
/// Snapshot of refusals and errors.
mod refusals;
/// Code that calls tools.
mod run_code;
/// Machines on which namespaces are unavailable.
mod sandbox_tiers;
/// Real clients use all that a real server offers, through us.
mod server_features;
/// Servers run only programs that the user trusted.
mod server_programs;
/// Many real servers at once, all killed under load.
mod seven_servers;
/// Commands, tasks and what becomes of their processes, through the real binaries.
mod shell;
/// Agents that hand work to others.
mod subagents;
/// Trust applies to a content at a path.
mod trust;
/// Connection on which a real server receives a call.
mod upstream_connections;
/// Signing in to upstream servers at a real authorization server.
mod upstream_sign_in;
/// Views of the tools, over both transports and on the command line.
mod views;
/// Pages are fetched, through the binaries.
mod web_fetch;
/// Searches of the web and reports of usage, by services over real HTTP.
mod web_search;
/// Web servers for tests through the binaries.
mod web_server;
/// Answers over both transports in both protocol generations, compared with stored captures.
mod wire_captures;
/// Data that belongs to a workspace.
mod workspaces;
