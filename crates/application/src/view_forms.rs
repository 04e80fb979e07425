//! The forms in which views show tools.

use crate::tool_registry::SharedRegisteredTool;
use std::sync::Arc;
use toolstead_domain::{InvalidOverlay, RequestScope};

/// Returns the tool as the views of the scope show it: the tool itself if no view changes it, and `None` if a view
/// cannot show it.
pub(crate) fn shown(scope: &RequestScope, registered: &SharedRegisteredTool) -> Option<SharedRegisteredTool> {
    match form(scope, registered) {
        Ok(form) => form,
        Err(error) => {
            tracing::warn!(%error, "a view does not show the tool `{}`", registered.own.name());
            None
        }
    }
}

/// Returns the tool as the views of the scope show it; `None` if its name refers to another tool in a view.
///
/// # Errors
/// [`InvalidOverlay`] if an overlay does not fit the definition of the tool.
pub(crate) fn form(
    scope: &RequestScope,
    registered: &SharedRegisteredTool,
) -> Result<Option<SharedRegisteredTool>, InvalidOverlay> {
    let own = &registered.own;
    if scope.contents().any(|(_, content)| content.replaces(own)) {
        return Ok(None);
    }
    let overlays: Vec<_> = scope.overlays_of(own).map(|(_, overlay)| overlay).collect();
    let Some(outermost) = overlays.last() else { return Ok(Some(registered.clone())) };
    overlays.iter().try_for_each(|overlay| overlay.check(own))?;
    let others = overlays.iter().rev().skip(1);
    let tool = others.fold(own.with_overlay(outermost), |tool, overlay| tool.with_overlay(overlay));
    Ok(Some(Arc::new(registered.shown_as(tool))))
}

/// Returns `true` if a view of the scope changes the tool.
pub(crate) fn is_changed(scope: &RequestScope, registered: &SharedRegisteredTool) -> bool {
    scope.overlays_of(&registered.own).next().is_some()
}
