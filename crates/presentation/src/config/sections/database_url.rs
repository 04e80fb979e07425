//! URL of a database: its backend and location.

use std::{fmt, path::PathBuf};

/// Location of the stores, with one variant per backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// Path of an SQLite file. The file and its folder need not exist yet.
    Sqlite(PathBuf),
}

/// Error of parsing a database URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum DatabaseUrlError {
    /// The text has no known form.
    #[error("not a database URL")]
    Malformed,
    /// The scheme names another kind of database. The URL is not included in the message because it may contain a
    /// password.
    #[error("`{scheme}://` is not built into this version: give `sqlite://PATH`, or leave the key out")]
    NotBuiltIn {
        /// Scheme of the URL.
        scheme: String,
    },
    /// The path is invalid.
    #[error("{0}")]
    Path(String),
}

impl DatabaseUrl {
    /// Parses a URL. `absolute` resolves its path.
    pub(in crate::config) fn parse(
        text: &str,
        absolute: impl FnOnce(&str) -> Result<PathBuf, String>,
    ) -> Result<Self, DatabaseUrlError> {
        let (scheme, rest) = text.split_once(':').ok_or(DatabaseUrlError::Malformed)?;
        let path = rest.strip_prefix("//");
        match scheme {
            "sqlite" => match path.unwrap_or(rest) {
                "" | ":memory:" => Err(DatabaseUrlError::Malformed),
                path if path.contains(['?', '\0']) => Err(DatabaseUrlError::Malformed),
                path => absolute(path).map(Self::Sqlite).map_err(DatabaseUrlError::Path),
            },
            _ if path.is_some() && is_scheme(scheme) => Err(DatabaseUrlError::NotBuiltIn { scheme: scheme.into() }),
            _ => Err(DatabaseUrlError::Malformed),
        }
    }

    /// Returns the location for display, without secret parts of the URL.
    pub fn place(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
        }
    }
}

/// Returns `true` if the text is a scheme as defined by RFC 3986, section 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DatabaseUrlError::{Malformed, NotBuiltIn};
    use std::path::Path;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, DatabaseUrlError>) {
        let url = DatabaseUrl::parse(text, |path| Ok(Path::new("/base").join(path)));
        assert_eq!(url, expected.map(|path| DatabaseUrl::Sqlite(path.into())), "{text}");
    }

    #[test]
    fn a_database_url_names_a_sqlite_file_or_reports_an_unsupported_scheme() {
        check("sqlite:///var/t.db", Ok("/var/t.db"));
        check("sqlite:t.db", Ok("/base/t.db"));
        check("sqlite://t.db", Ok("/base/t.db"));
        for text in
            ["", "t.db", "/t.db", "sqlite://", "sqlite:", "sqlite::memory:", "sqlite://t.db?mode=ro", "x y://z", "C:t"]
        {
            check(text, Err(Malformed));
        }
        for scheme in ["postgres", "postgresql", "mysql", "sqlite+aes"] {
            check(&format!("{scheme}://user:secret@host/db"), Err(NotBuiltIn { scheme: scheme.into() }));
        }
    }
}
