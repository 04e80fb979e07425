//! Services of others that tools speak to over HTTP, one a file (`docs/web.md`).
//!
//! Each stands on [`web::reach`](crate::web::reach) and gets what says on whose behalf it asks from the port `Credentials`.

mod address;
pub mod google;
pub mod linkedin;
mod markup;
mod one_line;
mod retry_after;
pub mod search;
pub mod settings;
