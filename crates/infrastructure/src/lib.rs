//! The adapters of Toolstead: all I/O is in this crate.
//!
//! Each module is one technology and one feature. It uses only the modules listed for it in
//! `docs/internals/architecture.md`. No type of a database or network library appears in a public signature, except
//! those of `rmcp` in `mcp::rmcp_server`.

#[cfg(feature = "accounts")]
pub mod accounts;
#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "builtin")]
pub mod builtin;
pub mod child_environment;
pub mod dialects;
#[cfg(feature = "documents")]
pub mod documents;
#[cfg(feature = "egress")]
pub mod egress;
pub mod helper_port;
#[cfg(feature = "hooks")]
pub mod hooks;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(feature = "services")]
pub mod services;
#[cfg(feature = "shell-analysis")]
pub mod shell_analysis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod system_clock;
#[cfg(feature = "upstream-auth")]
pub mod upstream_auth;
pub mod user_program;
#[cfg(any(feature = "browser", feature = "web"))]
pub mod visible_text;
#[cfg(feature = "web")]
pub mod web;

/// Entry point of child processes that run this same executable.
#[cfg(feature = "sandbox")]
pub mod helper {
    pub use crate::sandbox::helper::end as end_helpers;

    /// Must be the first line of `main` in every application that embeds Toolstead. Some work, such as reading
    /// documents, is done in a child process, and that child runs the same executable again. In such a child this
    /// function does the work and never returns; otherwise it returns at once.
    ///
    /// An application that does not call it still works, but cannot read documents; the failure explains the missing
    /// call.
    ///
    /// ```
    /// toolstead_infrastructure::helper::enter_if_helper();
    /// // … and now the program's own work.
    /// ```
    pub fn enter_if_helper() {
        #[cfg(feature = "builtin")]
        crate::builtin::commands::tool_program::enter();
        crate::sandbox::helper::enter(&[
            #[cfg(feature = "documents")]
            (crate::documents::HELPER, crate::documents::answer),
            #[cfg(feature = "services")]
            (crate::services::linkedin::HELPER, crate::services::linkedin::answer),
            #[cfg(feature = "web")]
            (crate::web::page::HELPER, crate::web::page::answer),
            #[cfg(feature = "services")]
            (crate::services::search::PAGE_HELPER, crate::services::search::page_answer),
            #[cfg(feature = "schema-validation")]
            (crate::sandbox::schema_validation::HELPER, crate::sandbox::schema_validation::answer),
        ]);
    }
}
