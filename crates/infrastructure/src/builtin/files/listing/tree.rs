//! Selects the entries of a tree to show: the shallow folders first, with a summary of the rest.

use crate::{
    builtin::{
        files::listing::{ListedEntryType, Sort},
        text::wording::{counted, on_one_line, rfc3339},
    },
    sandbox::workspace::{facts::FileFacts, unmistakable},
};
use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    path::PathBuf,
};
use toolstead_domain::Timestamp;

/// Maximum number of file types that a summary names.
const KINDS: usize = 3;

/// An entry that the walk visited.
#[derive(Debug, Clone)]
pub(super) struct VisitedEntry {
    pub(super) below: PathBuf,
    pub(super) kind: ListedEntryType,
    pub(super) facts: Option<FileFacts>,
    pub(super) target: Option<PathBuf>,
}

/// Limits of what is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct DisplayLimits {
    pub(super) entries: usize,
    pub(super) chars: usize,
}

/// All visited entries. The first node is the listed folder.
pub(super) struct EntryTree {
    nodes: Vec<Node>,
    is_long: bool,
}

struct Node {
    /// `None` for the listed folder.
    entry: Option<VisitedEntry>,
    children: Vec<usize>,
    depth: usize,
}

/// The shown part of a tree.
pub(super) struct RenderedTree<'a> {
    pub(super) text: String,
    pub(super) entries: Vec<&'a VisitedEntry>,
    /// `true` if a part is only summarized.
    pub(super) is_cut: bool,
}

impl VisitedEntry {
    pub(super) fn name(&self) -> Cow<'_, str> {
        self.below.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Returns the file type for a summary: the extension with its dot, or `without extension`.
    fn extension(&self) -> String {
        let extension = self.below.extension().map(|extension| extension.to_string_lossy().into_owned());
        extension.map_or_else(|| "without extension".into(), |extension| format!(".{}", on_one_line(&extension)))
    }
}

impl EntryTree {
    /// Builds the tree from the visited entries. `entries` must contain each folder before its contents, sorted by
    /// name; an entry whose folder is missing is omitted.
    pub(super) fn of(entries: impl Iterator<Item = VisitedEntry>, sort: Sort, is_long: bool) -> Self {
        let mut nodes = vec![Node { entry: None, children: Vec::new(), depth: 0 }];
        let mut folders = HashMap::from([(PathBuf::new(), 0)]);
        for entry in entries {
            let Some(&folder) = entry.below.parent().and_then(|folder| folders.get(folder)) else { continue };
            let node = nodes.len();
            if entry.kind == ListedEntryType::Directory {
                folders.insert(entry.below.clone(), node);
            }
            let depth = nodes[folder].depth + 1;
            nodes[folder].children.push(node);
            nodes.push(Node { entry: Some(entry), children: Vec::new(), depth });
        }
        let facts = |node: usize| nodes[node].entry.as_ref().and_then(|met| met.facts);
        let mut children: Vec<Vec<usize>> = nodes.iter().map(|node| node.children.clone()).collect();
        for children in &mut children {
            // They arrive sorted by name, and the sort is stable.
            match sort {
                Sort::Name => {}
                Sort::Size => children.sort_by_key(|node| Reverse(facts(*node).map(|facts| facts.bytes))),
                Sort::Modified => children.sort_by_key(|node| Reverse(facts(*node).map(|facts| facts.modified))),
            }
        }
        for (node, children) in nodes.iter_mut().zip(children) {
            node.children = children;
        }
        Self { nodes, is_long }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Returns as much of the tree as fits.
    pub(super) fn render(&self, room: DisplayLimits) -> RenderedTree<'_> {
        let counts = self.open(room);
        let mut shown = RenderedTree { text: String::new(), entries: Vec::new(), is_cut: false };
        let mut next = vec![RenderStep::Inside(0)];
        while let Some(step) = next.pop() {
            let node = match step {
                RenderStep::Rest(folder) => {
                    let hidden = self.nodes[folder].children.iter().skip(counts[folder]).copied();
                    let indent = self.indent(self.nodes[folder].depth + 1);
                    shown.text.push_str(&format!("{indent}… and {}\n", self.summary(hidden)));
                    shown.is_cut = true;
                    continue;
                }
                RenderStep::Entry(node) => {
                    let Some(entry) = &self.nodes[node].entry else { continue };
                    shown.text.push_str(&self.line(node, entry));
                    shown.entries.push(entry);
                    if counts[node] == 0 && !self.nodes[node].children.is_empty() {
                        let inside = self.summary(self.nodes[node].children.iter().copied());
                        shown.text.push_str(&format!(" ({inside})"));
                        shown.is_cut = true;
                    }
                    shown.text.push('\n');
                    node
                }
                RenderStep::Inside(node) => node,
            };
            let children = &self.nodes[node].children;
            if (counts[node] > 0 || node == 0) && counts[node] < children.len() {
                next.push(RenderStep::Rest(node));
            }
            next.extend(children.iter().take(counts[node]).rev().map(|child| RenderStep::Entry(*child)));
        }
        shown
    }

