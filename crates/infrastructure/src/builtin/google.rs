//! Services of Google that tools use with the account of the caller: mail and calendar.

pub(super) mod calendar_event;
mod google_service;
pub(super) mod mail;
