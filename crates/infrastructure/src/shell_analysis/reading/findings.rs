//! State of the walk: the commands and files found so far, and the folders of the next command.

use super::{
    here_document::literal_text,
    step::{NodeNesting, WalkStep},
    syntax::{self, MISREAD},
};
use crate::shell_analysis::{
    analysis::{Analysis, FileAccess, FileAccessOrigin, shown},
    folders::{FolderChange, WorkingFolders},
    judging::{
        classified_command::{ClassificationContext, ClassifiedCommand, ShellAnalyser},
        operands::only_changes_files,
        widening::widening,
    },
    limits::AnalysisBudget,
    word::{Expansion, ExpansionsByOffset, MisreadReason, Word},
};
use std::{collections::HashSet, path::Path, sync::Arc};
use toolstead_domain::{CommandAccess, ParseConfidence};
use tree_sitter::Node;

/// Maximum number of opaque parts that are listed. Further ones change nothing for a rule.
const MAX_OPAQUE: usize = 20;

/// Maximum total number of words in readings. A command beyond it is opaque.
const MAX_READING_WORDS: usize = 200_000;

/// Maximum number of files that are listed for one text.
const MAX_FILES: usize = 1_000;

/// Reason given for a text that exceeds the maximum number of files.
pub(super) const TOO_MANY_FILES: &str = "it names more than 1,000 files";

/// Reason why a file was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddFileError {
    /// The path is relative, and the folder is unknown.
    NoFolder,
    /// The maximum number of files is reached.
    TooMany,
}

