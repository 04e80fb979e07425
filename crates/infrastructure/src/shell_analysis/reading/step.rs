//! Pending steps of the walk.

use crate::shell_analysis::folders::WorkingFolders;
use tree_sitter::Node;

/// Pending step of the walk over the syntax tree. The step that was added last runs first.
pub(super) enum WalkStep<'t> {
    Enter(Node<'t>, NodeNesting),
    /// Restores the working folders after a subshell, a substitution or a part of a pipeline.
    Restore(WorkingFolders),
    /// Between the two sides of `&&` (`true`) or `||` (`false`).
    RightSide(bool),
    /// After both sides of `&&` (`true`) or `||` (`false`).
    Join(bool),
    /// After a statement whose exit status does not depend on its last `cd`.
    Settle,
    /// A statement with redirections that are outside of it in the tree.
    Redirected(Node<'t>, Vec<Node<'t>>, NodeNesting),
}

/// Nesting of a node in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeNesting {
    pub(super) depth: usize,
    /// `true` within a command or process substitution, except one that only prints a literal here-document.
    pub(super) substituted: bool,
    /// Within backticks.
    pub(super) backticks: bool,
}
