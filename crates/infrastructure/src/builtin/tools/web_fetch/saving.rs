//! Saves the response as a file of the workspace, byte by byte. The change is in the journal, so that `undo` reverts
//! it.

use super::{Input, fetching::FetchedPage, reading::ResponseContent};
use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, recording::ChangeRecorder},
            written_file::only,
        },
        tool_kit::{tool_context::ToolContext, tool_environment::ToolEnvironment},
        web::web_address::{host, web_address},
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, write::WriteOptions},
};
use toolstead_domain::{Access, AccessPath, ToolFailure, error_kind::ErrorKind};
use url::Url;

const FOLDER: &str = "web-archives";
const NEW: WriteOptions = WriteOptions { create_folders: true, overwrite: false, mode: None };
/// Maximum number of names that are tried for a file in a folder: its own, and the same with a number.
const MAX_NAMESAKES: usize = 1_000;
const MAX_NAME: usize = 100;
const MAX_ENDING: usize = 8;

/// File extensions by a part of the media type, for addresses without an extension. The first match counts.
const ENDINGS: &[(&str, &str)] = &[
    ("javascript", "js"),
    ("json", "json"),
    ("xml", "xml"),
    ("yaml", "yaml"),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("application/pdf", "pdf"),
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("application/zip", "zip"),
    ("text/", "txt"),
];

/// Returns the write access that saving requires: to the file, or to the folder for the host. Returns `None` if nothing
/// is to be saved.
pub(super) async fn access(input: &Input, url: &Url, world: &ToolEnvironment) -> Result<Option<Access>, ToolFailure> {
    Ok(match &input.save_as {
        Some(path) => Some(Access::WritePath(world.access(path).await?)),
        None if input.save || input.save_text => {
            Some(Access::WritePath(AccessPath { tree: true, ..world.access(&folder(url)).await? }))
        }
        None => None,
    })
}

/// Saves the response if the caller requests it, and returns the displayed path. Returns `None` if it is not requested
/// or the response is empty.
pub(super) async fn save(
    input: &Input,
    fetched: &FetchedPage,
    read: &ResponseContent,
    run: &ToolContext<'_>,
) -> Result<Option<String>, ToolFailure> {
    let is_text = || matches!(read, ResponseContent::Text(text) if !text.is_page);
    let is_wanted = input.save_as.is_some() || input.save || (input.save_text && is_text());
    if !is_wanted || fetched.answer.body.is_empty() {
        return Ok(None);
    }
    if fetched.answer.is_cut {
        let message = format!("`{}` is larger than 5 MiB, the maximum", fetched.answer.url);
        return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Nothing was saved."));
    }
    let (recording, body) = (ChangeRecorder::of(run), fetched.answer.body.to_vec());
    let path = input.save_as.clone();
    // The folder is that of the host which was checked.
    let url = web_address(&input.url)?;
    let (stem, ending) = file_name(&fetched.answer.url, &fetched.media_type());
    let shown = run.on_files(move |files| match path {
        Some(path) => save_as(files, &path, body, &recording),
        None => save_among(files, &folder(&url), &stem, &ending, body, &recording),
    });
    shown.await.map(Some)
}

fn save_as(
    files: &GrantedWorkspace,
    path: &str,
    body: Vec<u8>,
    recording: &ChangeRecorder,
) -> Result<String, ToolFailure> {
    let mut set = ChangeSet::take(files, &[path])?;
    if set.size(0).is_some() {
        let message = format!("`{}` exists, and `save_as` only creates new files", set.shown(0));
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Nothing was saved; give another name."));
    }
    set.put(0, body, NEW);
    Ok(only(set.commit(recording, false)?)?.shown)
}

/// Saves the response under the first name that is free, and returns the displayed path. If a name before that has the
/// same content already, returns that path and writes nothing.
fn save_among(
    files: &GrantedWorkspace,
    folder: &str,
    stem: &str,
    ending: &str,
    body: Vec<u8>,
    recording: &ChangeRecorder,
) -> Result<String, ToolFailure> {
    for number in 0..MAX_NAMESAKES {
        let behind = if number == 0 { String::new() } else { format!("_{number}") };
        let mut set = ChangeSet::take(files, &[&format!("{folder}/{stem}{behind}.{ending}")])?;
        match set.size(0) {
            None => {
                set.put(0, body, NEW);
                return Ok(only(set.commit(recording, false)?)?.shown);
            }
            Some(size) if size == body.len() as u64 => {
                if set.content(0, recording.limit()).is_ok_and(|known| known.as_deref() == Some(&body[..])) {
                    return Ok(set.shown(0).to_owned());
                }
            }
            Some(_) => {}
        }
    }
    let message = format!("`{folder}` has {MAX_NAMESAKES} files named like `{stem}.{ending}`");
    Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Give another name with `save_as`."))
}

fn folder(url: &Url) -> String {
    format!("{FOLDER}/{}", plain(host(url).trim_matches(['[', ']'])))
}

/// Returns the name and the extension of the file: from the address, or else from the host and the media type.
fn file_name(url: &Url, media_type: &str) -> (String, String) {
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    let (stem, ending) = match last.rsplit_once('.') {
        Some((stem, ending)) if is_ending(ending) => (stem, Some(ending.to_ascii_lowercase())),
        _ => (last, None),
    };
    let stem = plain(stem);
    let stem = stem.trim_matches(['.', '_', '-']);
    let stem = if stem.is_empty() { plain(host(url)).replace('.', "_") } else { stem.to_owned() };
    let known = || ENDINGS.iter().find(|(part, _)| media_type.contains(part)).map_or("bin", |(_, ending)| ending);
    (stem.chars().take(MAX_NAME).collect(), ending.unwrap_or_else(|| known().to_owned()))
}

fn is_ending(text: &str) -> bool {
    (1..=MAX_ENDING).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Replaces everything except ASCII letters, digits, `.`, `-` and `_` by `_`, so that a file system accepts the text as
/// a name that leads to no other folder.
fn plain(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
    text.chars().map(|char| if is_plain(char) { char } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_file_names_derive_from_the_url_and_cannot_escape_the_folder() {
        for (url, media_type, expected) in [
            ("https://a.example/b/main.rs", "text/plain", "web-archives/a.example/main.rs"),
            ("https://a.example/api/items?page=2", "application/json", "web-archives/a.example/items.json"),
            ("https://a.example/", "text/html", "web-archives/a.example/a_example.html"),
            ("https://a.example/x.tar.gz", "", "web-archives/a.example/x.tar.gz"),
            ("https://a.example/.env", "text/plain", "web-archives/a.example/a_example.env"),
            ("https://a.example/a%2F..%2F..%2Fb", "", "web-archives/a.example/a_2F.._2F.._2Fb.bin"),
            ("https://a.example/data.very-long-ending", "text/csv", "web-archives/a.example/data.very-long-ending.csv"),
            ("http://[::1]:8080/a.JSON", "", "web-archives/__1/a.json"),
        ] {
            let url: Url = url.parse().unwrap();
            let (stem, ending) = file_name(&url, media_type);
            assert_eq!(format!("{}/{stem}.{ending}", folder(&url)), expected);
        }
    }
}