    /// Returns by node the number of its entries to show: of a folder all or none, and of the listed folder as many as
    /// fit.
    fn open(&self, room: DisplayLimits) -> Vec<usize> {
        let mut counts = vec![0; self.nodes.len()];
        let (mut entries, mut chars) = (room.entries, room.chars);
        let length = |node: &usize| {
            let node = *node;
            self.nodes[node].entry.as_ref().map_or(0, |met| self.line(node, met).chars().count() + 1)
        };
        let mut waiting = VecDeque::from([0]);
        while let Some(folder) = waiting.pop_front() {
            let children = &self.nodes[folder].children;
            let mut left = chars;
            let fits = |child: &&usize| {
                let rest = left.checked_sub(length(child));
                left = rest.unwrap_or(left);
                rest.is_some()
            };
            let count = children.iter().take(entries).take_while(fits).count();
            if count < children.len() && folder != 0 {
                continue;
            }
            counts[folder] = count;
            entries -= count;
            chars = left;
            waiting.extend(children.iter().take(count).filter(|child| !self.nodes[**child].children.is_empty()));
        }
        counts
    }

    /// Returns a summary such as `12 files in 3 folders: 8 .rs, 4 .toml`.
    fn summary(&self, nodes: impl Iterator<Item = usize>) -> String {
        let mut waiting: Vec<usize> = nodes.collect();
        let (mut files, mut folders) = (0, 0);
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        while let Some(node) = waiting.pop() {
            let Some(entry) = &self.nodes[node].entry else { continue };
            if entry.kind == ListedEntryType::Directory {
                folders += 1;
            } else {
                files += 1;
                *kinds.entry(entry.extension()).or_default() += 1;
            }
            waiting.extend(&self.nodes[node].children);
        }
        let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
        kinds.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        let others: usize = kinds.iter().skip(KINDS).map(|(_, count)| count).sum();
        let mut named: Vec<String> = kinds.iter().take(KINDS).map(|(kind, count)| format!("{count} {kind}")).collect();
        if others > 0 {
            named.push(format!("{others} others"));
        }
        let mut text = counted(files, "file");
        if folders > 0 {
            text.push_str(&format!(" in {}", counted(folders, "folder")));
        }
        if !named.is_empty() {
            text.push_str(&format!(": {}", named.join(", ")));
        }
        text
    }

    fn indent(&self, depth: usize) -> String {
        let columns =
            if self.is_long { " ".repeat("0000 000000000000 2026-01-01T00:00:00Z  ".len()) } else { String::new() };
        columns + &"  ".repeat(depth)
    }

    fn line(&self, node: usize, entry: &VisitedEntry) -> String {
        let mut line = String::new();
        if self.is_long {
            let (mode, bytes, time) =
                entry.facts.map_or((0, 0, Timestamp(0)), |facts| (facts.mode, facts.bytes, facts.modified));
            line.push_str(&format!("{mode:04o} {bytes:>12} {}  ", rfc3339(time)));
        }
        line.push_str(&"  ".repeat(self.nodes[node].depth));
        let name = entry.name();
        // The caller may use the name of an entry of the listed folder as a path, exactly as it is shown.
        let name = if self.nodes[node].depth == 1 { unmistakable(name.into_owned()).into() } else { name };
        line.push_str(&on_one_line(&name));
        match (&entry.target, entry.kind) {
            (Some(target), _) => line.push_str(&format!(" -> {}", on_one_line(&target.to_string_lossy()))),
            (None, ListedEntryType::Directory) => line.push('/'),
            (None, _) => {}
        }
        line
    }
}

/// Next step in the text of a tree.
enum RenderStep {
    Entry(usize),
    Inside(usize),
    /// Summary of the entries of a folder that are not shown.
    Rest(usize),
}
