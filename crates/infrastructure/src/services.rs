//! External services that tools use over HTTP, one per file (`docs/guide/web.md`).
//!
//! Each is based on [`web_client`](crate::web::web_client), and receives its credentials from the port `Credentials`.

mod address;
pub mod anthropic_admin;
pub mod calendar;
mod call_marks;
mod error_message;
pub mod foreign_text;
pub mod gmail;
pub mod google;
pub mod linkedin;
mod mail_address;
mod markup;
pub mod one_line;
pub mod search;
pub mod settings;
