//! The policy as it goes along with one call.

use crate::{
    access::Access,
    permission::{decision::Verdict, policy::PermissionPolicy},
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};
use std::sync::Arc;

/// What one call may touch while it runs. A pure value: sandbox and connectors ask it for what only shows then, such as
/// the real path of an open file, the host a redirect leads to, or a file met on a walk.
#[derive(Debug, Clone)]
pub struct Grant {
    policy: Arc<PermissionPolicy>,
    tool: Arc<Tool>,
    approved: Vec<Access>,
}

impl Grant {
    /// The grant for a call of `tool`. `approved` is what a person was shown and said yes to; empty if nobody was asked.
    pub fn new(policy: Arc<PermissionPolicy>, tool: Arc<Tool>, approved: Vec<Access>) -> Self {
        Self { policy, tool, approved }
    }

    /// Whether this may be touched: nothing denies it, and it is allowed or lies within what was approved.
    pub fn permits(&self, access: &Access) -> bool {
        match self.policy.judge(&self.tool, access).verdict {
            Verdict::Allow => true,
            Verdict::Ask => self.approved.iter().any(|approved| approved.covers(access)),
            Verdict::Deny => false,
        }
    }

    /// Whether the caller of this call may know of another tool: the decision that lists are made with.
    pub fn advertises(&self, tool: &Tool) -> bool {
        self.policy.advertises(tool)
    }

    /// The folders of the workspace.
    pub fn roots(&self) -> &WorkspaceRoots {
        &self.policy.roots
    }
}
