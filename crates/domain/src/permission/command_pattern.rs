//! Patterns of commands in rules: `Bash(git *)`.

use crate::access::{Clarity, CommandAccess};
use std::borrow::Cow;

/// Stands between words in what patterns are compared with: no word of a command can hold it.
const BETWEEN: &str = "\0";

/// A command pattern, compiled.
///
/// Words are separated by blanks; quotes keep blanks together as in the shell, and `\` takes what follows as it is. `*`
/// stands for any characters, blanks included, anywhere and several times. At the end, ` *`
/// and `:*` mean the same: nothing, or further words. Without a wildcard the pattern is the whole command. Blanks of
/// the pattern only ever match between words, so a pattern cannot match into a quoted argument.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    /// Compared with words that [`BETWEEN`] joins.
    words: Matcher,
    /// As it was written, without the escapes of `*`: what whole texts are compared with.
    literal: String,
    /// It holds `;`, `|`, `<` or the like outside of quotes, and so speaks of a whole command line.
    is_line: bool,
}

/// The purpose of a pattern, by the effect of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose<'a> {
    /// To cover commands: allow rules.
    Covering {
        /// Programs that the analysis looks through, so that nothing on them can be covered.
        looked_through: &'a [&'a str],
    },
    /// To catch them: deny and ask rules.
    Catching,
}

/// The whole words of a pattern: each command that it covers is the head, anything, the tail, and where it is open
/// anything again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The words in front of the first wildcard. Never empty.
    pub head: Vec<String>,
    /// The words behind it.
    pub tail: Vec<String>,
    /// More words may follow.
    pub is_open: bool,
}

#[derive(Debug, Clone)]
enum Matcher {
    /// No wildcard: this and nothing else.
    Exact(String),
    /// The parts between wildcards, in each form that the pattern has: with an open end a second one, in which further
    /// words follow.
    Wildcard(Vec<Vec<String>>),
}

impl Matcher {
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
    /// Compiles a pattern for that purpose.
    ///
    /// # Errors
    /// Reads a pattern; one that could never match is refused, with what to write instead.
    pub(crate) fn parse(text: &str, purpose: Purpose<'_>) -> Result<Self, String> {
        let text = text.trim();
        if text.contains('\0') {
            return Err("a command holds no NUL character, so it would never match".into());
        }
        let (head, open_end) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(head) => (head.trim_end(), true),
            None => (text, false),
        };
        let tokens = Tokens::of(head);
        let has_wildcard = open_end || tokens.parts.len() > 1;
        // Without a wildcard an allow rule may say any line as it is written.
        if let (Some(broken), true) = (&tokens.broken, has_wildcard || purpose == Purpose::Catching) {
            return Err(broken.told(head, open_end));
        }
        let is_everything = tokens.parts.iter().all(|part| part.replace(BETWEEN, "").is_empty());
        if is_everything && (open_end || tokens.parts.len() > 1) {
            return Err("it stands for every command: write `Bash`".into());
        }
        if is_everything {
            return Err("it holds no word, and would never match".into());
        }
        if let (true, Purpose::Covering { looked_through }) = (has_wildcard, purpose) {
            tokens.can_be_allowed(looked_through)?;
        }
        let literal = unescaped(text);
        let is_line = tokens.is_line;
        Ok(Self { words: Matcher::of(tokens.parts, open_end), literal, is_line })
    }

    /// Tells whether the pattern begins with a wildcard, and so lets any program run.
    pub(crate) fn fits_any_program(&self) -> bool {
        let begins_open = |parts: &Vec<String>| parts.first().is_some_and(String::is_empty);
        matches!(&self.words, Matcher::Wildcard(forms) if forms.iter().any(begins_open))
    }

    /// Tells whether an allow rule covers this command. Patterns cover plain commands alone; what is not plain only a
    /// rule covers that says all of it.
    pub(crate) fn covers(&self, command: &CommandAccess) -> bool {
        match (&self.words, &command.clarity) {
            (Matcher::Wildcard(_), Clarity::Plain) => self.fits_words(&command.words),
            (Matcher::Wildcard(_), Clarity::Exact(_) | Clarity::Opaque(_)) => false,
            (Matcher::Exact(_), _) if self.literal == command.whole.trim() => true,
            (Matcher::Exact(_), Clarity::Plain) => self.fits_words(&command.words),
            (Matcher::Exact(_), Clarity::Exact(_)) => self.literal == command.text.trim(),
            (Matcher::Exact(_), Clarity::Opaque(_)) => false,
        }
    }

    /// Tells whether an allow rule with wildcards says this command and does not cover it all the same, because it is
    /// not plain.
    pub(crate) fn misses(&self, command: &CommandAccess) -> bool {
        self.has_wildcard()
            && command.clarity != Clarity::Plain
            && (self.fits_words(&command.words) || self.fits_text(&command.text))
    }

    /// The words of every command that the pattern covers; `None` without wildcards, and where it leaves the program
    /// open.
    pub(crate) fn outline(&self) -> Option<Outline> {
        let Matcher::Wildcard(forms) = &self.words else { return None };
        let (first, rest) = forms.last()?.split_first()?;
        let mut words: Vec<&str> = first.split(BETWEEN).collect();
        // The text right before a wildcard is only the beginning of a word.
        let beginning = words.pop()?;
        if words.is_empty() {
            // A path stays one, however it goes on.
            let outline = Outline { head: vec![beginning.into()], tail: Vec::new(), is_open: true };
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
        Some(Outline { head, is_open: is_open || tail.is_empty(), tail })
    }

    /// Tells whether a deny or ask rule catches this command, in whichever reading.
    pub(crate) fn catches(&self, command: &CommandAccess) -> bool {
        if matches!(command.clarity, Clarity::Opaque(_)) {
            return true;
        }
        let mut readings = std::iter::once(&command.words).chain(command.readings.iter());
        readings.any(|words| self.fits_words(words))
            || self.fits_text(&command.text)
            || (self.is_line && self.fits_text(&command.whole))
    }

    fn fits_words<S: AsRef<str>>(&self, words: &[S]) -> bool {
        // A word with the separator in it could pass for two.
        if words.is_empty() || words.iter().any(|word| word.as_ref().contains(BETWEEN)) {
            return false;
        }
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        self.words.fits(&words.join(BETWEEN))
    }

    /// Compares with the words of a text, also those that are none of the command: assignments, redirections, and the
    /// signs between commands.
    fn fits_text(&self, text: &str) -> bool {
        (!self.has_wildcard() && one_blank(&self.literal) == one_blank(text))
            || (!text.contains(BETWEEN) && self.words.fits(&Tokens::of(text.trim()).parts.join("*")))
    }

    /// Returns `true` unless the pattern is one command, word for word.
    pub(crate) fn has_wildcard(&self) -> bool {
        matches!(self.words, Matcher::Wildcard(_))
    }
}

