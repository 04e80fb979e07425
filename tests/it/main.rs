//! Tests of the whole, through its outer borders: the binaries, the wire, the database file. One binary, so that it is
//! linked once. A file bears the name of what it tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "what a long test measured is worth reading")]
#![allow(missing_docs, reason = "tests are named as sentences")]

/// Signing in to services.
mod accounts;
/// Agents on the command line and in programs, with a model over real HTTP.
mod agent;
/// Somebody is asked, and what they said is remembered as far as they said.
mod approvals;
/// Which crate may use which, and under which licences.
mod architecture;
/// Tools ask the configured models.
mod asked_models;
/// An agent asks the person: by forms, at a terminal, and later.
mod asked_person;
/// A real browser in a small shop, through the binaries.
mod browser;
/// One browser a session, and nothing of it when that ends.
mod browser_sessions;
/// The small shop, and those who go there.
mod browser_shop;
/// The tools of Google Calendar, against a fake of it.
mod calendar;
/// The configuration: files, environment and flags in, one value out.
mod configuration;
/// Resources and prompts: both transports, both generations, the command line.
mod context;
/// Conversations with agents are shown, copied and taken back with their files.
mod conversations;
/// The console blocks of the documentation, run as they are written.
mod doc_examples;
/// The doors for tools in Rust: the examples and their page.
mod doors;
/// Changes of files by several processes, and across kills.
mod editing;
/// The built-in tools in one folder, for tests of these.
mod editor;
/// A program that embeds Toolstead adds tools of its own.
mod embedding;
/// Literal calls of other tool systems are answered as these systems answer.
mod faces;
/// What servers say reaches clients as they said it.
mod fidelity;
/// Limits on wording that the style rules forbid.
mod language;
/// Jobs at LinkedIn, with fake guest pages over HTTP.
mod linkedin;
/// One MCP server as a tool provider, against servers that nobody here wrote or that mean harm.
mod mcp_client;
/// The MCP server over HTTP.
mod mcp_http;
/// The MCP server over pipes.
mod mcp_stdio;
/// A provider of models that says what a test wrote down for it.
mod model_server;
/// Models of other providers, over real HTTP.
mod models;
/// `toolstead models`.
mod models_command;
/// MCP mounted in a server of a team's own.
mod mounted;
/// Large results: cut within their budget, kept under handles, passed on by reference.
mod output_handles;
mod outputs;
mod permissions;
/// The public API of the crates, as a stored listing.
mod public_api;
/// The inside of the crates: which file may use which, and how much each room brings along.
mod rooms;
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
/// What the tests of the MCP server need.
mod support;
/// No race with renames leads a file tool out of the workspace.
mod swap_race;
/// Calls that go on as tasks of an MCP server.
mod tasks;
/// The pages of the built-in tools are those of their definitions.
mod tool_docs;
/// A command calls tools by the program `tool`, through the command line.
mod tools_as_commands;

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
/// What the list of tools costs a model.
mod context_cost;
/// What must be refused is, what must be held is, and ordinary work passes.
mod corpus;
/// `kill -9` under load loses nothing that was answered.
mod crash;
/// The cost of each dialect to a model.
mod dialect_cost;
/// Documents are read in a child process that takes nothing down but itself.
mod dialects;
mod documents;
/// What happens, for those who watch.
mod events;
/// Real clients use all that a real server offers, through us.
mod everything;
/// Mail at a fake Google.
mod gmail;
/// Google: tokens, and Gmail.
mod google_server;
/// Hooks of the user.
mod hooks;
mod hostile_schemas;
/// What providers of models are told of tools.
mod model_definitions;
/// Turns over the protocols of OpenAI and Gemini.
mod model_providers;
/// Calls out of calls.
mod nested_calls;
/// News outside of requests.
mod news;
/// Ordinary work goes on in the sandbox.
mod ordinary_life;
/// Real servers stand behind us, and one may die.
mod questions;
mod real_servers;
/// Code that calls tools.
mod run_code;
/// Where no namespaces can be had.
mod sandbox_tiers;
/// What servers run is what somebody said yes to.
mod server_programs;
/// Many real servers at once, all killed under load.
mod seven_servers;
/// Commands, tasks and what becomes of their processes, through the real binaries.
mod shell;
/// The names and parameters that other systems know our file tools by.
mod spellings;
/// Agents that hand work to others.
mod subagents;
/// A yes holds for a content at a place.
mod trust;
/// Over which connection a real server hears a call.
mod upstream_connections;
/// Pages are fetched, through the binaries.
mod web_fetch;
/// Searches of the web and reports of usage, by services over real HTTP.
mod web_search;
/// Web servers for tests through the binaries.
mod web_server;
/// What belongs to a workspace.
mod workspaces;
