//! Tokenizers and chat templates behind a C ABI.
//!
//! Everything that crosses the boundary is in [`ffi`]; the other modules are
//! plain Rust and know nothing of C.

mod chat_shape;
mod chat_template;
mod error;
pub mod ffi;
mod gguf;
mod piece_table;
mod post_processor;
mod pre_tokenizer;
mod python_json;
mod python_methods;
mod shared_model;
mod stop_ids;
mod template_limits;
mod template_source;
mod tokenizer;
mod tokenizer_json;
