//! Terms and rules of Toolstead, without I/O.
//!
//! The modules define values (a [`tool_name::ToolName`], a [`tool::Tool`], a [`tool_call::ToolCall`] and its
//! [`tool_result::ToolResult`]), the rules on permitted calls ([`permission`]), and the ports through which the outer
//! layers reach files, processes, stores and clients ([`ports`]). The crate reads no clock, opens no file and depends
//! on no other layer.
//! The feature `testing` adds fakes that keep the contracts of the ports, and contract suites for implementations. The
//! feature `serde` makes values that are stored or sent serializable as self-describing JSON.

pub mod access;
pub mod agent;
pub mod alias;
pub mod category;
pub mod client_capability;
pub mod client_profile;
pub mod coercion;
pub mod content_digest;
pub mod context;
pub mod conversation;
pub mod defaults;
pub mod definition_scan;
pub mod descriptor_limit;
pub mod error_chain;
pub mod error_kind;
pub mod event;
pub mod invisible_characters;
pub mod json_depth;
pub mod json_memory;
pub mod labels;
pub mod model;
pub mod permission;
pub mod pinning;
pub mod ports;
pub mod principal;
pub mod provider_identity;
pub mod question;
pub mod sandbox_policy;
pub mod scope;
pub mod secret;
#[cfg(feature = "serde")]
mod serde_forms;
pub mod server_name;
pub mod session;
pub mod suggestion;
pub mod task_request;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod todo;
pub mod tool;
pub mod tool_call;
pub mod tool_execution;
pub mod tool_failure;
pub mod tool_input_schema;
pub mod tool_name;
pub mod tool_result;
pub mod tool_selection;
pub mod workspace_roots;

