//! The label by which rows tell of the windows that their calls went through.

use toolstead_domain::{
    labels::{LONGEST_VALUE, Labels},
    scope::Scope,
};

/// The label that names the window through which a call is made.
const WINDOW: &str = "toolstead/window";

/// The labels of a call in this scope, which its maker has likewise: they name its own windows.
pub(super) fn labels_in(scope: &Scope, of_maker: &Labels) -> Labels {
    let mut labels = of_maker.clone();
    if let Some(view) = &scope.view {
        let name = view.to_string();
        // The row goes without it where there is no room left.
        let _ = labels.set(WINDOW, &name[..name.floor_char_boundary(LONGEST_VALUE)]);
    }
    labels
}
