//! Removal of secrets from texts, for all texts of audit records, events and logs.
//!
//! A text is a secret because of its position (the value of a name that suggests a secret, a header, a URL) or because
//! of its format (tokens of well-known services). A secret in the arguments of a call is also removed from every other
//! text of that call. For typed values such as passwords, each beginning of the value is removed, too: a page may
//! repeat it key by key.

mod literals;

use literals::PrefilterLiterals;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    sync::{LazyLock, OnceLock},
};

/// Replacement of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Maximum length of a text that is examined, in bytes. No audit record stores more of a text.
pub(crate) const LOOKED_AT: usize = 16 << 10;
/// Minimum length of a secret that is removed from the other texts of its call, in bytes: shorter ones would match
/// parts of words.
const SHORTEST_VALUE: usize = 4;
/// Maximum length of the arguments of one call that is searched for secrets without a name, in bytes.
const SEARCHED: usize = 1 << 20;
/// Maximum number of secrets of one call.
const MOST_VALUES: usize = 256;

/// Minimum length of a token of a well-known service without a hyphen, in bytes.
const SHORTEST_SHAPE: usize = 18;

/// Beginnings of the formats that have an underscore before a hyphen or a full stop.
const SHAPES_BEFORE_UNDERSCORE: [&[u8]; 10] =
    [b"ghp", b"gho", b"ghu", b"ghs", b"ghr", b"github", b"sk", b"rk", b"npm", b"hf"];

/// A word of a shell: quoted pieces, escapes and plain characters in a row.
const WORD: &str = r#"(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^\s&;|<>'"\\])+"#;
/// A word that begins with neither `=` nor `-`.
const VALUE: &str =
    r#"(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^\s&;|<>'"\\=-])(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[^\s&;|<>'"\\])*"#;

/// A name that may be that of a secret; [`is_secret_name`] decides.
const NAME: &str = concat!(
    r"(?<name>[A-Za-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|authorization|cookie|credential",
    r"|(?:private|access|account|signing|encryption)[_-]?key|jwt|[A-Za-z0-9][_-]pass|pgpass)[A-Za-z0-9_.-]*)"
);

