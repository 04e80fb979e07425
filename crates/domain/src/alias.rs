//! Other spellings of a tool and of its parameters, and how the tool looks to those who spell it so.

pub mod face;
pub mod rewrite;

use crate::tool_failure::ToolFailure;
use face::Face;
pub use rewrite::Rewrite;
use serde_json::{Map, Value};

/// A name under which a tool is also understood, and how the arguments of that spelling become canonical ones.
///
/// An alias may bear the tool's own name: then it only adds parameter spellings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alias {
    /// The other name.
    pub name: &'static str,
    /// The tool system that the spelling comes from.
    pub dialect: Dialect,
    /// The steps on its arguments, in order.
    pub rewrites: &'static [Rewrite],
    /// The looks of the tool there; `None`: only its spelling is known.
    pub face: Option<&'static Face>,
}

/// A tool system whose spellings are understood. Its name means nothing here: whoever makes aliases knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect(pub &'static str);

impl Alias {
    /// Another spelling, which has no face.
    pub const fn new(name: &'static str, dialect: Dialect, rewrites: &'static [Rewrite]) -> Self {
        Self { name, dialect, rewrites, face: None }
    }

    /// Tells whether this is how that dialect spells it.
    pub fn is(&self, name: &str, dialect: Option<Dialect>) -> bool {
        self.name == name && Some(self.dialect) == dialect
    }

    /// Turns arguments of this spelling into canonical ones.
    ///
    /// # Errors
    /// `invalid_input` when both spellings of one parameter are given with different values, or a value does not fit
    /// the spelling's rule.
    pub fn rewrite(&self, arguments: &mut Map<String, Value>) -> Result<(), ToolFailure> {
        self.rewrites.iter().try_for_each(|rewrite| rewrite.apply(arguments))
    }
}
