//! Other names of a tool and of its parameters, and its appearance in the system that uses these names.

pub mod adapter_definitions;
pub mod dialect_adapter;
pub mod rewrite;

use crate::tool_failure::ToolFailure;
use dialect_adapter::DialectAdapter;
pub use rewrite::Rewrite;
use serde_json::{Map, Value};

/// Name by which a tool can also be called, with the conversion of its arguments to canonical ones.
///
/// An alias may have the tool's own name: it then only adds parameter names.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::alias::{Alias, Dialect, Rewrite};
///
/// const CAT: Alias = Alias::new("cat", Dialect("unix"), &[Rewrite::Rename("file", "path")]);
///
/// let mut arguments = json!({"file": "a.txt"}).as_object().unwrap().clone();
/// CAT.rewrite(&mut arguments)?;
/// assert_eq!(arguments["path"], "a.txt");
/// # Ok::<(), toolstead_domain::tool_failure::ToolFailure>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alias {
    /// Name by which the tool can also be called.
    pub name: &'static str,
    /// Tool system that the name comes from.
    pub dialect: Dialect,
    /// Conversion of its arguments, in steps.
    pub rewrites: &'static [Rewrite],
    /// Appearance of the tool in the dialect; `None` if only the names of the dialect are supported.
    pub adapter: Option<&'static DialectAdapter>,
}

/// Tool system whose names are supported. The name is chosen by the author of the aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect(pub &'static str);

impl Alias {
    /// Creates an alias without a dialect adapter.
    pub const fn new(name: &'static str, dialect: Dialect, rewrites: &'static [Rewrite]) -> Self {
        Self { name, dialect, rewrites, adapter: None }
    }

    /// Returns `true` if the alias has this name and belongs to this dialect; always `false` without a dialect.
    pub fn is(&self, name: &str, dialect: Option<Dialect>) -> bool {
        self.name == name && Some(self.dialect) == dialect
    }

    /// Converts arguments with the parameter names of the dialect to canonical ones, in place.
    ///
    /// # Errors
    /// `invalid_input` if one parameter is given by two names with different values, or a value does not satisfy a
    /// step.
    pub fn rewrite(&self, arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
        self.rewrites.iter().try_for_each(|rewrite| rewrite.apply(arguments))
    }
}