/// Accesses found in a text so far.
pub(super) struct Findings<'t> {
    pub(super) text: &'t str,
    whole: Arc<str>,
    pub(super) limits: AnalysisBudget,
    analyse: ShellAnalyser,
    pub(super) result: Analysis,
    opaque: usize,
    reading_words: usize,
    pub(super) folders: WorkingFolders,
    /// Ids of the nodes of simple commands whose standard input is a pipe, unless they redirect it.
    pub(super) behind_pipes: HashSet<usize>,
    /// `true` if the shell itself looks at files that are not listed as accesses: words of a loop or an array that
    /// expand to file names, or tests in `[[`.
    pub(super) looks_at_files: bool,
    /// Indices of commands that redirect to a file that an earlier command already redirects to.
    repeats_file: HashSet<usize>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(text: &'t str, folders: WorkingFolders, limits: AnalysisBudget, analyse: ShellAnalyser) -> Self {
        let result = Analysis { commands: Vec::new(), file_accesses: Vec::new() };
        Self {
            text,
            whole: text.into(),
            limits,
            analyse,
            result,
            opaque: 0,
            reading_words: 0,
            folders,
            behind_pipes: HashSet::new(),
            looks_at_files: false,
            repeats_file: HashSet::new(),
        }
    }

    /// Returns the context for the classification of the next command.
    pub(super) fn scope(&self) -> ClassificationContext<'_> {
        ClassificationContext { folders: &self.folders, limits: self.limits.clone(), analyse: self.analyse }
    }

    pub(super) fn slice(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn misread(&mut self, node: Node<'t>, reason: MisreadReason) {
        self.opaque(node, reason);
    }

    /// Adds an opaque command for this node, unless [`MAX_OPAQUE`] of them exist.
    pub(super) fn opaque(&mut self, node: Node<'t>, reason: &str) {
        self.opaque += 1;
        if self.opaque <= MAX_OPAQUE {
            let text = self.slice(node).trim();
            let text = if text.is_empty() { self.text } else { text };
            let command = CommandAccess::opaque(self.whole.clone(), reason);
            self.result.commands.push(CommandAccess { text: shown(text).into(), ..command });
        }
    }

    /// Schedules the named children of a node whose own text was already analysed.
    pub(super) fn below(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        steps.extend(
            syntax::children(node).into_iter().rev().filter(Node::is_named).map(|child| WalkStep::Enter(child, place)),
        );
    }

    /// Returns the named children of a node. The node is opaque if anything but blanks separates them.
    pub(super) fn parts(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
        let children = syntax::children(node);
        if !syntax::only_blanks_between(self.text, node, &children) {
            self.opaque(node, MISREAD);
        }
        children.into_iter().filter(Node::is_named).collect()
    }

    /// Parses a node as one word, and schedules its expansions. If bash may read the node differently, it adds an
    /// opaque command and returns `None`.
    pub(super) fn word(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) -> Option<Word> {
        let expansions = self.enter_expansions(node, place, steps);
        match Word::read(self.text, node.byte_range(), &expansions) {
            Ok(word) => Some(word),
            Err(reason) => {
                self.misread(node, reason);
                None
            }
        }
    }

    /// Schedules the expansions below a node and returns their positions.
    pub(super) fn enter_expansions(
        &mut self,
        node: Node<'t>,
        place: NodeNesting,
        steps: &mut Vec<WalkStep<'t>>,
    ) -> ExpansionsByOffset {
        let mut expansions = ExpansionsByOffset::new();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match node.kind() {
                "expansion"
                | "simple_expansion"
                | "arithmetic_expansion"
                | "command_substitution"
                | "process_substitution" => {
                    let text =
                        Some(node).filter(|_| !place.substituted).and_then(|node| literal_text(self.slice(node)));
                    expansions.insert(node.start_byte(), Expansion { end: node.end_byte(), text });
                    steps.push(WalkStep::Enter(node, place));
                }
                "translated_string" => self.opaque(node, "a translated text cannot be parsed"),
                _ => stack.extend(syntax::children(node)),
            }
        }
        expansions
    }

    /// Adds a file access: for a relative path, one for each possible folder.
    pub(super) fn add_file_access(
        &mut self,
        (path, writes, tree): (&str, bool, bool),
        origin: FileAccessOrigin,
        folders: &WorkingFolders,
    ) -> Result<(), AddFileError> {
        let path = Path::new(path);
        let paths = match folders.known() {
            _ if path.is_absolute() => vec![path.to_owned()],
            Some(folders) => folders.iter().map(|folder| folder.join(path)).collect(),
            None => return Err(AddFileError::NoFolder),
        };
        for path in paths {
            if !self.add_access(FileAccess { path, writes, tree, origin }) {
                return Err(AddFileError::TooMany);
            }
        }
        Ok(())
    }

    /// Adds a file access, unless it is listed already. Returns `false` if the maximum number is reached.
    fn add_access(&mut self, file_access: FileAccess) -> bool {
        let is_known = |known: &FileAccess| {
            let redirections = matches!(
                (known.origin, file_access.origin),
                (FileAccessOrigin::Redirection { .. }, FileAccessOrigin::Redirection { .. })
            );
            // Rules are applied to a redirection in the same way whichever command has it.
            *known == file_access
                || redirections && *known == FileAccess { origin: known.origin, ..file_access.clone() }
        };
        // Duplicates are among the most recent entries.
        if self.result.file_accesses.iter().rev().take(16).any(is_known) {
            if let FileAccessOrigin::Redirection { command } = file_access.origin {
                self.repeats_file.insert(command);
            }
            return true;
        }
        let fits = self.result.file_accesses.len() < MAX_FILES;
        if fits {
            self.result.file_accesses.push(file_access);
        }
        fits
    }

    /// Adds a classified command and the files that it names, and applies its change of the working folder.
    pub(super) fn add(&mut self, mut understood: ClassifiedCommand, text: Arc<str>) {
        let folders = self.folders.clone();
        let command = self.result.commands.len();
        let origin = FileAccessOrigin::Operand { command };
        let mut counted = true;
        for operand in std::mem::take(&mut understood.operands) {
            let path = (operand.path.as_str(), operand.writes, operand.tree);
            match self.add_file_access(path, origin, &folders) {
                Ok(()) => {}
                Err(AddFileError::NoFolder) => understood.mark_exact("the folder that it runs in is unknown"),
                Err(AddFileError::TooMany) => counted = false,
            }
        }
        for file_access in understood.inner.iter().flat_map(|inner| &inner.file_accesses) {
            let origin = match file_access.origin {
                FileAccessOrigin::Redirection { .. } => FileAccessOrigin::Redirection { command },
                FileAccessOrigin::Operand { .. } => origin,
            };
            counted &= self.add_access(FileAccess { origin, ..file_access.clone() });
        }
        if !counted {
            self.limits.mark_exceeded();
            understood.mark_opaque(TOO_MANY_FILES);
        }
        self.reading_words += understood.readings.iter().map(Vec::len).sum::<usize>();
        if self.reading_words > MAX_READING_WORDS {
            self.limits.mark_exceeded();
            understood.readings.clear();
            understood.mark_opaque("it has too many arguments to determine which of them it starts");
        }
        match &understood.moves {
            Some(FolderChange::Somewhere) => self.folders = WorkingFolders::anywhere(),
            Some(to) => self.folders.record_change(to),
            None => self.folders.record_unchanged(),
        }
        let opaque = matches!(understood.clarity, ParseConfidence::Opaque(_));
        let words: Arc<[Arc<str>]> = if opaque {
            // The words of an opaque command prove nothing, but deny rules must still match them.
            let words = std::mem::take(&mut understood.words);
            understood.add_reading(words);
            Arc::default()
        } else {
            understood.words.into()
        };
        let widening = (understood.clarity == ParseConfidence::Plain).then(|| widening(&words)).flatten();
        self.result.commands.push(CommandAccess {
            whole: self.whole.clone(),
            text,
            only_changes_files: words.first().is_some_and(|program| only_changes_files(program)),
            words,
            readings: understood.readings.into_iter().map(Arc::from).collect(),
            operands: Arc::default(),
            free: Arc::default(),
            // A file that is shared with an earlier command is not listed for this one.
            built_in_rule: understood.built_in_rule.filter(|_| !self.repeats_file.contains(&command)),
            widening,
            clarity: understood.clarity,
        });
    }
}
