//! Input schemas of tools, and violations of them by arguments. Compiling and validating need the feature
//! `json-schema`; the types for faults are always available.

#[cfg(feature = "json-schema")]
mod bounds;
#[cfg(feature = "json-schema")]
mod compiled_schema;
mod invalid;
#[cfg(feature = "json-schema")]
mod lengths;
#[cfg(feature = "json-schema")]
mod load;
mod nearest_name;

#[cfg(feature = "json-schema")]
pub use bounds::UnboundedCost;
#[cfg(feature = "json-schema")]
pub use compiled_schema::{ArgumentValidationError, ToolInputSchema};
pub use invalid::{FormatValidation, InvalidArguments, InvalidSchema, UnlistedViolations, Violation};
pub use nearest_name::nearest_name;
