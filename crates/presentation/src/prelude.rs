//! Everything that an embedding application with its own tools needs, in one `use`.
//!
//! Includes [`toolstead_infrastructure::builtin::prelude`] for defining tools, and the crates that its derives use.

pub use crate::{
    app::App,
    cli::embedded::mcp_server,
    composition_root::{
        AppBuilder, RunningApp, StartupError,
        custom_tool_registry::{ChangeToolsError, CustomToolRegistry},
    },
    config::{
        Config,
        layers::{
            environment::EnvironmentVariables,
            request::{ConfigFlags, ConfigRequest},
        },
    },
    mcp_server::http::{
        HttpServer,
        authenticator::{AuthenticatedClient, Authenticator, NotAuthenticated, bearer, is_same_secret},
        bearer_tokens::BearerTokens,
        service::McpService,
        settings::{BearerToken, HttpSettings},
    },
    query::{AgentQuery, AgentQueryRun, AgentStartError, AgentToolServer},
};
pub use ::http::{self, HeaderMap, HeaderName, HeaderValue, StatusCode, request::Parts};
pub use std::process::ExitCode;
pub use toolstead_application::{ExecuteToolCommand, ExecuteToolError};
pub use toolstead_domain::{
    AgentEvent, AgentOutcome, Block, Budgets, CallOutcome, Message, ModelAnswer, ModelError, ModelEvent, ModelFacts,
    ModelProvider, ModelRequest, OfferedTool, StopReason, TokenUsage, ToolArguments, ToolResultBlock, ToolUse,
};
pub use toolstead_infrastructure::{builtin::prelude::*, helper::enter_if_helper};
