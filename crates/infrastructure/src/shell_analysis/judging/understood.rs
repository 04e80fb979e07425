//! What is understood of one simple command, and what it is judged with.

use crate::shell_analysis::{
    analysis::Analysis,
    folders::{Folders, Move},
    limits::Limits,
    word::Word,
};
use std::{collections::HashSet, sync::Arc};
use toolstead_domain::access::{BuiltInRule, Clarity};

/// Words without quotes.
pub(crate) type Words = Vec<Arc<str>>;

/// A simple command, understood.
#[derive(Debug)]
pub(crate) struct Understood {
    /// What allow rules are compared with.
    pub(crate) words: Words,
    /// What deny rules are compared with as well.
    pub(crate) readings: Vec<Words>,
    /// The same, to find repetitions among many.
    known: HashSet<Words>,
    pub(crate) clarity: Clarity,
    /// How it moves to another folder.
    pub(crate) moves: Option<Move>,
    /// The files that it names, if it is known to change them.
    pub(crate) operands: Vec<Operand>,
    /// What texts among its arguments would do.
    pub(crate) inner: Vec<Analysis>,
    pub(crate) built_in_rule: Option<BuiltInRule>,
}

/// What a command is judged with.
pub(crate) struct Scope<'a> {
    pub(crate) folders: &'a Folders,
    pub(crate) limits: Limits,
    /// Reads the texts within it.
    pub(crate) analyse: Analyse,
}

/// Reads a shell's text that may run in these folders. It comes in from above, where commands are told apart.
pub(crate) type Analyse = fn(&str, Folders, Limits) -> Analysis;

impl Scope<'_> {
    /// What a text within would do.
    pub(super) fn analyse_within(&self, text: &str) -> Analysis {
        (self.analyse)(text, self.folders.clone(), self.limits.deeper())
    }
}

impl Understood {
    pub(crate) fn new(words: &[Word]) -> Self {
        Self {
            words: texts(words),
            readings: Vec::new(),
            known: HashSet::new(),
            clarity: Clarity::Plain,
            moves: None,
            operands: Vec::new(),
            inner: Vec::new(),
            built_in_rule: None,
        }
    }

    /// Trusts it no further than this.
    pub(crate) fn exact(&mut self, reason: impl Into<Arc<str>>) {
        if self.clarity == Clarity::Plain {
            self.clarity = Clarity::Exact(reason.into());
        }
    }

    /// Trusts it no further than that.
    pub(crate) fn trust_no_further(&mut self, clarity: Clarity) {
        match clarity {
            Clarity::Plain => {}
            Clarity::Exact(reason) => self.exact(reason),
            Clarity::Opaque(reason) => self.opaque(reason),
        }
    }

    /// Trusts it not at all.
    pub(crate) fn opaque(&mut self, reason: impl Into<Arc<str>>) {
        if !matches!(self.clarity, Clarity::Opaque(_)) {
            self.clarity = Clarity::Opaque(reason.into());
        }
    }

    pub(crate) fn reading(&mut self, words: Words) {
        if words != self.words && !words.is_empty() && self.known.insert(words.clone()) {
            self.readings.push(words);
        }
    }

    /// Takes over what a text among the arguments would run.
    pub(crate) fn take_in(&mut self, inner: Analysis) {
        for command in &inner.commands {
            self.reading(command.words.to_vec());
            for reading in command.readings.iter() {
                self.reading(reading.to_vec());
            }
        }
        self.inner.push(inner);
    }
}

/// The words as texts.
pub(crate) fn texts(words: &[Word]) -> Words {
    words.iter().map(|word| word.text.as_str().into()).collect()
}

/// A file or folder that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operand {
    /// As it was written; relative to the folder the command starts in.
    pub(crate) path: String,
    /// It is changed, not only read.
    pub(crate) writes: bool,
    /// With everything below.
    pub(crate) tree: bool,
}