/// The positions and formats of secrets. The group `hide` is replaced if the group `name` is the name of a secret or
/// absent.
static PATTERNS: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    let patterns = [
        // Keys in PEM, including truncated ones.
        (
            PrefilterLiterals::PRIVATE_KEY,
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?<hide>[\s\S]*?)(?:-----END|$)".to_owned(),
        ),
        // URLs: everything between a user and the host, and over HTTP also a user without a password.
        (PrefilterLiterals::USER_OF_URL, r#"(?i)\b[a-z][a-z0-9+.-]*://[^\s/?#:@'"]*:(?<hide>[^\s/?#'"]+)@"#.to_owned()),
        (PrefilterLiterals::USER_OF_URL, r#"(?i)\bhttps?://(?<hide>[^\s/?#:@'"]+)@"#.to_owned()),
        (
            PrefilterLiterals::QUERY,
            r#"(?i)[?&](?:key|sig|signature|auth|code|jwt|pwd|pass|session|sid)=(?<hide>[^&#\s'"]+)"#.to_owned(),
        ),
        // Headers, to the end of the line or of the quote.
        (
            PrefilterLiterals::AUTHORIZATION,
            r#"(?i)\b(?:proxy-)?authorization\s*:\s*(?<hide>(?:\\.|[^\r\n'"\\])+)"#.to_owned(),
        ),
        (PrefilterLiterals::COOKIE, r#"(?i)\b(?:set-)?cookie\s*:\s*(?<hide>(?:\\.|[^\r\n'"\\])+)"#.to_owned()),
        (
            PrefilterLiterals::SECRET_HEADER,
            r#"(?i)\b(?<name>x-[a-z0-9-]+|[a-z0-9]+-[a-z0-9-]+)\s*:\s*(?<hide>[^\s'"\\]+)"#.to_owned(),
        ),
        (PrefilterLiterals::BEARER, r"(?i)\bbearer\s+(?<hide>[A-Za-z0-9._~+/=-]+)".to_owned()),
        (
            PrefilterLiterals::BASIC,
            r"\b(?i:basic)\s+(?<hide>(?:[A-Za-z0-9+/]{4}){2,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)(?:[\s'\x22]|$)"
                .to_owned(),
        ),
        // Members of JSON and similar formats, also within a text of JSON. `.` is not case-folded, unlike `[\s\S]`,
        // whose folding would take 5 ms.
        (
            PrefilterLiterals::SECRET_MEMBER,
            format!(
                r#"(?i)\\*["']{NAME}\\*["']\s*(?:=>|[:=])\s*(?<hide>\\+"(?s:.)*?\\+"|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\[[^\]]*\]?|\{{[^}}]*\}}?|[^\s,}}\]]+)"#
            ),
        ),
        // `NAME=value`, `--name=value`, `?name=value`, `name = "value"`.
        (
            PrefilterLiterals::SECRET_ASSIGNMENT,
            format!(r"(?i){NAME}[ \t]{{0,3}}:?=[ \t]{{0,3}}(?<hide>{VALUE}|-{WORD})"),
        ),
        // `name: value`, where it begins a line.
        (PrefilterLiterals::SECRET_LINE, format!(r"(?im)^[ \t-]*{NAME}[ \t]*:[ \t]+(?<hide>\S.*)$")),
        // `--name value`, also in a list of JSON.
        (
            PrefilterLiterals::SECRET_OPTION,
            format!(r#"(?i)(?:^|[\s'"])--?{NAME}(?:['"]?\s+|['"]\s*,\s*)(?<hide>{VALUE})"#),
        ),
        // Options of well-known programs.
        (PrefilterLiterals::SSHPASS, format!(r"\bsshpass\s+-p\s*(?<hide>{WORD})")),
        (
            PrefilterLiterals::MYSQL,
            format!(r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n|;&]*?\s-p(?<hide>{WORD})"),
        ),
        (
            PrefilterLiterals::CONTAINERS,
            format!(r"\b(?:docker|podman|helm)\s[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p[ =]?(?<hide>{WORD})"),
        ),
        (
            PrefilterLiterals::CURL,
            r#"\bcurl\b[^\n|;]*?\s(?:-u|--user)[ =]?['"]?[^\s:'"]+:(?<hide>[^\s'"]+)"#.to_owned(),
        ),
        // Tokens of well-known services.
        (
            PrefilterLiterals::SHAPE,
            concat!(
                r"\b(?<hide>gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|gl[a-z]{2,4}-[A-Za-z0-9_-]{16,}",
                r"|sk-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|xox[abeoprs]-[A-Za-z0-9-]{10,}",
                r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}",
                r"|GOCSPX-[A-Za-z0-9_-]{16,}|1//0[A-Za-z0-9_-]{20,}|tvly-[A-Za-z0-9_-]{16,}|BSA[A-Za-z0-9_-]{20,}",
                r"|hf_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
                r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
            )
            .to_owned(),
        ),
    ];
    patterns.into_iter().map(|(needs, text)| SecretPattern { needs, text, regex: OnceLock::new() }).collect()
});

/// A pattern, compiled on first use. Most are never used.
struct SecretPattern {
    /// Literals, at least one of which is in every match that has a secret.
    needs: PrefilterLiterals,
    text: String,
    regex: OnceLock<Option<Regex>>,
}

impl SecretPattern {
    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.text).ok()).as_ref()
    }
}

/// Redaction for one call. It contains the secrets of the arguments.
#[derive(Clone, Default)]
pub(crate) struct CallRedactor {
    /// The secrets in all their encodings, the longest first.
    values: Vec<SecretValue>,
}

/// A secret among the arguments of a call.
#[derive(Clone)]
struct SecretValue {
    text: String,
    /// `true` if its beginnings of at least [`SHORTEST_VALUE`] bytes are secret as well.
    is_typed: bool,
}

impl SecretValue {
    /// Returns the length in bytes of the longest common prefix of this secret and the text; `None` if it is shorter
    /// than [`SHORTEST_VALUE`].
    fn begins(&self, text: &str) -> Option<usize> {
        let same = text.chars().zip(self.text.chars()).take_while(|(one, other)| one == other);
        let length: usize = same.map(|(one, _)| one.len_utf8()).sum();
        (length >= SHORTEST_VALUE).then_some(length)
    }
}

