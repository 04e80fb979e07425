//! Command patterns in rules: `Bash(git *)`.

use crate::access::{CommandAccess, ParseConfidence};
use std::borrow::Cow;

/// Separator between words in the compared texts. No word of a command can contain it.
const BETWEEN: &str = "\0";

/// Compiled command pattern.
///
/// Words are separated by blanks. Quotes hold blanks together as in the shell, and `\` makes the next character
/// literal. `*` matches any characters, blanks included, anywhere and several times. At the end, ` *` and `:*` mean the
/// same: nothing, or further words. Without a wildcard the pattern is the whole command. Blanks of the pattern match
/// only between words, so a pattern cannot match into a quoted argument.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    /// Matcher for words joined by [`BETWEEN`].
    words: CommandWordsMatcher,
    /// Text of the pattern without the escapes of `*`, for comparison with whole texts.
    literal: String,
    /// `true` if the pattern contains `;`, `|`, `<` or the like outside of quotes, and so describes a whole command
    /// line.
    is_line: bool,
}

/// Purpose of a pattern, by the effect of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternPurpose<'a> {
    /// The pattern covers commands: allow rules.
    Covering {
        /// Programs that the analysis looks through, so that no pattern can cover a command of them.
        transparent_programs: &'a [&'a str],
    },
    /// The pattern catches commands: deny and ask rules.
    Catching,
}

/// Whole words of a pattern. Each command that the pattern covers consists of `head`, any words, `tail`, and, if
/// `is_open` is `true`, any further words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPatternOutline {
    /// Words before the first wildcard, never empty; the only one may be the beginning of a path.
    pub head: Vec<String>,
    /// Words after the wildcard.
    pub tail: Vec<String>,
    /// `true` if more words may follow.
    pub is_open: bool,
}

#[derive(Debug, Clone)]
enum CommandWordsMatcher {
    /// Exactly this text, without a wildcard.
    Exact(String),
    /// Parts between wildcards, in each form of the pattern. A pattern with an open end has a second form, in which
    /// further words follow.
    Wildcard(Vec<Vec<String>>),
}

impl CommandWordsMatcher {
    fn of(mut parts: Vec<String>, open_end: bool) -> Self {
        if !open_end && parts.len() == 1 {
            return Self::Exact(parts.concat());
        }
        let mut forms = vec![parts.clone()];
        if let (true, Some(last)) = (open_end, parts.last_mut()) {
            last.push_str(BETWEEN);
            parts.push(String::new());
            forms.push(parts);
        }
        Self::Wildcard(forms)
    }

    fn fits(&self, subject: &str) -> bool {
        match self {
            Self::Exact(text) => text == subject,
            Self::Wildcard(forms) => forms.iter().any(|parts| parts_match(parts, subject)),
        }
    }
}

