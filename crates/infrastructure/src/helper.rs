//! The door for child processes that are this same program.

use crate::sandbox::helper;

/// Must be the first line of `main` in every program that embeds Toolstead: some work, such as reading documents, is
/// done in a child process, and that child is this same program, started again. In such a child this function does the
/// work and never returns; else it returns at once.
///
/// A program that does not call it works, and its documents are refused with a text that says so.
///
/// ```
/// toolstead_infrastructure::helper::enter_if_helper();
/// // … and now the program's own work.
/// ```
pub fn enter_if_helper() {
    helper::enter(&[
        #[cfg(feature = "documents")]
        (crate::documents::HELPER, crate::documents::answer),
        #[cfg(feature = "schema-validation")]
        (crate::schema_validation::HELPER, crate::schema_validation::answer),
    ]);
}

pub use crate::sandbox::outliving::Outliving;

/// Ends what this program started of itself, and everything that runs confined, and returns when it is gone. For the
/// last line of `main`: nothing confined can be started afterwards. Without it the kernel does the same a moment after
/// the program's end.
pub fn end_helpers() {
    helper::end();
}
