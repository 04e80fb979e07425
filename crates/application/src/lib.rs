//! The use cases of Toolstead, one per file: a command or query, its handler and its errors.
//!
//! [`execute_tool`] is the call path, which every call takes. [`tool_registry`] is the live set of tools that all use
//! cases read. The crate depends on the domain crate alone; everything else is reached through ports.

pub mod approval_rule_approver;
mod call_effects;
pub mod cancel_signal;
pub mod context_registry;
pub mod deadline_approver;
pub mod definition_pins;
pub mod event_bus;
pub mod execute_tool;
pub mod fork_conversation;
pub mod forward_request;
pub mod forward_task;
pub mod get_tool;
pub mod list_context;
pub mod list_executions;
pub mod list_tools;
pub mod open_calls;
pub mod orchestration;
pub mod permission_book;
pub mod provider_notifications;
pub mod redaction;
pub mod refresh_tools;
pub mod registry_events;
pub mod run_agent;
pub mod set_tool_enabled;
pub mod tool_deferral;
pub mod tool_registry;
pub mod tool_search;
pub mod undo_conversation;
mod view_forms;
pub mod watch_resource;

pub use self::{
    approval_rule_approver::ApprovalRuleApprover,
    cancel_signal::CancelSignal,
    context_registry::{
        ContextEvent, ContextListVersions, ContextRegistrationError, ContextRegistry,
        context_request_target::ContextRequestTarget,
        snapshot::{ContextSnapshot, PublishedContextDefinition},
    },
    deadline_approver::DeadlineApprover,
    definition_pins::{DefinitionPins, UnapprovedItem, digest_of},
    event_bus::{EventBus, EventSubscription, ReceivedEvent},
    execute_tool::{
        AuditFailure, CallSettings, ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, ExecuteToolPorts,
        NestedCallPosition, RecordedArguments,
        explain::{ExplainCallQuery, ExplainedCall},
        tool_timeouts::ToolTimeouts,
    },
    fork_conversation::{ForkConversationCommand, ForkConversationError, ForkConversationHandler},
    forward_request::{ContextRequestOutcome, ForwardContextRequestCommand, ForwardContextRequestHandler},
    forward_task::{ForwardTaskCommand, ForwardTaskHandler},
    get_tool::{GetToolHandler, GetToolQuery, ToolView},
    list_context::{ContextListKind, ContextPage, InvalidContextCursor, ListContextHandler, ListContextQuery},
    list_executions::ListExecutionsHandler,
    list_tools::{InvalidCursor, ListToolsHandler, ListToolsQuery, PageLimit, ToolFilter, ToolPage},
    open_calls::{NotAdmitted, OpenCallGuard, OpenCalls},
    orchestration::{OrchestrationToolExamples, OrchestrationTools, SubagentPorts},
    permission_book::{CallFingerprint, PermissionBook},
    provider_notifications::{LogListenerRegistration, ProviderInstructionsAndLogs},
    refresh_tools::{RefreshToolsCommand, RefreshToolsHandler},
    run_agent::{
        AgentRunHandle, CompactConversationCommand, CompactConversationError, CompactionThreshold,
        CompactionTokenCounts, OfferedTools, RunAgentCommand, RunAgentHandler, RunAgentPorts,
    },
    set_tool_enabled::{SetToolEnabledCommand, SetToolEnabledError, SetToolEnabledHandler},
    tool_deferral::{ToolDeferral, ToolListForm},
    tool_registry::{
        AbsentServer, ProviderStatus, RegistryError, SharedRegisteredTool, ToolRegistry,
        snapshot::{RegisteredTool, ResolveError, ShadowedTool, ToolSnapshot},
    },
    tool_search::{ToolMatches, ToolSearch},
    undo_conversation::{
        ChangingCall, ConversationUndoReport, SkippedCall, UndoConversationCommand, UndoConversationError,
        UndoConversationHandler, UndoConversationPorts,
    },
    watch_resource::{ResourceWatchGuard, WatchResourceCommand, WatchResourceHandler},
};