impl CommandPattern {
    /// Compiles a pattern for this purpose.
    ///
    /// # Errors
    /// The reason if the pattern could never match, with an alternative to write.
    pub(crate) fn parse(text: &str, purpose: PatternPurpose<'_>) -> Result<Self, String> {
        let text = text.trim();
        if text.contains('\0') {
            return Err("a command cannot contain a NUL character, so it would never match".into());
        }
        let (head, open_end) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(head) => (head.trim_end(), true),
            None => (text, false),
        };
        let tokens = PatternSegments::of(head);
        let has_wildcard = open_end || tokens.parts.len() > 1;
        // Without a wildcard, an allow rule may contain any command line literally.
        if let (Some(broken), true) = (&tokens.broken, has_wildcard || purpose == PatternPurpose::Catching) {
            return Err(broken.describe(head, open_end));
        }
        let is_everything = tokens.parts.iter().all(|part| part.replace(BETWEEN, "").is_empty());
        if is_everything && (open_end || tokens.parts.len() > 1) {
            return Err("it matches every command: write `Bash`".into());
        }
        if is_everything {
            return Err("it contains no word, so it would never match".into());
        }
        if let (true, PatternPurpose::Covering { transparent_programs: looked_through }) = (has_wildcard, purpose) {
            tokens.can_be_allowed(looked_through)?;
        }
        let literal = unescaped(text);
        let is_line = tokens.is_line;
        Ok(Self { words: CommandWordsMatcher::of(tokens.parts, open_end), literal, is_line })
    }

    /// Returns `true` if the pattern begins with a wildcard, and so allows any program.
    pub(crate) fn fits_any_program(&self) -> bool {
        let begins_open = |parts: &Vec<String>| parts.first().is_some_and(String::is_empty);
        matches!(&self.words, CommandWordsMatcher::Wildcard(forms) if forms.iter().any(begins_open))
    }

    /// Returns `true` if an allow rule covers this command. Patterns cover plain commands only; any other command is
    /// covered only by a rule with its complete text.
    pub(crate) fn covers(&self, command: &CommandAccess) -> bool {
        match (&self.words, &command.clarity) {
            (CommandWordsMatcher::Wildcard(_), ParseConfidence::Plain) => self.fits_words(&command.words),
            (CommandWordsMatcher::Wildcard(_), ParseConfidence::Exact(_) | ParseConfidence::Opaque(_)) => false,
            (CommandWordsMatcher::Exact(_), _) if self.literal == command.whole.trim() => true,
            (CommandWordsMatcher::Exact(_), ParseConfidence::Plain) => self.fits_words(&command.words),
            (CommandWordsMatcher::Exact(_), ParseConfidence::Exact(_)) => self.literal == command.text.trim(),
            (CommandWordsMatcher::Exact(_), ParseConfidence::Opaque(_)) => false,
        }
    }

    /// Returns `true` if the pattern has wildcards and matches the command, but does not cover it because the command
    /// is not plain.
    pub(crate) fn misses(&self, command: &CommandAccess) -> bool {
        self.has_wildcard()
            && command.clarity != ParseConfidence::Plain
            && (self.fits_words(&command.words) || self.fits_text(&command.text))
    }

    /// Returns the words of every command that the pattern covers; `None` for a pattern without wildcards, and for one
    /// that leaves the program open.
    pub(crate) fn outline(&self) -> Option<CommandPatternOutline> {
        let CommandWordsMatcher::Wildcard(forms) = &self.words else { return None };
        let (first, rest) = forms.last()?.split_first()?;
        let mut words: Vec<&str> = first.split(BETWEEN).collect();
        // The text right before a wildcard is only the beginning of a word.
        let beginning = words.pop()?;
        if words.is_empty() {
            // A path remains a path, whatever follows.
            let outline = CommandPatternOutline { head: vec![beginning.into()], tail: Vec::new(), is_open: true };
            return beginning.contains('/').then_some(outline);
        }
        let head = words.into_iter().map(str::to_owned).collect();
        let (tail, is_open) = match (beginning, rest) {
            ("", [end]) if end.starts_with(BETWEEN) => (&end[BETWEEN.len()..], false),
            ("", [middle, _, ..]) if middle.starts_with(BETWEEN) => match middle.rsplit_once(BETWEEN) {
                Some((whole, _)) => (whole.get(BETWEEN.len()..).unwrap_or_default(), true),
                None => ("", true),
            },
            _ => ("", true),
        };
        let tail: Vec<String> = tail.split(BETWEEN).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(CommandPatternOutline { head, is_open: is_open || tail.is_empty(), tail })
    }

    /// Returns `true` if a deny or ask rule with the pattern catches this command, in any of its readings. Every such
    /// rule catches an opaque command.
    pub(crate) fn catches(&self, command: &CommandAccess) -> bool {
        if matches!(command.clarity, ParseConfidence::Opaque(_)) {
            return true;
        }
        let mut readings = std::iter::once(&command.words).chain(command.readings.iter());
        readings.any(|words| self.fits_words(words))
            || self.fits_text(&command.text)
            || (self.is_line && self.fits_text(&command.whole))
    }

    fn fits_words<S: AsRef<str>>(&self, words: &[S]) -> bool {
        // A word that contains the separator could match as two words.
        if words.is_empty() || words.iter().any(|word| word.as_ref().contains(BETWEEN)) {
            return false;
        }
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        self.words.fits(&words.join(BETWEEN))
    }

    /// Returns `true` if the pattern matches all words of a text, including those outside of the command itself:
    /// assignments, redirections, and the operators between commands.
    fn fits_text(&self, text: &str) -> bool {
        (!self.has_wildcard() && one_blank(&self.literal) == one_blank(text))
            || (!text.contains(BETWEEN) && self.words.fits(&PatternSegments::of(text.trim()).parts.join("*")))
    }

    /// Returns `true` unless the pattern is one command, word for word.
    pub(crate) fn has_wildcard(&self) -> bool {
        matches!(self.words, CommandWordsMatcher::Wildcard(_))
    }
}

