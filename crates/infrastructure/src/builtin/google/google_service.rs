//! Services of Google that tools use with the account of the caller.

use crate::{
    builtin::tool_kit::{tool_context::ToolContext, tool_environment::ToolEnvironment},
    services::google::{GoogleApiClient, resource},
    web::web_client::HostCheck,
};
use toolstead_domain::{Access, Availability, ToolFailure, error_kind::ErrorKind};
use url::Url;

/// A service of Google.
#[derive(Debug, Clone, Copy)]
pub(in crate::builtin) struct GoogleServiceDefinition {
    /// Name for display.
    pub(in crate::builtin) name: &'static str,
    /// Grant that covers the service.
    pub(in crate::builtin) grant: &'static str,
    /// Returns its configured address, or the reason why it has none.
    pub(in crate::builtin) address: fn(&ToolEnvironment) -> &Result<Url, String>,
}

impl GoogleServiceDefinition {
    /// Returns the availability of the service to users who sign in.
    pub(in crate::builtin) fn availability(self, world: &ToolEnvironment) -> Availability {
        let reason = match (self.address)(world) {
            Ok(address) => world.web().credentials().unavailable(&resource(self.grant, address)),
            Err(reason) => Some(reason.clone()),
        };
        reason.map_or(Availability::Available, Availability::Unavailable)
    }

    /// Returns its address.
    ///
    /// # Errors
    /// `unavailable`, with the reason.
    pub(in crate::builtin) fn address(self, world: &ToolEnvironment) -> Result<&Url, ToolFailure> {
        let unavailable = |reason: &String| ToolFailure::new(ErrorKind::Unavailable, reason.clone());
        (self.address)(world).as_ref().map_err(unavailable)
    }

    /// Returns the access of each call of the service.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub(in crate::builtin) fn access(self, world: &ToolEnvironment) -> Result<Access, ToolFailure> {
        Ok(Access::ReachHost(self.address(world)?.host_str().unwrap_or_default().into()))
    }

    /// Returns the account of the caller.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub(in crate::builtin) fn account<'a>(
        self,
        run: &ToolContext<'a>,
        judge: HostCheck<'a>,
    ) -> Result<GoogleApiClient<'a>, ToolFailure> {
        let (world, context) = (run.environment(), run.context());
        Ok(GoogleApiClient {
            service: self.name,
            reach: world.web().client(),
            credentials: world.web().credentials(),
            principal: context.principal,
            resource: resource(self.grant, self.address(world)?),
            judge,
            caller: context.caller,
            deadline: context.deadline,
        })
    }
}
