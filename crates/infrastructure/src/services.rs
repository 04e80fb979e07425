//! Services of others that tools speak to over HTTP, one a file (`docs/web.md`).
//!
//! Each stands on [`web::reach`](crate::web::reach) and gets what says on whose behalf it asks from the port `Credentials`.

mod address;
pub mod anthropic_admin;
pub mod calendar;
mod call_marks;
pub mod foreign_text;
pub mod gmail;
pub mod google;
pub mod linkedin;
mod mail_address;
mod markup;
pub mod one_line;
mod said;
pub mod search;
pub mod settings;
