//! Lists a folder as a tree, for the tool that lists folders and for reads of a folder.

mod tree;

use crate::{
    builtin::{
        files::{
            file_filter::{ActiveIgnoreRules, IgnoreOptions, SkipReason},
            listing::tree::{DisplayLimits, EntryTree, VisitedEntry},
        },
        text::wording::{denied_entries_note, rfc3339},
    },
    sandbox::workspace::{
        facts::FileKind,
        file_handle::FileHandle,
        granted_workspace::GrantedWorkspace,
        unmistakable,
        walk::{Visitor, WalkControl, WalkEnd, WalkEntry, WalkFolder, WalkOptions, WalkOrder, WalkSummary},
    },
};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Depth of a listing without a limit of depth; paths cannot be much deeper.
const MAX_DEPTH: usize = 2048;
/// Maximum number of entries, unless the caller specifies another.
const USUAL_LIMIT: usize = 1000;
/// Maximum length of a tree in characters if the caller specifies no number of entries.
const USUAL_CHARS: usize = 10_000;
/// Maximum length of a tree in characters if the caller specifies the number of entries: that of any result for a
/// model.
const MAX_CHARS: usize = 30_000;

/// Options of a listing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListingOptions<'a> {
    /// Number of levels; 0 means all.
    pub(crate) depth: usize,
    /// Glob patterns of entries to leave out.
    pub(crate) ignore: &'a [String],
    pub(crate) show_hidden: bool,
    pub(crate) respect_gitignore: bool,
    /// `true` to include permissions, sizes and times.
    pub(crate) long: bool,
    pub(crate) sort: Sort,
    /// Maximum number of entries. Without it, as many as keep the tree short.
    pub(crate) limit: Option<usize>,
}

