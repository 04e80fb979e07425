//! Kinds of soft findings, as clauses.

pub(super) const OVERRIDES: &str = "it directs the model to set its instructions aside";
pub(super) const CONCEALS: &str = "it directs the model to hide something from the user";
pub(super) const ADDRESSES: &str = "it addresses the model like its user or developer";
pub(super) const SECRETS: &str = "it asks for secrets or private data";
pub(super) const SENDS: &str = "it sends data to an address that it names";
pub(super) const DIRECTS: &str = "it directs the use of other tools";
pub(super) const APPROVES: &str = "it directs the model to act without approval";
pub(super) const MARKUP: &str = "it has the markup of a conversation with a model";
pub(super) const COMMANDS: &str = "it has a command line that downloads, decodes or deletes";
