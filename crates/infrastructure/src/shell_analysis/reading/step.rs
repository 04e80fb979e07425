//! What the walk has yet to do.

use crate::shell_analysis::folders::Folders;
use tree_sitter::Node;

/// One thing to do. Later ones are done first.
pub(super) enum Step<'t> {
    Enter(Node<'t>, Place),
    /// A subshell ended: its folder is forgotten.
    Restore(Folders),
    /// Between the two sides of `&&` (true) or `||`.
    RightSide(bool),
    /// Behind both sides.
    Join(bool),
    /// Behind a statement whose success says nothing about its last `cd`.
    Settle,
    /// A statement with redirections that stand outside of it in the tree.
    Redirected(Node<'t>, Vec<Node<'t>>, Place),
}

/// Where in the tree a node stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) depth: usize,
    /// Within `$(...)` or backticks.
    pub(super) substituted: bool,
    /// Within backticks.
    pub(super) backticks: bool,
}
