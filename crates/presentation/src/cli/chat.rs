//! `toolstead chat`.

mod inputs;
mod line_editor;
mod wish;
