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
    access::{Access, AccessKind, AccessPath, BuiltInAllowRule, CommandAccess, ParseConfidence, RuleWideningLimits},
    agent::{
        budget::{BudgetKind, Budgets},
        command_text::ArgumentInsertionError,
        definition::{AgentDefinition, CommandArgument, CommandPromptTemplate, Skill},
        event::{AgentEvent, AgentOutcome},
        instructions::{DeliveredInstructions, InstructionFile},
    },
    alias::{
        Alias, Dialect,
        adapter_definitions::DialectToolDefinitions,
        dialect_adapter::{AdaptedResult, AdapterInput, DialectAdapter},
    },
    category::{Category, UnknownCategory},
    client_capability::ClientCapability,
    client_profile::{ClientProfile, LogLevel, ProtocolGeneration, ProtocolVersion, SELF_DEFERRING_CLIENTS},
    content_digest::{ContentDigest, InvalidDigest},
    context::{
        ContextCatalogue, InvalidContextDefinition, Prompt, ResourceTemplate,
        notice::ContextNotice,
        request::{CompletionReference, CompletionRequest, ContextRequest},
        uri_template::{InvalidUriTemplate, UriTemplate},
    },
    conversation::{
        Conversation, ConversationId, Delegation,
        event::{ConversationEvent, ConversationEventKind},
    },
    descriptor_limit::FileDescriptorExhaustion,
    event::{Event, EventKind, EventOrigin, FileChangeKind},
    labels::{CallLabels, InvalidLabel},
    model::{
        error::ModelError,
        message::{Block, Image, Message, Role, SealedBlock, ToolArguments, ToolResultBlock, ToolUse},
        reply::{ModelEvent, StopReason},
        request::{ModelRequest, OfferedTool},
        usage::{TokenPrices, TokenUsage},
    },
    permission::{
        command_pattern::CommandPatternOutline,
        decision::{Cause, Decision, Finding, NearMiss, Verdict},
        grant::{CallPermissions, FolderReadPermissions},
        offered_rule::UnusableWrittenRule,
        path_pattern::PatternContext,
        policy::{OuterPolicies, PermissionMode, PermissionPolicy},
        read_only_commands::ReadOnlyCommands,
        rule::{Effect, InvalidRule, PermissionRule, RuleSubject},
    },
    pinning::{
        ChangePolicy, PendingDefinitionChange, ServerPinningSettings,
        item::{DefinitionVersion, ItemKey, ItemKind, OfferedItem, PinnedServerKey, VersionApproval},
    },
    ports::{
        agent_catalogue::{AgentCatalogue, NoAgents},
        agent_hook::{AgentHook, AgentHookEvent, AgentHookResponse},
        agent_surroundings::{AgentSurroundings, FolderInstructions, SurroundingsDescription},
        approval_rule::{ApprovalRuleDecision, AutoApprovalRule},
        approver::{ApprovalOutcome, ApprovalPart, ApprovalRequest, ApprovalScope, Approver, NoApprover},
        caller::{
            Caller, InputRequest, InputResponse, InputResponses, LogMessage, NotAnswered, Progress, SilentCaller,
        },
        calls::{CallPreview, Calls, NestedCall, NoCalls, UnknownToolName},
        change_journal::{ChangeJournal, FileChange, FileState, JournalEntry, NoJournal, StoredBlob},
        clock::{Clock, Timestamp},
        context_provider::ContextProvider,
        conversation_store::{AppendError, ConversationStore, NoConversations},
        credentials::{CredentialHeaders, Credentials, CredentialsError, NoAccounts},
        definition_store::PinnedDefinitionStore,
        embeddings::{Embeddings, EmbeddingsError},
        event_sink::{EventSink, NoEvents},
        execution_log::{ExecutionFilter, ExecutionLog},
        model_provider::{ModelAnswer, ModelFacts, ModelProvider},
        models::{Models, NoModels},
        output_store::{InvalidOutputHandle, NoOutputs, OutputHandle, OutputStore, StoredContent, StoredOutput},
        question_store::{QuestionError, QuestionStore},
        read_state::ReadState,
        rule_store::{NoRuleStore, RuleNotSaved, RuleStore},
        schema_validator::{SchemaValidationError, SchemaValidator, UnavailableSchemaValidator},
        stores::Stores,
        tasks::{NewTask, NoTasks, TaskOutputSink, TaskStarter, TaskWork, TaskWorkOutcome},
        todo_store::TodoStore,
        tool_hook::{
            AdditionalContext, AfterCallResponse, BeforeCallResponse, EndedCall, HookTimeout, HookVerdict, ToolHook,
        },
        tool_provider::{
            CallContext, CallOutcome, ForwardedMembers, InputAnswers, InputRequired, ProviderListError, ProviderState,
            ToolProvider,
        },
        tool_repository::{DefinitionChange, StoreError, StoredToolCatalogue, ToolRepository},
        web_search::{DomainFilter, Freshness, WebHit, WebQuery, WebSearch, WebSearchContext, WebSearchError},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    question::{Choice, DeferredQuestions, Question, QuestionGroupId},
    sandbox_policy::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy},
    scope::{
        RequestScope, View,
        view_content::{DuplicateToolName, ViewCallLimits, ViewContent},
    },
    secret::Secret,
    server_name::{InvalidServerName, ServerName},
    session::{Session, SessionState, SessionStateError},
    suggestion::{DefaultSuggestions, Suggestion, SuggestionFormatter},
    task_request::{TaskMethod, TaskMethodRequest},
    todo::{Todo, TodoList, TodoPriority, TodoStatus},
    tool::{
        Availability, DefinitionPart, OutputReaderParameters, Tool, ToolAnnotations, ToolSource,
        overlay::{InvalidOverlay, ToolOverlay},
    },
    tool_call::{CallId, ToolCall},
    tool_execution::{
        AuditedRequestKind, BorrowedToolExecution, CancelReason, ExecutionOutcome, OutcomeKind, ParsedOrRawJsonRef,
        RecordedDecision, RecordedDecisionRef, ToolExecution,
    },
    tool_failure::{ToolFailure, UpstreamError},
    tool_input_schema::{FormatValidation, InvalidArguments, InvalidSchema, UnlistedViolations, Violation},
    tool_name::{InvalidToolName, ToolName},
    tool_result::{MalformedResult, ToolResult},
    tool_selection::{SelectionFormConflict, ToolSelection},
    workspace_roots::{RootPermission, WorkspaceRoots},
};

#[cfg(feature = "json-schema")]
pub use self::tool_input_schema::{ArgumentValidationError, ToolInputSchema, UnboundedCost};

#[cfg(feature = "serde")]
pub use self::tool_result::TextBlockRef;