/// Returns the text without the beginnings of typed secrets; `None` if it has none.
fn without_beginnings(text: &str, secrets: &[SecretValue]) -> Option<String> {
    let typed: Vec<&SecretValue> = secrets.iter().filter(|secret| secret.is_typed).collect();
    if typed.is_empty() {
        return None;
    }
    let (mut without, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some(first) = rest.chars().next() {
        // A secret may have several encodings with the same beginning: the longest one is removed.
        let length = match typed.iter().filter_map(|secret| secret.begins(rest)).max() {
            Some(length) => {
                without.push_str(REDACTED);
                is_changed = true;
                length
            }
            None => {
                without.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    is_changed.then_some(without)
}

impl std::fmt::Debug for CallRedactor {
    /// Omits the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRedactor").field("values", &self.values.len()).finish()
    }
}

impl CallRedactor {
    /// Creates the redaction for a call with these arguments.
    pub(crate) fn of(arguments: &Value) -> Self {
        let mut redaction = Self::default();
        redaction.learn(arguments);
        redaction
    }

    /// Returns `true` if no secret is known. The redaction of a text then does not depend on the call.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds the secrets of further arguments of the call.
    pub(crate) fn learn(&mut self, arguments: &Value) {
        let mut found = ArgumentSecretCollector { secrets: Vec::new(), left: SEARCHED };
        found.search(arguments);
        for SecretValue { text: secret, is_typed } in found.secrets {
            let quoted = secret.replace('\'', r"'\''");
            let in_json = serde_json::to_string(&secret).unwrap_or_default();
            let in_json = in_json.get(1..in_json.len().saturating_sub(1)).unwrap_or_default().to_owned();
            for value in [percent_encoded(&secret), in_json, quoted, secret] {
                if value.len() < SHORTEST_VALUE {
                    continue;
                }
                if let Some(known) = self.values.iter_mut().find(|known| known.text == value) {
                    known.is_typed |= is_typed;
                } else if self.values.len() < MOST_VALUES {
                    self.values.push(SecretValue { text: value, is_typed });
                }
            }
        }
        self.values.sort_by_key(|value| std::cmp::Reverse(value.text.len()));
    }

    /// Returns the first [`LOOKED_AT`] bytes of the text, with [`REDACTED`] in place of each recognized secret.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(beginning(text));
        for value in &self.values {
            if !value.is_typed && text.contains(&value.text) {
                text = text.replace(&value.text, REDACTED).into();
            }
        }
        if let Some(without) = without_beginnings(&text, &self.values) {
            text = without.into();
        }
        match text {
            Cow::Borrowed(text) => without_patterns(text),
            Cow::Owned(text) => without_patterns(&text).into_owned().into(),
        }
    }

    /// Returns the value with [`REDACTED`] in place of each member with the name of a secret, item after an option for
    /// a secret, and number that is a secret. `text` redacts each name and text.
    pub(crate) fn value(&self, value: &Value, text: &dyn Fn(&str) -> String) -> Value {
        match value {
            Value::Object(members) => {
                let hide = |(name, value): (&String, &Value)| {
                    let hidden = is_secret_name(name) && !value.is_null();
                    let value = if hidden { REDACTED.into() } else { self.value(value, text) };
                    (text(name), value)
                };
                members.iter().map(hide).collect::<Map<_, _>>().into()
            }
            Value::Array(items) => {
                let after_option = std::iter::once(false).chain(items.iter().map(is_secret_option));
                let hide =
                    |(item, hidden): (&Value, bool)| if hidden { REDACTED.into() } else { self.value(item, text) };
                items.iter().zip(after_option).map(hide).collect::<Vec<_>>().into()
            }
            Value::String(whole) => text(whole).into(),
            Value::Number(number) if self.values.iter().any(|value| value.text == number.to_string()) => {
                REDACTED.into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Returns the text without secrets, for a text that belongs to no call, or to an unknown one.
///
/// ```
/// use toolstead_application::redaction::redacted;
///
/// assert_eq!(redacted("login --password=hunter2 -v"), "login --password=[redacted] -v");
/// ```
pub fn redacted(text: &str) -> Cow<'_, str> {
    without_patterns(text)
}

/// Returns the value without secrets: members with the name of a secret, items after an option for a secret, and
/// secrets in texts, as in [`redacted`].
///
/// ```
/// use serde_json::json;
/// use toolstead_application::redaction::redacted_value;
///
/// let arguments = json!({"user": "ada", "password": "hunter2"});
/// assert_eq!(redacted_value(&arguments), json!({"user": "ada", "password": "[redacted]"}));
/// ```
pub fn redacted_value(value: &Value) -> Value {
    CallRedactor::default().value(value, &|text| redacted(text).into_owned())
}

/// Returns `true` if a value of this name is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "api_key",
        "api-key",
        "authorization",
        "cookie",
        "credential",
        "private_key",
        "private-key",
        "privatekey",
        "access_key",
        "access-key",
        "accesskey",
        "account_key",
        "accountkey",
        "signing_key",
        "encryption_key",
    ];
    // Every word contains one of these parts, and most names contain none.
    let is_part = |part: &[u8]| {
        let part = [part[0], part[1], part[2]].map(|byte| byte.to_ascii_lowercase());
        matches!(&part, b"pas" | b"sec" | b"tok" | b"key" | b"aut" | b"coo" | b"cre" | b"jwt")
    };
    if !name.as_bytes().windows(3).any(is_part) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    // Counters and cursors of tokens are not secrets.
    if matches!(name.as_str(), "max_tokens" | "page_token" | "tokens") {
        return false;
    }
    let has_word = |word: &str| name.split(['_', '-', '.']).any(|part| part == word);
    WORDS.iter().any(|word| name.contains(word)) || has_word("jwt") || name == "pgpass" || {
        has_word("pass") && name != "pass"
    }
}

/// Returns `true` if users type the value of this name.
fn is_typed_name(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().as_str(), "password" | "passwd" | "passphrase" | "secret")
}

/// Returns `true` for an option such as `--token` in a list of arguments, whose next item is a secret. The name of a
/// file, or an option that reads standard input, is not a secret.
fn is_secret_option(item: &Value) -> bool {
    item.as_str().is_some_and(|text| text.starts_with('-') && !text.contains('=') && has_secret_value(text))
}

fn has_secret_value(name: &str) -> bool {
    is_secret_name(name) && !["file", "path", "stdin"].iter().any(|end| name.to_ascii_lowercase().ends_with(end))
}

/// Returns the part of a text that is examined.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOKED_AT)]
}

/// Returns `true` if none of [`PATTERNS`] can match the text, as for names, words and sentences. Scans the bytes once,
/// which is much cheaper than the patterns.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let may_be_shape = bytes.len() >= SHORTEST_SHAPE;
    let begins =
        |at: usize, word: &[u8]| bytes.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    let is_of_none = |at: usize| match bytes[at] {
        // Every pattern contains one of these, except those for authorization schemes and tokens of services.
        b'-' | b'=' | b':' => false,
        // Beyond ASCII, some letters match an `s` or a `k` if case is ignored.
        128.. => false,
        b'.' => !may_be_shape,
        // Names of tools have many underscores. In a token, the first one follows one of these words.
        b'_' if may_be_shape => {
            let is_word = |word: &&[u8]| bytes[..at].ends_with(word);
            !SHAPES_BEFORE_UNDERSCORE.iter().any(is_word)
        }
        b'a' | b'A' if may_be_shape => !(begins(at, b"akia") || begins(at, b"asia") || begins(at, b"aiza")),
        b'b' | b'B' => !(begins(at, b"bearer") || begins(at, b"basic") || may_be_shape && begins(at, b"bsa")),
        b'1' if may_be_shape => !begins(at, b"1//0"),
        _ => true,
    };
    let matters =
        |byte: &u8| matches!(byte, b'-' | b'=' | b':' | b'.' | b'_' | b'a' | b'A' | b'b' | b'B' | b'1' | 128..);
    bytes.iter().enumerate().all(|(at, byte)| !matters(byte) || is_of_none(at))
}