/// Replaces each run of blanks by one blank.
fn one_blank(text: &str) -> Cow<'_, str> {
    let is_so = |(at, c): (usize, char)| {
        !c.is_whitespace() || (c == ' ' && at > 0 && !text[at + 1..].starts_with(char::is_whitespace))
    };
    match text.char_indices().all(is_so) && !text.ends_with(' ') {
        true => text.into(),
        false => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

/// Returns `true` if the subject consists of the parts in their order, with anything between them.
fn parts_match(parts: &[String], subject: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return subject.is_empty() };
    let Some(mut left) = subject.strip_prefix(first.as_str()) else { return false };
    let Some((last, middle)) = rest.split_last() else { return left.is_empty() };
    for part in middle {
        match left.find(part.as_str()) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last.as_str())
}

/// Parsed pattern: the texts between its wildcards, without quotes.
#[derive(Default)]
struct PatternSegments {
    parts: Vec<String>,
    is_line: bool,
    broken: Option<PatternFault>,
}

/// Reason why a pattern contains words that no command has.
enum PatternFault {
    /// This quote is never closed.
    OpenQuote(char),
    /// The pattern ends with a `\` that escapes nothing.
    LooseBackslash,
    /// A `$` precedes a quote: the shell then reads the word differently.
    SpecialQuote,
}

impl PatternFault {
    /// Describes the fault and an alternative to write. `head` is the pattern without its open end.
    fn describe(&self, head: &str, open_end: bool) -> String {
        match (self, open_end) {
            (Self::OpenQuote(quote), _) => {
                let closed = if open_end { format!("{head} {quote}*") } else { format!("{head}{quote}") };
                format!(
                    "the quote `{quote}` is never closed, so that no word of a command could fit: close it, as in \
                     `{closed}`, or write `\\{quote}` for the sign itself"
                )
            }
            (Self::LooseBackslash, true) => {
                let word = head.strip_suffix('\\').unwrap_or(head);
                format!(
                    "a blank that is part of a word cannot be escaped in front of the last `*`: quote it, as in \
                     `{word}' '*`"
                )
            }
            (Self::LooseBackslash, false) => {
                "it ends with a `\\` that escapes nothing: write `\\\\` for a backslash, and `' '` for a blank".into()
            }
            (Self::SpecialQuote, _) => {
                "`$'` and `$\"` are understood only by the shell: write the resulting word in ordinary quotes".into()
            }
        }
    }
}

impl PatternSegments {
    fn of(text: &str) -> Self {
        let mut tokens = Self { parts: vec![String::new()], ..Self::default() };
        tokens.read(text, true);
        if let Some(PatternFault::OpenQuote(_)) = tokens.broken {
            // No shell would accept it, so the quotes are read as literal characters.
            let broken = tokens.broken;
            tokens = Self { parts: vec![String::new()], ..Self::default() };
            tokens.read(text, false);
            tokens.broken = broken;
        }
        tokens
    }

