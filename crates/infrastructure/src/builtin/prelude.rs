//! Everything that a tool in Rust needs, in one `use`.
//!
//! The crates behind the derives are included, so that an application uses the versions that Toolstead was built with:
//! `#[serde(crate = "toolstead_infrastructure::builtin::prelude::serde")]` on a type that derives `Deserialize` or
//! `Serialize`. An application that depends on serde itself does not need that attribute.

pub use crate::builtin::{
    BuiltInTool, CustomTool, DeclaredAccesses, IntoTool, ToolContext, ToolEnvironment, ToolFuture, ToolGroup,
    ToolOutput, TypedTool, UnstructuredResult, commands::run_program::ProgramResult, tool_fn, tool_group, typed,
};
pub use ::async_trait::async_trait;
pub use ::schemars::{self, JsonSchema};
pub use ::serde::{self, Deserialize, Serialize};
pub use ::serde_json::{self, Map, Value, json};
pub use toolstead_domain::{
    Access, CallLabels, Category, Principal, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};