/// Returns the patterns that may match the text.
fn patterns_for(text: &str) -> impl Iterator<Item = &'static SecretPattern> + use<> {
    let literals = PrefilterLiterals::of(text);
    PATTERNS.iter().filter(move |pattern| literals.has(pattern.needs))
}

/// Returns `true` if the value has no secret, so that [`CallRedactor::value`] of a call without secrets returns it
/// unchanged. Scans the bytes of names and texts once. `left` is the maximum length of all of them, with one byte for
/// each value, and `longest` that of each.
pub(crate) fn is_plain_value(value: &Value, longest: usize, left: &mut usize) -> bool {
    let is_plain_text = |text: &str, left: &mut usize| {
        text.len() <= longest && left.checked_sub(text.len() + 1).map(|rest| *left = rest).is_some() && is_plain(text)
    };
    match value {
        Value::Object(members) => {
            is_plain_text("", left)
                && members.iter().all(|(name, value)| {
                    is_plain_text(name, left) && !is_secret_name(name) && is_plain_value(value, longest, left)
                })
        }
        Value::Array(items) => is_plain_text("", left) && items.iter().all(|item| is_plain_value(item, longest, left)),
        Value::String(text) => is_plain_text(text, left),
        Value::Null | Value::Bool(_) | Value::Number(_) => is_plain_text("", left),
    }
}

