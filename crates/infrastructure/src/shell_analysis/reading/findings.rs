//! What the walk has found so far: commands, files, and where the next command starts.

use super::{
    here_text::literal_text,
    step::{Place, Step},
    syntax::{self, MISREAD},
};
use crate::shell_analysis::{
    analysis::{Analysis, Touch, TouchOrigin, shown},
    folders::{Folders, Move},
    judging::{
        operands::only_changes_files,
        understood::{Analyse, Scope, Understood},
        widening::widening,
    },
    limits::Limits,
    word::{Expansion, Expansions, Misread, Word},
};
use std::{collections::HashSet, path::Path, sync::Arc};
use toolstead_domain::access::{Clarity, CommandAccess};
use tree_sitter::Node;

/// Opaque parts that are listed; they all say the same to a rule.
const MAX_OPAQUE: usize = 20;

/// More words in further readings than these are opaque together.
const MAX_READING_WORDS: usize = 200_000;

/// More files that one text names are not judged one by one.
const MAX_FILES: usize = 1_000;

/// What is said then.
pub(super) const TOO_MANY_FILES: &str = "it names more than 1,000 files";

/// Why a file was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Untold {
    /// It is relative, and the folder is not known.
    NoFolder,
    /// There are too many.
    TooMany,
}

/// What was found in a text.
pub(super) struct Findings<'t> {
    pub(super) text: &'t str,
    whole: Arc<str>,
    pub(super) limits: Limits,
    analyse: Analyse,
    pub(super) result: Analysis,
    opaque: usize,
    reading_words: usize,
    pub(super) folders: Folders,
    /// Nodes of simple commands whose standard input is a pipe, unless they redirect it.
    pub(super) behind_pipes: HashSet<usize>,
    /// The shell itself looks at files that no access names: words of a loop or an array become their names, or `[[` tests
    /// them.
    pub(super) looks_at_files: bool,
    /// Places of commands that redirect to a file which an earlier command has.
    repeats_file: HashSet<usize>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(text: &'t str, folders: Folders, limits: Limits, analyse: Analyse) -> Self {
        let result = Analysis { commands: Vec::new(), touches: Vec::new() };
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

    /// What a command is judged with where the walk is now.
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope { folders: &self.folders, limits: self.limits.clone(), analyse: self.analyse }
    }

    pub(super) fn slice(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn misread(&mut self, node: Node<'t>, reason: Misread) {
        self.opaque(node, reason);
    }

    /// Says that this part cannot be told.
    pub(super) fn opaque(&mut self, node: Node<'t>, reason: &str) {
        self.opaque += 1;
        if self.opaque <= MAX_OPAQUE {
            let text = self.slice(node).trim();
            let text = if text.is_empty() { self.text } else { text };
            let command = CommandAccess::opaque(self.whole.clone(), reason);
            self.result.commands.push(CommandAccess { text: shown(text).into(), ..command });
        }
    }

    /// Enters everything below a node whose own text was judged before.
    pub(super) fn below(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        steps.extend(
            syntax::children(node).into_iter().rev().filter(Node::is_named).map(|child| Step::Enter(child, place)),
        );
    }

    /// The parts of a node, if nothing but blanks lies between them.
    pub(super) fn parts(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
        let children = syntax::children(node);
        if !syntax::only_blanks_between(self.text, node, &children) {
            self.opaque(node, MISREAD);
        }
        children.into_iter().filter(Node::is_named).collect()
    }

    /// Reads a node as one word, and enters its expansions.
    pub(super) fn word(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Option<Word> {
        let expansions = self.enter_expansions(node, place, steps);
        match Word::read(self.text, node.byte_range(), &expansions) {
            Ok(word) => Some(word),
            Err(reason) => {
                self.misread(node, reason);
                None
            }
        }
    }

    /// Enters the expansions below a node; says where they lie.
    pub(super) fn enter_expansions(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Expansions {
        let mut expansions = Expansions::new();
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
                    steps.push(Step::Enter(node, place));
                }
                "translated_string" => self.opaque(node, "a translated text is not understood"),
                _ => stack.extend(syntax::children(node)),
            }
        }
        expansions
    }

    /// Adds a path in each folder that is possible.
    pub(super) fn touch(
        &mut self,
        (path, writes, tree): (&str, bool, bool),
        origin: TouchOrigin,
        folders: &Folders,
    ) -> Result<(), Untold> {
        let path = Path::new(path);
        let paths = match folders.known() {
            _ if path.is_absolute() => vec![path.to_owned()],
            Some(folders) => folders.iter().map(|folder| folder.join(path)).collect(),
            None => return Err(Untold::NoFolder),
        };
        for path in paths {
            if !self.add_touch(Touch { path, writes, tree, origin }) {
                return Err(Untold::TooMany);
            }
        }
        Ok(())
    }

    /// Adds a file; false if there are too many already.
    fn add_touch(&mut self, touch: Touch) -> bool {
        let is_known = |known: &Touch| {
            let redirections = matches!(
                (known.origin, touch.origin),
                (TouchOrigin::Redirection { .. }, TouchOrigin::Redirection { .. })
            );
            // A redirection is judged as such, at whatever command it stands.
            *known == touch || redirections && *known == Touch { origin: known.origin, ..touch.clone() }
        };
        // The last ones are where repetitions are.
        if self.result.touches.iter().rev().take(16).any(is_known) {
            if let TouchOrigin::Redirection { command } = touch.origin {
                self.repeats_file.insert(command);
            }
            return true;
        }
        let fits = self.result.touches.len() < MAX_FILES;
        if fits {
            self.result.touches.push(touch);
        }
        fits
    }

    /// Adds what is understood of a command, and the files that it names.
    pub(super) fn add(&mut self, mut understood: Understood, text: Arc<str>) {
        let folders = self.folders.clone();
        let command = self.result.commands.len();
        let origin = TouchOrigin::Operand { command };
        let mut counted = true;
        for operand in std::mem::take(&mut understood.operands) {
            let path = (operand.path.as_str(), operand.writes, operand.tree);
            match self.touch(path, origin, &folders) {
                Ok(()) => {}
                Err(Untold::NoFolder) => understood.exact("the folder that it runs in cannot be told"),
                Err(Untold::TooMany) => counted = false,
            }
        }
        for touch in understood.inner.iter().flat_map(|inner| &inner.touches) {
            let origin = match touch.origin {
                TouchOrigin::Redirection { .. } => TouchOrigin::Redirection { command },
                TouchOrigin::Operand { .. } => origin,
            };
            counted &= self.add_touch(Touch { origin, ..touch.clone() });
        }
        if !counted {
            self.limits.spend();
            understood.opaque(TOO_MANY_FILES);
        }
        self.reading_words += understood.readings.iter().map(Vec::len).sum::<usize>();
        if self.reading_words > MAX_READING_WORDS {
            self.limits.spend();
            understood.readings.clear();
            understood.opaque("it has too many arguments to tell which of them it starts");
        }
        match &understood.moves {
            Some(Move::Somewhere) => self.folders = Folders::anywhere(),
            Some(to) => self.folders.go(to),
            None => self.folders.settle(),
        }
        let opaque = matches!(understood.clarity, Clarity::Opaque(_));
        let words: Arc<[Arc<str>]> = if opaque {
            // What it says is no proof, but what deny rules look for may well stand in it.
            let words = std::mem::take(&mut understood.words);
            understood.reading(words);
            Arc::default()
        } else {
            understood.words.into()
        };
        let widening = (understood.clarity == Clarity::Plain).then(|| widening(&words)).flatten();
        self.result.commands.push(CommandAccess {
            whole: self.whole.clone(),
            text,
            only_changes_files: words.first().is_some_and(|program| only_changes_files(program)),
            words,
            readings: understood.readings.into_iter().map(Arc::from).collect(),
            operands: Arc::default(),
            free: Arc::default(),
            // A file that it shares is not among its own.
            built_in_rule: understood.built_in_rule.filter(|_| !self.repeats_file.contains(&command)),
            widening,
            clarity: understood.clarity,
        });
    }
}
