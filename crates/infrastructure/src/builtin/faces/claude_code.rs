//! The faces of Claude Code.

use super::Faces;

/// Each under the name that its tool has there.
pub(super) const FACES: Faces = &[];