fn without_patterns(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut text = Cow::Borrowed(text);
    // Each pattern searches the result of the one before it.
    for pattern in patterns_for(&text) {
        let Some(pattern) = pattern.regex() else { return Cow::Borrowed(REDACTED) };
        if let Cow::Owned(without) = pattern.replace_all(&text, |found: &Captures<'_>| hidden(found)) {
            text = without.into();
        }
    }
    text
}

/// Returns the match without its secret.
fn hidden(found: &Captures<'_>) -> String {
    let (whole, Some(secret)) = (found.get_match(), secret_of(found)) else { return found[0].to_owned() };
    let text = whole.as_str();
    let (from, to) = (secret.start() - whole.start(), secret.end() - whole.start());
    format!("{}{REDACTED}{}", &text[..from], &text[to..])
}

fn secret_of<'a>(found: &Captures<'a>) -> Option<regex::Match<'a>> {
    let is_secret = found.name("name").is_none_or(|name| has_secret_value(name.as_str()));
    found.name("hide").filter(|secret| is_secret && !secret.is_empty() && secret.as_str() != REDACTED)
}

/// The secrets in a value: members with the name of a secret, and matches of the patterns in texts.
struct ArgumentSecretCollector {
    secrets: Vec<SecretValue>,
    /// Remaining length of texts to search, in bytes.
    left: usize,
}

