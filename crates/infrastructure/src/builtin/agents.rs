//! Plans of sessions, requests to models and their cached answers, and questions to the user.

pub(in crate::builtin) mod image_answer_cache;
pub(in crate::builtin) mod model_answer;
pub(in crate::builtin) mod plans_in_memory;
pub mod question_form;