    fn read(&mut self, text: &str, with_quotes: bool) {
        let mut quote = None;
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' if letters.peek().is_some_and(|next| escapes(*next, quote)) => {
                    letters.next().into_iter().for_each(|next| self.put(next));
                }
                '\\' if letters.peek().is_none() && quote.is_none() => {
                    self.broken = Some(PatternFault::LooseBackslash);
                    self.put(letter);
                }
                '*' => self.parts.push(String::new()),
                '\'' | '"' if with_quotes && quote.is_none() => quote = Some(letter),
                _ if quote == Some(letter) => quote = None,
                _ if quote.is_none() && letter.is_whitespace() => {
                    self.is_line |= letter == '\n';
                    while letters.next_if(|next| next.is_whitespace()).is_some() {}
                    self.parts.last_mut().into_iter().for_each(|part| part.push_str(BETWEEN));
                }
                _ => {
                    self.is_line |= quote.is_none() && matches!(letter, ';' | '|' | '&' | '<' | '>');
                    let starts_command = letter == '`' || (letter == '$' && letters.peek() == Some(&'('));
                    self.is_line |= quote != Some('\'') && starts_command;
                    if letter == '$' && quote.is_none() && letters.peek().is_some_and(|next| matches!(next, '\'' | '"'))
                    {
                        self.broken.get_or_insert(PatternFault::SpecialQuote);
                    }
                    self.put(letter);
                }
            }
        }
        if let Some(quote) = quote {
            self.broken = Some(PatternFault::OpenQuote(quote));
        }
    }

    fn put(&mut self, letter: char) {
        self.parts.last_mut().into_iter().for_each(|part| part.push(letter));
    }

    /// Rejects allow patterns that no command can match.
    fn can_be_allowed(&self, looked_through: &[&str]) -> Result<(), String> {
        if self.is_line {
            return Err("each command of a line is judged by itself, and files that it redirects to by `Write` and \
                        `Read` rules, so a pattern with `;`, `|`, `&`, `<`, `>` or `$(` would never match: write a \
                        rule for each command, or the whole line without `*`"
                .into());
        }
        let first = self.parts.first().map_or("", String::as_str);
        let (word, is_whole) = match first.split_once(BETWEEN) {
            Some((word, _)) => (word, true),
            None => (first, self.parts.len() == 1),
        };
        if is_whole && looked_through.contains(&word) {
            return Err(format!(
                "`{word}` is skipped, so the rule would never match: write a rule for the command that it runs"
            ));
        }
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match word.split_once('=') {
            Some((name, _)) if is_name(name) => {
                Err("assignments before a command are not part of it, so the rule would never match: leave them out \
                 (harmless ones are allowed with every command, others with none)"
                    .into())
            }
            _ => Ok(()),
        }
    }
}

/// Returns `true` if a preceding `\` makes this character literal. Within single quotes the shell treats `\` as an
/// ordinary character; only `*` can be escaped there, in patterns.
fn escapes(next: char, quote: Option<char>) -> bool {
    match quote {
        Some('\'') => next == '*',
        Some(_) => matches!(next, '*' | '"' | '\\' | '$' | '`'),
        None => true,
    }
}

/// Returns the text that a pattern without wildcards matches: `\*` becomes `*`, and each pair of backslashes before it
/// becomes one.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut backslashes = 0_usize;
    for letter in text.chars() {
        if letter == '\\' {
            backslashes += 1;
            continue;
        }
        let kept = if letter == '*' { backslashes / 2 } else { backslashes };
        plain.extend(std::iter::repeat_n('\\', kept));
        backslashes = 0;
        plain.push(letter);
    }
    plain.extend(std::iter::repeat_n('\\', backslashes));
    plain
}

/// Returns the pattern without wildcards that matches exactly this text. The inverse of `unescaped`.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    let mut backslashes = 0_usize;
    for letter in text.chars() {
        if letter == '*' {
            pattern.extend(std::iter::repeat_n('\\', backslashes + 1));
        }
        backslashes = if letter == '\\' { backslashes + 1 } else { 0 };
        pattern.push(letter);
    }
    pattern
}

/// Returns the narrowest pattern that covers this command; `None` if there is none.
pub fn narrowest(command: &CommandAccess) -> Option<String> {
    let text = match command.clarity {
        ParseConfidence::Plain => return Some(quoted(&command.words)).filter(|text| covers(text, command)),
        ParseConfidence::Exact(_) => &command.text,
        ParseConfidence::Opaque(_) => &command.whole,
    };
    Some(escaped(text.trim())).filter(|text| covers(text, command))
}

/// Returns `true` if the text is a valid pattern without a wildcard that covers the command.
fn covers(text: &str, command: &CommandAccess) -> bool {
    let pattern = CommandPattern::parse(text, PatternPurpose::Covering { transparent_programs: &[] });
    pattern.is_ok_and(|pattern| !pattern.has_wildcard() && pattern.covers(command))
}

/// Returns the words as a pattern that matches only them: quoted where blanks or special characters would have a
/// meaning.
pub(crate) fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted_word(word.as_ref())).collect();
    quoted.join(" ")
}

fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+*?[]{}~^#!".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.replace('*', r"\*");
    }
    if !word.contains(['\'', '*', '\\']) {
        return format!("'{word}'");
    }
    let mut quoted = String::from("\"");
    for letter in word.chars() {
        if matches!(letter, '*' | '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
