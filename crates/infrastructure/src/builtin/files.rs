//! Files: how their content is read and recognised, and how they are changed and restored.

pub(crate) mod appending;
pub(crate) mod change_set;
pub(crate) mod content;
pub(crate) mod content_sample;
pub(crate) mod etag;
pub(crate) mod file_filter;
pub mod file_limits;
pub(crate) mod file_uri;
pub(crate) mod image_view;
pub(crate) mod listing;
pub(crate) mod read_state;
pub(crate) mod reverting;
mod run_files;
pub(crate) mod sniff;
pub(crate) mod source;
pub(crate) mod written_file;