impl Default for ListingOptions<'_> {
    /// Selects the direct contents of the folder.
    fn default() -> Self {
        Self {
            depth: 1,
            ignore: &[],
            show_hidden: true,
            respect_gitignore: false,
            long: false,
            sort: Sort::default(),
            limit: None,
        }
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    #[default]
    Name,
    Size,
    Modified,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FolderListing {
    /// Relative to the working directory, or absolute outside of it.
    pub(crate) path: String,
    /// The entries in tree order: each folder before its content.
    pub(crate) entries: Vec<ListedEntry>,
    /// `true` if entries are left out.
    pub(crate) truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ListedEntry {
    name: String,
    /// Relative to the folder that is listed.
    path: String,
    r#type: ListedEntryType,
    /// In bytes; for files only.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Time of the last change, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
enum ListedEntryType {
    File,
    Directory,
    Symlink,
    Other,
}

/// Lists a folder, as text and as data, and visits at most `entries` entries.
///
/// # Errors
/// `invalid_input` for an invalid pattern, and the failure of the walk.
pub(crate) fn list_folder(
    files: &GrantedWorkspace,
    found: &FileHandle,
    wanted: &ListingOptions<'_>,
    entries: usize,
) -> Result<(String, FolderListing), ToolFailure> {
    let path = files.workspace().shown(&found.path().lexical);
    let filter = IgnoreOptions { show_hidden: wanted.show_hidden, respect_ignore_files: wanted.respect_gitignore };
    let listing = ListingVisitor { filter, left_out: left_out(wanted.ignore)? };
    let depth = if wanted.depth == 0 { MAX_DEPTH } else { wanted.depth };
    let limits = WalkOptions { entries, depth, order: WalkOrder::ShallowFirst };
    let (walked, met) = files.walk(found, limits, filter.above(files, found), &listing)?;

    let room = DisplayLimits {
        entries: wanted.limit.unwrap_or(USUAL_LIMIT),
        chars: if wanted.limit.is_some() { MAX_CHARS } else { USUAL_CHARS },
    };
    let tree = EntryTree::of(met.into_iter().flatten(), wanted.sort, wanted.long);
    let shown = tree.render(room);
    let mut text = format!("{path}/\n").replace("//", "/");
    text.push_str(&shown.text);
    if tree.is_empty() {
        text.push_str("(nothing to show)\n");
    }
    for note in notes(&walked, shown.is_cut) {
        text.push_str(&format!("[{note}]\n"));
    }
    text.truncate(text.trim_end_matches('\n').len());
    let entries = shown.entries.into_iter().map(VisitedEntry::item).collect();
    let truncated = shown.is_cut || walked.ended.is_some();
    Ok((text, FolderListing { path, entries, truncated }))
}

fn notes(walked: &WalkSummary, is_cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match walked.ended {
        Some(WalkEnd::Entries) => {
            notes.push(format!("the folder has more than the {} entries that are looked at", walked.entries))
        }
        Some(WalkEnd::Time) => notes.push("the listing timed out before it was complete".into()),
        Some(WalkEnd::Visitor) | None => {}
    }
    if is_cut {
        notes.push(
            "not everything is shown; look into one folder, leave some out with `ignore`, or raise `limit`".into(),
        );
    }
    notes.extend(denied_entries_note(walked.refused, "shown"));
    if walked.unreadable > 0 {
        notes.push(format!("folders that could not be opened: {}", walked.unreadable));
    }
    notes
}

/// Compiles the patterns of entries to leave out; one without a slash matches names at any depth.
fn left_out(patterns: &[String]) -> Result<GlobSet, ToolFailure> {
    let wrong = |error: globset::Error| {
        ToolFailure::new(ErrorKind::InvalidInput, format!("a pattern in `ignore` cannot be used: {error}"))
            .next("Give patterns like \"*.log\" or \"src/**/*.o\".")
    };
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        let anywhere = if pattern.contains('/') { pattern.into() } else { format!("**/{pattern}") };
        globs.add(GlobBuilder::new(&anywhere).literal_separator(true).build().map_err(wrong)?);
    }
    globs.build().map_err(wrong)
}

struct ListingVisitor {
    filter: IgnoreOptions,
    left_out: GlobSet,
}

impl Visitor for ListingVisitor {
    type Context = ActiveIgnoreRules;
    type Worker = Vec<VisitedEntry>;

    fn worker(&self) -> Vec<VisitedEntry> {
        Vec::new()
    }

    fn enter(&self, folder: &WalkFolder<'_>, above: &ActiveIgnoreRules) -> ActiveIgnoreRules {
        self.filter.enter(folder, above)
    }

    fn visit_entry(
        &self,
        met: &mut Vec<VisitedEntry>,
        entry: &WalkEntry<'_>,
        ignoring: &ActiveIgnoreRules,
    ) -> WalkControl {
        let passed_over = self.filter.skip_reason(entry, ignoring);
        // A listing without `.git` would suggest that there is none.
        let is_version_control = passed_over == Some(SkipReason::VersionControl) && self.filter.show_hidden;
        if (passed_over.is_some() && !is_version_control) || self.left_out.is_match(entry.below()) {
            return WalkControl::Skip;
        }
        let kind = match entry.kind() {
            FileKind::File => ListedEntryType::File,
            FileKind::Folder => ListedEntryType::Directory,
            FileKind::Link => ListedEntryType::Symlink,
            FileKind::Pipe | FileKind::Socket | FileKind::Device | FileKind::KernelFile => ListedEntryType::Other,
        };
        let target = (kind == ListedEntryType::Symlink).then(|| entry.link_target()).flatten();
        met.push(VisitedEntry { below: entry.below().to_path_buf(), kind, facts: entry.facts().ok(), target });
        if is_version_control { WalkControl::Skip } else { WalkControl::Continue }
    }
}

impl VisitedEntry {
    fn item(&self) -> ListedEntry {
        ListedEntry {
            name: self.name().into_owned(),
            path: unmistakable(self.below.to_string_lossy().into_owned()),
            r#type: self.kind,
            size: self.facts.filter(|_| self.kind == ListedEntryType::File).map(|facts| facts.bytes),
            mtime: self.facts.map(|facts| rfc3339(facts.modified)),
        }
    }
}
