//! Result of the classification of one simple command, and the context that the classification needs.

use crate::shell_analysis::{
    analysis::Analysis,
    folders::{FolderChange, WorkingFolders},
    limits::AnalysisBudget,
    word::Word,
};
use std::{collections::HashSet, sync::Arc};
use toolstead_domain::{BuiltInAllowRule, ParseConfidence};

/// Words after quote removal.
pub(crate) type UnquotedWords = Vec<Arc<str>>;

/// A classified simple command.
#[derive(Debug)]
pub(crate) struct ClassifiedCommand {
    /// Words that allow rules are compared with.
    pub(crate) words: UnquotedWords,
    /// Further word lists that deny rules are compared with.
    pub(crate) readings: Vec<UnquotedWords>,
    /// Set of the same readings, to find duplicates quickly.
    known: HashSet<UnquotedWords>,
    pub(crate) clarity: ParseConfidence,
    /// Target if the command changes the working folder.
    pub(crate) moves: Option<FolderChange>,
    /// Files and folders that the command names and that it is known to read or change.
    pub(crate) operands: Vec<FileOperand>,
    /// Analyses of texts among the arguments.
    pub(crate) inner: Vec<Analysis>,
    pub(crate) built_in_rule: Option<BuiltInAllowRule>,
}

/// Context of the classification of a command.
pub(crate) struct ClassificationContext<'a> {
    pub(crate) folders: &'a WorkingFolders,
    pub(crate) limits: AnalysisBudget,
    /// Analyses nested texts.
    pub(crate) analyse: ShellAnalyser,
}

/// Function that analyses a shell text that may run in these folders. It is passed in, because the classification of a
/// command may not depend on the parser that calls it.
pub(crate) type ShellAnalyser = fn(&str, WorkingFolders, AnalysisBudget) -> Analysis;

impl ClassificationContext<'_> {
    /// Analyses a text nested in the command.
    pub(super) fn analyse_within(&self, text: &str) -> Analysis {
        (self.analyse)(text, self.folders.clone(), self.limits.deeper())
    }
}

impl ClassifiedCommand {
    pub(crate) fn new(words: &[Word]) -> Self {
        Self {
            words: texts(words),
            readings: Vec::new(),
            known: HashSet::new(),
            clarity: ParseConfidence::Plain,
            moves: None,
            operands: Vec::new(),
            inner: Vec::new(),
            built_in_rule: None,
        }
    }

    /// Lowers the confidence from plain to exact, with this reason. An exact or opaque command stays unchanged.
    pub(crate) fn mark_exact(&mut self, reason: impl Into<Arc<str>>) {
        if self.clarity == ParseConfidence::Plain {
            self.clarity = ParseConfidence::Exact(reason.into());
        }
    }

    /// Lowers the confidence to this one, if it is higher.
    pub(crate) fn limit_confidence(&mut self, clarity: ParseConfidence) {
        match clarity {
            ParseConfidence::Plain => {}
            ParseConfidence::Exact(reason) => self.mark_exact(reason),
            ParseConfidence::Opaque(reason) => self.mark_opaque(reason),
        }
    }

    /// Lowers the confidence to opaque, with this reason. An opaque command stays unchanged.
    pub(crate) fn mark_opaque(&mut self, reason: impl Into<Arc<str>>) {
        if !matches!(self.clarity, ParseConfidence::Opaque(_)) {
            self.clarity = ParseConfidence::Opaque(reason.into());
        }
    }

    pub(crate) fn add_reading(&mut self, words: UnquotedWords) {
        if words != self.words && !words.is_empty() && self.known.insert(words.clone()) {
            self.readings.push(words);
        }
    }

    /// Stores the analysis of a text among the arguments, and adds its commands as readings.
    pub(crate) fn add_nested(&mut self, inner: Analysis) {
        for command in &inner.commands {
            self.add_reading(command.words.to_vec());
            for reading in command.readings.iter() {
                self.add_reading(reading.to_vec());
            }
        }
        self.inner.push(inner);
    }
}

/// Returns the texts of the words.
pub(crate) fn texts(words: &[Word]) -> UnquotedWords {
    words.iter().map(|word| word.text.as_str().into()).collect()
}

/// A file or folder that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOperand {
    /// Path as it was written, relative to the working folder of the command.
    pub(crate) path: String,
    /// `true` if the file is changed; `false` if it is only read.
    pub(crate) writes: bool,
    /// `true` if the access includes everything below the path.
    pub(crate) tree: bool,
}
