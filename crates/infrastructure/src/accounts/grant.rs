//! Grants: sets of scopes that the user approves at once.

/// Grant: a name, and the permissions of this application at the service.
#[derive(Debug, PartialEq, Eq)]
pub struct GrantDefinition {
    /// Name in commands and resources.
    pub name: &'static str,
    /// Purpose, for display.
    pub about: &'static str,
    /// Requested scopes. All of them are required.
    pub scopes: &'static [&'static str],
}

/// Mail.
pub const GMAIL: GrantDefinition = GrantDefinition {
    name: "gmail",
    about: "Gmail: read mail, and send it",
    scopes: &["https://www.googleapis.com/auth/gmail.readonly", "https://www.googleapis.com/auth/gmail.send"],
};

/// Calendar.
pub const CALENDAR: GrantDefinition = GrantDefinition {
    name: "calendar",
    about: "Google Calendar: read and change events",
    scopes: &["https://www.googleapis.com/auth/calendar"],
};

/// All grants.
pub const GRANTS: [&GrantDefinition; 2] = [&GMAIL, &CALENDAR];

impl GrantDefinition {
    /// Returns the grant with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        GRANTS.into_iter().find(|grant| grant.name == name)
    }

    /// Returns the scopes of the grant that are not in `granted`.
    pub(super) fn missing_in<'a>(&'a self, granted: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let is_granted = |scope: &str| granted.iter().any(|one| one == scope);
        self.scopes.iter().filter(move |scope| !is_granted(scope)).map(|scope| (*scope).to_owned())
    }
}
