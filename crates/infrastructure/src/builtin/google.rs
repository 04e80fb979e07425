//! Services of Google, as tools use them: on behalf of the one who calls.

use crate::{
    builtin::{run::Run, world::World},
    services::google::{GoogleAccount, resource},
    web::reach::Judge,
};
use toolstead_domain::{access::Access, error_kind::ErrorKind, tool::Availability, tool_failure::ToolFailure};
use url::Url;

/// One of the services.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoogleService {
    /// The name that people know.
    pub(super) name: &'static str,
    /// The grant that covers it.
    pub(super) grant: &'static str,
    /// Its address in the configuration, or why it has none.
    pub(super) address: fn(&World) -> &Result<Url, String>,
}

impl GoogleService {
    /// Tells whether it can be used here by those who sign in.
    pub(super) fn availability(self, world: &World) -> Availability {
        let reason = match (self.address)(world) {
            Ok(address) => world.credentials().unavailable(&resource(self.grant, address)),
            Err(reason) => Some(reason.clone()),
        };
        reason.map_or(Availability::Available, Availability::Unavailable)
    }

    /// Its address.
    ///
    /// # Errors
    /// `unavailable`, with the reason.
    pub(super) fn address(self, world: &World) -> Result<&Url, ToolFailure> {
        let unavailable = |reason: &String| ToolFailure::new(ErrorKind::Unavailable, reason.clone());
        (self.address)(world).as_ref().map_err(unavailable)
    }

    /// The connection that each call of it makes.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub(super) fn access(self, world: &World) -> Result<Access, ToolFailure> {
        Ok(Access::ReachHost(self.address(world)?.host_str().unwrap_or_default().into()))
    }

    /// The account of the one who calls.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub(super) fn account<'a>(self, run: &Run<'a>, judge: Judge<'a>) -> Result<GoogleAccount<'a>, ToolFailure> {
        let (world, context) = (run.world(), run.context());
        Ok(GoogleAccount {
            service: self.name,
            reach: world.reach(),
            credentials: world.credentials(),
            principal: context.principal,
            resource: resource(self.grant, self.address(world)?),
            judge,
            caller: context.caller,
            deadline: context.deadline,
        })
    }
}