/// The text with one blank wherever there are some.
fn one_blank(text: &str) -> Cow<'_, str> {
    let is_so = |(at, c): (usize, char)| {
        !c.is_whitespace() || (c == ' ' && at > 0 && !text[at + 1..].starts_with(char::is_whitespace))
    };
    match text.char_indices().all(is_so) && !text.ends_with(' ') {
        true => text.into(),
        false => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

/// Tells whether the subject is the parts in their order, with anything between them.
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

/// A pattern on its way: the texts between its wildcards, quotes taken off.
#[derive(Default)]
struct Tokens {
    parts: Vec<String>,
    is_line: bool,
    broken: Option<Broken>,
}

/// The reason why a pattern says words that no command has.
enum Broken {
    /// This quote is never closed.
    OpenQuote(char),
    /// It ends with a `\` that takes nothing as it is.
    LooseBackslash,
    /// A `$` stands before a quote: the shell then reads the word otherwise.
    SpecialQuote,
}

impl Broken {
    /// Says what is wrong, and what to write instead. `head` is the pattern without its open end.
    fn told(&self, head: &str, open_end: bool) -> String {
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
                "it ends with a `\\` that takes nothing as it is: write `\\\\` for the sign itself, and `' '` for a blank".into()
            }
            (Self::SpecialQuote, _) => {
                "`$'` and `$\"` are read by the shell alone: write the word that they stand for, in usual quotes".into()
            }
        }
    }
}

impl Tokens {
    fn of(text: &str) -> Self {
        let mut tokens = Self { parts: vec![String::new()], ..Self::default() };
        tokens.read(text, true);
        if let Some(Broken::OpenQuote(_)) = tokens.broken {
            // No shell would take it, so the quotes are meant as they stand.
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
                    self.broken = Some(Broken::LooseBackslash);
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
                        self.broken.get_or_insert(Broken::SpecialQuote);
                    }
                    self.put(letter);
                }
            }
        }
        if let Some(quote) = quote {
            self.broken = Some(Broken::OpenQuote(quote));
        }
    }

    fn put(&mut self, letter: char) {
        self.parts.last_mut().into_iter().for_each(|part| part.push(letter));
    }

    /// Refuses allow patterns that no command can fit.
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
                "`{word}` is looked through, so the rule would never match: write a rule for the command behind it"
            ));
        }
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match word.split_once('=') {
            Some((name, _)) if is_name(name) => {
                Err("assignments before a command are no part of it, so the rule would never match: leave them out \
                 (harmless ones are allowed with every command, others with none)"
                    .into())
            }
            _ => Ok(()),
        }
    }
}

/// Tells whether a `\` in front of it takes it as it is. Within single quotes the shell keeps `\`; only `*` is ours.
fn escapes(next: char, quote: Option<char>) -> bool {
    match quote {
        Some('\'') => next == '*',
        Some(_) => matches!(next, '*' | '"' | '\\' | '$' | '`'),
        None => true,
    }
}

/// The text that a pattern without wildcards stands for: `\*` is `*`, and backslashes before that count double.
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

/// The pattern without wildcards that stands for exactly this text: the other way round.
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

/// The narrowest pattern that covers this command; `None` where there is none.
pub fn narrowest(command: &CommandAccess) -> Option<String> {
    let text = match command.clarity {
        Clarity::Plain => return Some(quoted(&command.words)).filter(|text| covers(text, command)),
        Clarity::Exact(_) => &command.text,
        Clarity::Opaque(_) => &command.whole,
    };
    Some(escaped(text.trim())).filter(|text| covers(text, command))
}

/// Tells whether the pattern is one, has no wildcard, and covers the command.
fn covers(text: &str, command: &CommandAccess) -> bool {
    let pattern = CommandPattern::parse(text, Purpose::Covering { looked_through: &[] });
    pattern.is_ok_and(|pattern| !pattern.has_wildcard() && pattern.covers(command))
}

/// The words as a pattern that matches them and nothing else: quoted where blanks or signs would mean something.
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
