//! Calls of tools and forwarded requests, from the request to the outcome.

pub(super) mod created_task;
pub(super) mod forwarding;
pub(super) mod outcome;
pub(super) mod tasks;
