//! Grants: the scopes that a person says yes to at once.

/// One grant: a name, and what it lets this program do at the service.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name, as commands and resources have it.
    pub name: &'static str,
    /// Its purpose, for people.
    pub about: &'static str,
    /// The scopes that are asked for. It takes all of them.
    pub scopes: &'static [&'static str],
}

/// Mail.
pub const GMAIL: Grant = Grant {
    name: "gmail",
    about: "Gmail: read mail, and send it",
    scopes: &["https://www.googleapis.com/auth/gmail.readonly", "https://www.googleapis.com/auth/gmail.send"],
};

/// The calendar.
pub const CALENDAR: Grant = Grant {
    name: "calendar",
    about: "Google Calendar: read and change events",
    scopes: &["https://www.googleapis.com/auth/calendar"],
};

/// All grants that there are.
pub const GRANTS: [&Grant; 2] = [&GMAIL, &CALENDAR];

impl Grant {
    /// The grant of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        GRANTS.into_iter().find(|grant| grant.name == name)
    }

    /// The scopes of it that are not among these.
    pub(super) fn missing_in<'a>(&'a self, granted: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let is_granted = |scope: &str| granted.iter().any(|one| one == scope);
        self.scopes.iter().filter(move |scope| !is_granted(scope)).map(|scope| (*scope).to_owned())
    }
}
