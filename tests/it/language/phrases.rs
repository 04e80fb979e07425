//! The word list of the style rules, and the search for its phrases in a text.
//!
//! A form is a sequence of words. `a|b` is one of two words, `*` is any word, and `^` is the beginning of the text. An
//! exception covers the words of a form that are used in another sense.
//!
//! Words of the list with an ordinary meaning are limited to the forms that have no other sense:
//! - "row" and "window" are left out: they are words of SQL, tables, text and models.
//! - "keep" is left out, and "kept" is counted.
//! - "seen" counts before "file", and "held" with "call": locks are held, and servers are seen.
//! - "room" counts after an article, except in "a room for"; "has room for" is ordinary English.
//! - "stands for", "there is no", "is no longer" and "isolated world" are ordinary English or terms.
//! - "our words" and "their words" count; "its words" are those of a shell command.
//! - "people" is left out, and "the person" is counted.

use std::collections::HashMap;

/// Forms, and the longer phrases in which they are allowed.
type Rule = (&'static [&'static str], &'static [&'static str]);

const RULES: &[Rule] = &[
    (&["told|untold|tell|tells|telling"], &[]),
    (&["ask|asks|asked|asking about"], &[]),
    (&["a yes", "say|says|said|saying yes"], &[]),
    (&["nobody|somebody|whoever|whosever|nobody's|somebody's"], &[]),
    (&["taken|take|takes|taking|took back", "taken|take|takes|taking|took * back"], &[]),
    (&["go|goes|going|went|gone on"], &[]),
    (&["stand|stands|standing|stood"], &["stand|stands|standing|stood for"]),
    (&["bear|bears|bearing|bore|borne"], &[]),
    (
        &["is|are|was|were|be no *"],
        &["there is|are|was|were|be no", "is|are|was|were|be no longer|more|less|such|later|older|newer|larger|need"],
    ),
    (&["so many|much|long"], &[]),
    (&["likewise", "^ the same"], &[]),
    (&["let|lets|letting go", "do|does|done|doing away with"], &[]),
    (&["trail|trails"], &[]),
    (&["door|doors|floor|floors|rooms", "a|each|one|this|that room"], &["a room for"]),
    (&["circle|circles"], &[]),
    (&["face|faces"], &[]),
    (&["world|worlds"], &["isolated|real world|worlds"]),
    (&["remedy|remedies"], &[]),
    (&["hop|hops", "one way out"], &["redirect hop|hops", "hop by hop"]),
    (&["news"], &[]),
    (&["look-up|look-ups", "found|find|finds|finding out"], &[]),
    (&["the person"], &[]),
    (&["program|programs that|which embed|embeds", "program|programs of ours|yours"], &[]),
    (&["our|their words"], &[]),
    (&["held call|calls", "call|calls is|are held"], &[]),
    (&["kept"], &[]),
    (&["seen file|files"], &[]),
    (&["spelling|spellings"], &[]),
    (&["is|are|was|were not there"], &[]),
];

/// The first word of every text.
const BEGINNING: &str = "^";
/// A code span. It counts as one word.
const CODE: &str = "`";
/// A sign that ends a sentence or a clause. No phrase continues across it.
const BOUNDARY: &str = ".";

/// Alternatives for each word of a form; `None` is any word.
struct Form(Vec<Option<Vec<&'static str>>>);

impl Form {
    fn parse(text: &'static str) -> Self {
        Self(text.split(' ').map(|word| (word != "*").then(|| word.split('|').collect())).collect())
    }

    fn matches(&self, words: &[String], at: usize) -> bool {
        let fits = |(expected, word): (&Option<Vec<&str>>, &String)| match expected {
            Some(alternatives) => alternatives.contains(&word.as_str()),
            None => word != BOUNDARY,
        };
        words.len() >= at + self.0.len() && self.0.iter().zip(&words[at..]).all(fits)
    }

    /// Returns `true` if the form occurs and covers the word at this index.
    fn covers(&self, words: &[String], at: usize) -> bool {
        (at.saturating_sub(self.0.len() - 1)..=at).any(|start| self.matches(words, start))
    }
}

/// The word list, indexed by the first word of each form.
pub(super) struct Phrases(HashMap<&'static str, Vec<(Form, Vec<Form>)>>);

impl Phrases {
    pub(super) fn new() -> Self {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for (forms, exceptions) in RULES {
            for form in *forms {
                for first in Form::parse(form).0[0].as_deref().unwrap_or_default() {
                    let exceptions = exceptions.iter().map(|exception| Form::parse(exception)).collect();
                    index.entry(*first).or_default().push((Form::parse(form), exceptions));
                }
            }
        }
        Self(index)
    }

    /// Returns each phrase found, in the order of the text.
    pub(super) fn find(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            for (form, exceptions) in self.0.get(word.as_str()).into_iter().flatten() {
                let is_allowed = || exceptions.iter().any(|exception| exception.covers(words, at));
                if form.matches(words, at) && !is_allowed() {
                    found.push(words[at..at + form.0.len()].join(" "));
                }
            }
        }
        found
    }
}

/// Splits a text into lower-case words. Code spans and the targets of links are not read.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = vec![BEGINNING.to_owned()];
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let joins = matches!(letter, '\'' | '-') && !word.is_empty();
        if letter.is_alphanumeric() || joins && letters.peek().is_some_and(|next| next.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match letter {
            '`' => {
                letters.by_ref().find(|letter| *letter == '`');
                words.push(CODE.to_owned());
            }
            ']' if letters.peek() == Some(&'(') => {
                letters.by_ref().find(|letter| *letter == ')');
            }
            '.' | ':' | ';' | '!' | '?' | '(' | ')' | '|' => words.push(BOUNDARY.to_owned()),
            _ => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[test]
fn phrases_are_found_at_word_boundaries_and_outside_of_exceptions() {
    let phrases = Phrases::new();
    for (text, expected) in [
        ("The caller is told of it.", &["told"][..]),
        ("Untold news; NEWS.", &["untold", "news", "news"]),
        ("Surfaces of an interface, `told` and [a page](told.md).", &[]),
        ("A call that nobody waits for goes on.", &["nobody", "goes on"]),
        ("Where it goes. On success it returns.", &[]),
        ("The letters stand for days, and it stands in a file.", &["stands"]),
        ("A value that is no name, and is no longer used.", &["is no name"]),
        ("There is no file. It is no `Tool`.", &["is no `"]),
        ("Takes it back, and was taken back.", &["takes it back", "taken back"]),
        ("The same for files.", &["^ the same"]),
        ("Returns the same value.", &[]),
        ("An isolated world in our world.", &["world"]),
        ("Room for one more. A room for it. Each room knows one.", &["each room"]),
        ("A bearer token and standard input.", &[]),
        ("A redirect hop or a hop.", &["hop"]),
    ] {
        assert_eq!(phrases.find(&words(text)), expected, "{text}");
    }
}
