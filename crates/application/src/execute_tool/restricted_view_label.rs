//! The label of audit records that names the restricted view of a call.

use toolstead_domain::{CallLabels, RequestScope, labels::LONGEST_VALUE};

/// Label with the name of the restricted view through which a call is made.
const WINDOW: &str = "toolstead/window";

/// Returns the labels of a call in this scope: those of the calling call, and the name of the scope's own restricted
/// view.
pub(super) fn labels_in(scope: &RequestScope, of_maker: &CallLabels) -> CallLabels {
    let mut labels = of_maker.clone();
    if let Some(view) = &scope.view {
        let name = view.to_string();
        // If the label limit is reached, the record has no such label.
        let _ = labels.set(WINDOW, &name[..name.floor_char_boundary(LONGEST_VALUE)]);
    }
    labels
}