impl ArgumentSecretCollector {
    fn search(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if is_secret_name(name) { self.take(value, is_typed_name(name)) } else { self.search(value) }
                }
            }
            Value::Array(items) => {
                let after_option = std::iter::once(false).chain(items.iter().map(is_secret_option));
                for (item, is_secret) in items.iter().zip(after_option) {
                    if is_secret { self.take(item, false) } else { self.search(item) }
                }
            }
            Value::String(text) => {
                let text = beginning(text);
                let Some(left) = self.left.checked_sub(text.len()) else { return };
                self.left = left;
                if is_plain(text) {
                    return;
                }
                for pattern in patterns_for(text).filter_map(SecretPattern::regex) {
                    let found = pattern.captures_iter(text).filter_map(|one| Some(secret_of(&one)?.as_str()));
                    // A short word may be a false match, and would then be missing in every other text.
                    let secrets = found.map(unquoted).filter(|secret| secret.len() >= 2 * SHORTEST_VALUE);
                    self.secrets.extend(secrets.map(|text| SecretValue { text: text.to_owned(), is_typed: false }));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds every text and number of a value that is secret as a whole. Of an `Authorization`, also adds the part after
    /// the scheme.
    fn take(&mut self, value: &Value, is_typed: bool) {
        let secret = |text: &str| SecretValue { text: text.to_owned(), is_typed };
        match value {
            Value::Object(members) => members.values().for_each(|value| self.take(value, is_typed)),
            Value::Array(items) => items.iter().for_each(|item| self.take(item, is_typed)),
            Value::String(text) => {
                let text = beginning(text.trim());
                let scheme = text.split_once(' ').filter(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphabetic()));
                self.secrets.extend(scheme.map(|(_, text)| secret(text.trim())));
                self.secrets.push(secret(text));
            }
            Value::Number(number) => self.secrets.push(secret(&number.to_string())),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Returns the text without the quotes around it.
fn unquoted(text: &str) -> &str {
    text.trim_matches(['\\', '"', '\''])
}

/// Returns the text in its percent-encoded form.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_redaction_pattern_compiles() {
        assert!(PATTERNS.iter().all(|pattern| pattern.regex().is_some()));
    }

    /// Parts of secrets, and texts that only resemble secrets.
    const PIECES: [&str; 67] = [
        "bearer",
        "Basic",
        " ",
        "\t",
        "aGVsbG8gd29ybGQ=",
        "sk_live_",
        "rk_test_",
        "0123456789",
        "ghp_",
        "github_pat_",
        "AKIA",
        "asia",
        "ABCDEFGHIJKLMNOP",
        "AIza",
        "abcdefghijklmnopqrstuvwxyzabcd",
        "ya29.",
        "npm_",
        "hf_",
        "SG.",
        "GOCSPX-",
        "1//0",
        "tvly-",
        "BSA",
        "eyJ",
        "token",
        "password",
        "'",
        "\"",
        "/",
        "@",
        ",",
        "[",
        "{",
        "ba\u{17f}ic",
        "\u{212a}ey",
        ".",
        "x",
        "the rule ",
        "://",
        "http",
        "?",
        "&",
        "=",
        ":",
        "-",
        "key",
        "sig",
        "API_KEY",
        "x-pass",
        "Authorization",
        "set-cookie",
        "-----BEGIN PRIVATE KEY-----",
        "credential",
        "jwt",
        "sshpass -p",
        "mysql -p",
        "docker login -p",
        "helm",
        "curl -u",
        "glpat-",
        "xoxb-",
        "pypi-",
        "\\",
        "\n",
        "\u{b}",
        "\u{a0}",
        "\u{2003}",
    ];

    /// Returns the text after each of the patterns was applied, without a selection.
    fn redacted_by_all_patterns(text: &str) -> String {
        PATTERNS.iter().fold(text.to_owned(), |text, pattern| {
            let hide = |found: &Captures<'_>| hidden(found);
            pattern.regex().unwrap().replace_all(&text, hide).into_owned()
        })
    }

    #[test]
    fn names_with_any_separator_are_redacted_as_by_all_patterns() {
        const GAPS: [&str; 8] = ["", " ", "\t", "\u{b}", "\u{a0}", "\u{2003}", "\"", "\\'"];
        for begin in ["", " ", "--", "\"", "\\'"] {
            for name in ["token", "x-token", "my.secret", "to\u{212a}en"] {
                for (before, after) in GAPS.iter().flat_map(|before| GAPS.map(|after| (before, after))) {
                    for separator in ["", "=", ":", ":=", ","] {
                        let text = format!("{begin}{name}{before}{separator}{after}hunter2");
                        assert_eq!(redacted(&text), redacted_by_all_patterns(&text), "{text:?}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_with_a_secret_is_not_plain_and_contains_the_prefilter_literals_of_its_pattern(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..7),
            more in "[ -~]{0,8}",
        ) {
            let text = pieces.concat() + &more;
            for pattern in PATTERNS.iter().filter(|pattern| pattern.regex().unwrap().is_match(&text)) {
                prop_assert!(!is_plain(&text), "{text}");
                let secret = pattern.regex().unwrap().captures_iter(&text).any(|found| secret_of(&found).is_some());
                prop_assert!(!secret || PrefilterLiterals::of(&text).has(pattern.needs), "{text}: {}", pattern.text);
            }
        }

        #[test]
        fn redaction_with_the_selected_patterns_equals_redaction_with_all_patterns(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..9),
        ) {
            let text = pieces.concat();
            prop_assert_eq!(redacted(&text), redacted_by_all_patterns(&text));
        }
    }

    #[test]
    fn lines_of_the_log_without_secrets_compile_no_pattern() {
        for line in [
            "2026-11-27T20:39:38.123456Z  INFO started version=\"0.1.0\" address=127.0.0.1:7911 configuration=\"/srv/a-b.toml\"",
            "2026-11-27T20:39:38.123456Z  INFO ready tools=1 sandbox=\"tier 1: namespaces, seccomp, Landlock\"",
            "2026-11-27T20:39:38.123456Z  INFO session started session=\"vc3vNu6atGqrrxDlW_9G\" principal=\"token:server\" client=\"x 1\"",
        ] {
            assert!(!is_plain(line) && patterns_for(line).next().is_none(), "{line}");
        }
    }

    #[test]
    fn names_and_sentences_are_plain() {
        for text in [
            "",
            "echo",
            "hello",
            "read_file",
            "mcp__tracker__create_an_issue",
            "calls that touch nothing are allowed by default",
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn secrets_are_redacted_in_every_notation_and_the_rest_is_unchanged() {
        for (text, expected) in [
            ("run export MY_TOKEN='tok123456789'", "run export MY_TOKEN=[redacted]"),
            (r#"API_KEY="a b"'c'd make x"#, "API_KEY=[redacted] make x"),
            ("DB_PASS=x psql -h h", "DB_PASS=[redacted] psql -h h"),
            ("gh --token abc --repo r", "gh --token [redacted] --repo r"),
            ("x --password=a\\ b -v", "x --password=[redacted] -v"),
            ("x --password 'a b' -v", "x --password [redacted] -v"),
            ("docker login -u u -p hunter2 host", "docker login -u u -p [redacted] host"),
            ("docker login --password-stdin host", "docker login --password-stdin host"),
            ("vault --token-file /run/t x", "vault --token-file /run/t x"),
            ("sshpass -p hunter2 ssh h", "sshpass -p [redacted] ssh h"),
            ("mysql -u root -phunter2 db", "mysql -u root -p[redacted] db"),
            ("curl -u me:hunter2 https://h/", "curl -u me:[redacted] https://h/"),
            ("curl -H 'Authorization: Bearer abc' u", "curl -H 'Authorization: [redacted]' u"),
            ("curl -H \"X-Api-Key: abc\" u", "curl -H \"X-Api-Key: [redacted]\" u"),
            ("Cookie: a=b; c=d\nHost: h", "Cookie: [redacted]\nHost: h"),
            ("sent Bearer abc.def and got 401", "sent Bearer [redacted] and got 401"),
            ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
            ("git clone https://me:p@ss@h/r.git", "git clone https://me:[redacted]@h/r.git"),
            ("https://ghtoken@h/r and ssh://git@h/r", "https://[redacted]@h/r and ssh://git@h/r"),
            ("postgres://u:pw@db:5432/x", "postgres://u:[redacted]@db:5432/x"),
            ("GET /a?token=x&page=2#f", "GET /a?token=[redacted]&page=2#f"),
            ("GET /a?api_tokens=x&read_tokens=y", "GET /a?api_tokens=[redacted]&read_tokens=[redacted]"),
            ("run --tokens=abc", "run --tokens=[redacted]"),
            ("https://h/a?b=1&sig=x%2F&c=2", "https://h/a?b=1&sig=[redacted]&c=2"),
            (r#"{"user":"u","password":"a\"b","n":1}"#, r#"{"user":"u","password":[redacted],"n":1}"#),
            (r#"{\"token\":\"abc\",\"n\":1}"#, r#"{\"token\":[redacted],\"n\":1}"#),
            ("{'secret': 'x', 'n': 1}", "{'secret': [redacted], 'n': 1}"),
            ("user: u\npassword: a b\n", "user: u\npassword: [redacted]\n"),
            ("found ghp_0123456789abcdefABCD.", "found [redacted]."),
            ("key AKIAIOSFODNN7EXAMPLE", "key [redacted]"),
            ("the word GOCSPX-0123456789abcdef_-x", "the word [redacted]"),
            ("kept 1//0abcdefghijklmnopqrstuv", "kept [redacted]"),
            ("asked with BSAabcdefghijklmnopqrstuv", "asked with [redacted]"),
            ("asked with tvly-dev-0123456789abcdef", "asked with [redacted]"),
            ("sk-ant-admin01-0123456789abcdef", "[redacted]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc", "-----BEGIN RSA PRIVATE KEY-----[redacted]"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
            assert_eq!(redacted(expected), expected, "twice is once");
        }
    }

    #[test]
    fn text_that_only_resembles_a_secret_is_not_redacted() {
        for text in [
            "error: unexpected token: expected `)`, found `}`",
            "invalid password for user=bob",
            "max_tokens=5 tokens=7",
            "if token == x { Basic usage }",
            "git -C d status --porcelain",
            "read /srv/token.txt, write /w/secret/a",
            "http://localhost:8080/a@b?q=1",
            "cargo test token_is_taken -- --nocapture",
            "cp -p a b; mkdir -p d",
            "pass=3 fail=0",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_secret_in_the_arguments_is_redacted_in_every_text_of_the_call() {
        let arguments = json!({
            "env": {"MY_TOKEN": "it's tok/1"}, "args": ["--api-key", "second-one"], "pin_token": 123_456,
            "headers": {"Authorization": "Custom third-one"}, "command": "login --password=fourth-one",
        });
        let redaction = CallRedactor::of(&arguments);
        for (text, expected) in [
            ("echo it's tok/1", "echo [redacted]"),
            (r"run x 'it'\''s tok/1'", "run x '[redacted]'"),
            ("GET /it%27s%20tok%2F1", "GET /[redacted]"),
            ("second-one, third-one and fourth-one", "[redacted], [redacted] and [redacted]"),
            ("123456 went out", "[redacted] went out"),
        ] {
            assert_eq!(redaction.text(text), expected, "{text}");
        }
        let kept = redaction.value(&arguments, &|text| redaction.text(text).into_owned()).to_string();
        for secret in ["tok/1", "second-one", "third-one", "fourth-one", "123456"] {
            assert!(!kept.contains(secret), "{kept}");
        }
        assert_eq!(format!("{redaction:?}").find("tok"), None);
    }

    #[test]
    fn prefixes_of_a_typed_secret_are_redacted_in_texts_of_its_call() {
        let redaction = CallRedactor::of(&json!({"ref": "e3", "secret": "open sésame 7"}));
        for (text, expected) in [
            ("now: text: \"open\"", "now: text: \"[redacted]\""),
            ("console error: open s, open sé, open sésame 7!", "console error: [redacted], [redacted], [redacted]!"),
            ("GET /?q=open%20s%C3%A9s", "GET /?q=[redacted]"),
            ("openopen sesame", "[redacted][redacted]esame"),
            ("ope n", "ope n"),
        ] {
            assert_eq!(redaction.text(text), expected, "{text}");
        }
        let redaction = CallRedactor::of(&json!({"secret": "ab", "api_token": "https-token"}));
        assert_eq!(redaction.text("https://a.example/ ab"), "https://a.example/ ab");
    }

    #[test]
    fn a_member_with_a_secret_name_is_redacted_at_any_depth() {
        let given = json!({"path": "a", "auth": {"API_KEY": "k", "x-token": ["t"]}, "max_tokens": 5, "token": null});
        assert_eq!(
            CallRedactor::default().value(&given, &str::to_owned),
            json!({"path": "a", "auth": {"API_KEY": REDACTED, "x-token": REDACTED}, "max_tokens": 5, "token": null})
        );
    }

    proptest! {
        #[test]
        fn a_plain_value_has_no_secrets_and_stays_as_it_is(pieces in prop::collection::vec((prop::sample::select(&PIECES[..]), any::<bool>()), 0..6)) {
            let texts: Vec<&str> = pieces.iter().map(|(piece, _)| *piece).collect();
            let named: Map<String, Value> = pieces.iter().map(|(piece, is_null)| {
                (texts.concat() + piece, if *is_null { Value::Null } else { texts.concat().into() })
            }).collect();
            let value = json!([texts, texts.concat(), named, 7]);
            if is_plain_value(&value, 1 << 10, &mut { 1 << 16 }) {
                prop_assert!(CallRedactor::of(&value).is_empty());
                prop_assert_eq!(redacted_value(&value), value);
            }
        }

        #[test]
        fn a_value_of_a_secret_member_is_in_no_text_of_its_call(
            secret in "[a-zA-Z0-9 '\"\\\\$@:/?&=%é-]{4,30}",
            before in "[a-z '\"\\\\=&-]{0,12}",
            after in "[a-z '\"\\\\=&-]{0,12}",
        ) {
            prop_assume!(secret.trim().len() >= SHORTEST_VALUE && !REDACTED.contains(secret.trim()));
            let redaction = CallRedactor::of(&json!({"env": {"MY_SECRET": secret.clone()}}));
            for written in [secret.clone(), secret.replace('\'', r"'\''"), percent_encoded(&secret)] {
                let text = redaction.text(&format!("{before}{written}{after}")).into_owned();
                prop_assert!(!text.contains(secret.trim()), "{text}");
            }
        }

        #[test]
        fn redaction_of_arbitrary_text_does_not_panic_and_bounds_its_growth(text in "(?s).{0,200}") {
            let once = redacted(&text).into_owned();
            prop_assert!(once.len() <= text.len() + REDACTED.len() * (text.len() + 1));
        }
    }
}
