//! Pages of several kinds as text, and pages that mean harm.