pub use self::{
    access::{Access, AccessKind, BuiltInRule, CommandAccess, ParseConfidence, PathAccess, WildcardLimits},
    agent::{
        budget::{Budget, Budgets},
        command_text::CommandTextError,
        definition::{AgentDefinition, CommandArgument, PromptCommand, Skill},
        event::{AgentEvent, AgentOutcome},
        instructions::{DeliveredInstructions, InstructionSection},
    },
    alias::{
        Alias, Dialect,
        adapter_definitions::AdapterDefinitions,
        dialect_adapter::{AdaptedResult, AdapterInput, DialectAdapter},
    },
    category::{Category, UnknownCategory},
    client_capability::Capability,
    client_profile::{ClientProfile, Generation, LogLevel, ProtocolVersion, SELF_DEFERRING_CLIENTS},
    content_digest::{ContentDigest, InvalidDigest},
    context::{
        ContextCatalogue, InvalidDefinition, Prompt, ResourceTemplate,
        notice::ContextNotice,
        request::{Completion, CompletionReference, ContextRequest},
        uri_template::{InvalidUriTemplate, UriTemplate},
    },
    conversation::{
        Conversation, ConversationId, Delegation,
        event::{ConversationEvent, ConversationEventKind},
    },
    descriptor_limit::DescriptorLimit,
    event::{Event, EventKind, EventOrigin, FileChangeKind},
    labels::{InvalidLabel, Labels},
    model::{
        error::ModelError,
        message::{Block, Image, Message, Role, SealedBlock, ToolArguments, ToolResultBlock, ToolUse},
        reply::{ModelEvent, StopReason},
        request::{ModelRequest, OfferedTool},
        usage::{Prices, Usage},
    },
    permission::{
        command_pattern::PatternWords,
        decision::{Cause, Decision, Finding, NearMiss, Verdict},
        grant::{FolderReadGrant, Grant},
        offered_rule::UnusableRule,
        path_pattern::PatternBase,
        policy::{Mode, OuterPolicies, PermissionPolicy},
        read_only_commands::ReadOnlyCommands,
        rule::{Effect, InvalidRule, PermissionRule, RuleSubject},
    },
    pinning::{
        ChangePolicy, PendingDefinition, Pinning,
        item::{DefinitionVersion, ItemKey, ItemKind, OfferedItem, PinnedServer, VersionApproval},
    },
    ports::{
        agent_catalogue::{AgentCatalogue, NoAgents},
        agent_hook::{AgentHook, AgentHookEvent, AgentHookResponse},
        agent_surroundings::{AgentSurroundings, FolderInstructions, SurroundingsDescription},
        approval_rule::{ApprovalRule, RuleAnswer},
        approver::{Approval, ApprovalPart, ApprovalRequest, ApprovalScope, Approver, NoApprover},
        caller::{
            Caller, InputRequest, InputResponse, InputResponses, LogMessage, NotAnswered, Progress, SilentCaller,
        },
        calls::{CallPreview, Calls, NestedCall, NoCalls, UnknownName},
        change_journal::{ChangeJournal, FileChange, FileState, JournalEntry, NoJournal, StoredBlob},
        clock::{Clock, Timestamp},
        context_provider::ContextProvider,
        conversation_store::{AppendError, ConversationStore, NoConversations},
        credentials::{CredentialHeaders, Credentials, CredentialsError, NoAccounts},
        definition_store::DefinitionStore,
        embeddings::{Embeddings, EmbeddingsError},
        event_sink::{EventSink, NoEvents},
        execution_log::{ExecutionFilter, ExecutionLog},
        model_provider::{ModelAnswer, ModelFacts, ModelProvider},
        models::{Models, NoModels},
        output_store::{InvalidHandle, NoOutputs, OutputHandle, OutputStore, StoredContent, StoredOutput},
        question_store::{QuestionError, QuestionStore},
        read_state::ReadState,
        rule_store::{NoRuleStore, RuleNotSaved, RuleStore},
        schema_validator::{NoSchemaValidator, SchemaValidator, SchemaValidatorError},
        stores::Stores,
        tasks::{NewTask, NoTasks, TaskEnd, TaskOutput, TaskWork, Tasks},
        todo_store::TodoStore,
        tool_hook::{
            AfterCallResponse, BeforeCallResponse, EndedCall, HookContext, HookTimeout, HookVerdict, ToolHook,
        },
        tool_provider::{
            CallContext, CallOutcome, ForwardedMembers, InputRequired, InputRequiredResponse, ProviderError,
            ProviderState, ToolProvider,
        },
        tool_repository::{Catalogue, DefinitionChange, StoreError, ToolRepository},
        web_search::{Domains, Freshness, SearchBounds, WebHit, WebQuery, WebSearch, WebSearchError},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    question::{Choice, DeferredQuestions, Question, QuestionId},
    sandbox_policy::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy},
    scope::{
        Scope, View,
        view_content::{DuplicateToolName, ViewContent, ViewLimits},
    },
    secret::Secret,
    server_name::{InvalidServerName, ServerName},
    session::{Session, SessionError, SessionState},
    suggestion::{DefaultSuggestions, Suggestion, SuggestionFormatter},
    task_request::{TaskMethod, TaskRequest},
    todo::{Todo, TodoList, TodoPriority, TodoStatus},
    tool::{
        Availability, DefinitionPart, OutputReading, Tool, ToolAnnotations, ToolSource,
        overlay::{InvalidOverlay, ToolOverlay},
    },
    tool_call::{CallId, ToolCall},
    tool_execution::{
        CancelReason, DecisionRef, ExecutionRef, JsonRef, Outcome, OutcomeKind, RecordedDecision, RequestKind,
        ToolExecution,
    },
    tool_failure::{ToolFailure, UpstreamError},
    tool_input_schema::{Formats, InvalidArguments, InvalidSchema, UnlistedViolations, Violation},
    tool_name::{InvalidToolName, ToolName},
    tool_result::{MalformedResult, ToolResult},
    tool_selection::{InvalidSelection, ToolSelection},
    workspace_roots::{RootKind, WorkspaceRoots},
};

#[cfg(feature = "json-schema")]
pub use self::tool_input_schema::{ArgumentValidationError, ToolInputSchema, UnboundedCost};

#[cfg(feature = "serde")]
pub use self::tool_result::TextBlock;
