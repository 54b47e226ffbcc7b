//! The C ABI. Every function catches panics, returns a code (0 is success) and
//! on failure leaves an owned message in `error`. Nothing unwinds into C++.

use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::chat_template::{ChatRequest, ChatTemplate};
use crate::error::{Code, Result, TextError};
use crate::gguf::{tokenizer_from_gguf, Vocabulary};
use crate::stop_ids::stop_ids;
use crate::template_source::{choose_template, TemplateSources};
use crate::tokenizer::Tokenizer;
use crate::tokenizer_json::tokenizer_from_json;

pub const SHEAVE_TEXT_OK: i32 = 0;
pub const SHEAVE_TEXT_INVALID_ARGUMENT: i32 = 1;
pub const SHEAVE_TEXT_NOT_FOUND: i32 = 2;
pub const SHEAVE_TEXT_INVALID_FILE: i32 = 3;
pub const SHEAVE_TEXT_UNSUPPORTED: i32 = 4;
pub const SHEAVE_TEXT_INTERNAL: i32 = 5;

/// Stands for an optional id or flag that isn't given.
pub const SHEAVE_TEXT_NONE: i64 = i64::MIN;

pub const SHEAVE_PIECE_PRESENT: u8 = 1;
pub const SHEAVE_PIECE_SPECIAL: u8 = 2;
const _: () = assert!(SHEAVE_PIECE_PRESENT == crate::piece_table::PIECE_PRESENT);
const _: () = assert!(SHEAVE_PIECE_SPECIAL == crate::piece_table::PIECE_SPECIAL);

/// Bytes that the caller owns and keeps alive during the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SheaveSlice {
    /// May be null if `len` is 0.
    pub data: *const u8,
    pub len: usize,
}

/// Bytes that the receiver owns: give them to sheave_bytes_free once.
#[repr(C)]
pub struct SheaveBytes {
    pub data: *mut u8,
    pub len: usize,
}

/// Token ids that the receiver owns: give them to sheave_ids_free once.
#[repr(C)]
pub struct SheaveIds {
    pub data: *mut i32,
    pub len: usize,
}

/// `tokenizer.ggml.*` of a GGUF file. Counts are in `_count`; optional numbers
/// are SHEAVE_TEXT_NONE where the file has none.
#[repr(C)]
pub struct SheaveGgufVocabulary {
    pub model: SheaveSlice,
    pub pre: SheaveSlice,
    pub tokens: *const SheaveSlice,
    pub token_count: usize,
    pub scores: *const f32,
    pub score_count: usize,
    pub token_types: *const i32,
    pub token_type_count: usize,
    pub merges: *const SheaveSlice,
    pub merge_count: usize,
    pub bos: i64,
    pub eos: i64,
    pub eot: i64,
    pub unk: i64,
    pub pad: i64,
    pub add_bos: i64,
    pub add_eos: i64,
    pub add_space_prefix: i64,
}

/// What a tokenizer knows; every pointer lives as long as the tokenizer.
#[repr(C)]
pub struct SheaveTokenizerFacts {
    /// The bytes of id i are `piece_bytes[piece_offsets[i] .. piece_offsets[i + 1]]`.
    pub piece_bytes: *const u8,
    pub piece_offsets: *const u32,
    /// SHEAVE_PIECE_* for each id.
    pub piece_flags: *const u8,
    pub vocab_size: usize,
    /// Ids that go before and after a text.
    pub prefix: *const i32,
    pub prefix_len: usize,
    pub suffix: *const i32,
    pub suffix_len: usize,
    /// -1 if there is none.
    pub bos: i32,
    pub eos: i32,
    /// True if decoding drops one space at the start of the text.
    pub strip_leading_space: bool,
}

/// Where a chat template may come from; empty where there is none.
#[repr(C)]
pub struct SheaveTemplateSources {
    pub jinja_file: SheaveSlice,
    pub tokenizer_config_json: SheaveSlice,
    pub gguf: SheaveSlice,
    pub gguf_tool_use: SheaveSlice,
}

/// One conversation to render.
#[repr(C)]
pub struct SheaveChatRequest {
    pub messages_json: SheaveSlice,
    pub tools_json: SheaveSlice,
    pub extra_json: SheaveSlice,
    pub add_generation_prompt: bool,
    /// Unix seconds, or SHEAVE_TEXT_NONE for the clock.
    pub now_s: i64,
}

/// Opaque.
pub struct SheaveTokenizer(Tokenizer);

/// Opaque.
pub struct SheaveTemplate(ChatTemplate);

/// Reads tokenizer.json and, unless empty, tokenizer_config.json.
///
/// # Safety
/// `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_from_json(
    tokenizer_json: SheaveSlice,
    tokenizer_config_json: SheaveSlice,
    out: *mut *mut SheaveTokenizer,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::InvalidFile, error, || {
        let json = text("tokenizer.json", tokenizer_json)?;
        let config = text("tokenizer_config.json", tokenizer_config_json)?;
        let tokenizer = tokenizer_from_json(json, config)?;
        *out = Box::into_raw(Box::new(SheaveTokenizer(tokenizer)));
        Ok(())
    })
}

/// Builds a tokenizer from a GGUF file's metadata.
///
/// # Safety
/// Each array of `vocabulary` holds as many elements as its count says; `out`
/// and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_from_gguf(
    vocabulary: *const SheaveGgufVocabulary,
    out: *mut *mut SheaveTokenizer,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::InvalidFile, error, || {
        let source = &*vocabulary;
        let vocabulary = Vocabulary {
            model: bytes(source.model),
            pre: bytes(source.pre),
            tokens: slices(source.tokens, source.token_count),
            scores: array(source.scores, source.score_count),
            token_types: array(source.token_types, source.token_type_count),
            merges: slices(source.merges, source.merge_count),
            bos: optional_id("bos", source.bos)?,
            eos: optional_id("eos", source.eos)?,
            eot: optional_id("eot", source.eot)?,
            unk: optional_id("unk", source.unk)?,
            pad: optional_id("pad", source.pad)?,
            add_bos: optional_flag(source.add_bos),
            add_eos: optional_flag(source.add_eos),
            add_space_prefix: optional_flag(source.add_space_prefix),
        };
        let tokenizer = tokenizer_from_gguf(&vocabulary)?;
        *out = Box::into_raw(Box::new(SheaveTokenizer(tokenizer)));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is null or came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_free(tokenizer: *mut SheaveTokenizer) {
    free(tokenizer);
}

/// The borrowed facts about a tokenizer.
///
/// # Safety
/// `tokenizer` is alive; `out` points to a writable place.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_facts(
    tokenizer: *const SheaveTokenizer,
    out: *mut SheaveTokenizerFacts,
) {
    let tokenizer = &(*tokenizer).0;
    let pieces = &tokenizer.pieces;
    *out = SheaveTokenizerFacts {
        piece_bytes: pieces.bytes.as_ptr(),
        piece_offsets: pieces.offsets.as_ptr(),
        piece_flags: pieces.flags.as_ptr(),
        vocab_size: pieces.len(),
        prefix: tokenizer.frame.prefix.as_ptr(),
        prefix_len: tokenizer.frame.prefix.len(),
        suffix: tokenizer.frame.suffix.as_ptr(),
        suffix_len: tokenizer.frame.suffix.len(),
        bos: tokenizer.bos.unwrap_or(-1),
        eos: tokenizer.eos.unwrap_or(-1),
        strip_leading_space: pieces.strip_leading_space,
    };
}

/// The ids of `text` alone, without prefix and suffix. Special tokens in the
/// text are ordinary text unless `parse_special`.
///
/// # Safety
/// `tokenizer` is alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_encode(
    tokenizer: *const SheaveTokenizer,
    input: SheaveSlice,
    parse_special: bool,
    out: *mut SheaveIds,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::Internal, error, || {
        let input = text("the text", input)?;
        *out = owned_ids((*tokenizer).0.encode(input, parse_special)?);
        Ok(())
    })
}

/// `out` becomes -1 if there is no such token.
///
/// # Safety
/// `tokenizer` is alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_token_to_id(
    tokenizer: *const SheaveTokenizer,
    token: SheaveSlice,
    out: *mut i32,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::Internal, error, || {
        let token = std::str::from_utf8(bytes(token)).ok();
        let id = token.and_then(|token| (*tokenizer).0.token_to_id(token));
        *out = id.unwrap_or(-1);
        Ok(())
    })
}

/// The token as the vocabulary spells it; SHEAVE_TEXT_NOT_FOUND if there is
/// none of that id.
///
/// # Safety
/// `tokenizer` is alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_id_to_token(
    tokenizer: *const SheaveTokenizer,
    id: i32,
    out: *mut SheaveBytes,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::Internal, error, || {
        let token = (*tokenizer).0.id_to_token(id);
        let token = token
            .ok_or_else(|| TextError::new(Code::NotFound, format!("no token has the id {id}")))?;
        *out = owned_bytes(token.into_bytes());
        Ok(())
    })
}

/// The ids that end generation, in ascending order; each JSON may be empty.
///
/// # Safety
/// `tokenizer` is alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_tokenizer_stop_ids(
    tokenizer: *const SheaveTokenizer,
    generation_config_json: SheaveSlice,
    config_json: SheaveSlice,
    out: *mut SheaveIds,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::InvalidFile, error, || {
        let generation = text("generation_config.json", generation_config_json)?;
        let config = text("config.json", config_json)?;
        *out = owned_ids(stop_ids(&(*tokenizer).0, generation, config)?);
        Ok(())
    })
}

/// The source of the model's chat template; SHEAVE_TEXT_NOT_FOUND if it has none.
///
/// # Safety
/// `sources` is alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_template_choose(
    sources: *const SheaveTemplateSources,
    for_tools: bool,
    out: *mut SheaveBytes,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::InvalidFile, error, || {
        let sources = &*sources;
        let sources = TemplateSources {
            jinja_file: text("chat_template.jinja", sources.jinja_file)?,
            tokenizer_config_json: text("tokenizer_config.json", sources.tokenizer_config_json)?,
            gguf: text("tokenizer.chat_template", sources.gguf)?,
            gguf_tool_use: text("tokenizer.chat_template.tool_use", sources.gguf_tool_use)?,
        };
        *out = owned_bytes(choose_template(&sources, for_tools)?.into_bytes());
        Ok(())
    })
}

/// Compiles a chat template and tries out which messages it takes.
///
/// # Safety
/// `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_template_new(
    source: SheaveSlice,
    bos_token: SheaveSlice,
    eos_token: SheaveSlice,
    out: *mut *mut SheaveTemplate,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::InvalidFile, error, || {
        let source = text("the chat template", source)?;
        let bos = text("bos_token", bos_token)?;
        let eos = text("eos_token", eos_token)?;
        let template = ChatTemplate::new(source, bos, eos)?;
        *out = Box::into_raw(Box::new(SheaveTemplate(template)));
        Ok(())
    })
}

/// # Safety
/// `template_` is null or came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn sheave_template_free(template_: *mut SheaveTemplate) {
    free(template_);
}

/// Renders a conversation.
///
/// # Safety
/// `template_` and `request` are alive; `out` and `error` point to writable places.
#[no_mangle]
pub unsafe extern "C" fn sheave_template_render(
    template_: *const SheaveTemplate,
    request: *const SheaveChatRequest,
    out: *mut SheaveBytes,
    error: *mut SheaveBytes,
) -> i32 {
    guard(Code::Internal, error, || {
        let request = &*request;
        let request = ChatRequest {
            messages: text("messages", request.messages_json)?,
            tools: text("tools", request.tools_json)?,
            extra: text("extra", request.extra_json)?,
            add_generation_prompt: request.add_generation_prompt,
            now_s: Some(request.now_s).filter(|&now| now != SHEAVE_TEXT_NONE),
        };
        *out = owned_bytes((*template_).0.render(&request)?.into_bytes());
        Ok(())
    })
}

/// # Safety
/// `bytes` came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn sheave_bytes_free(bytes: SheaveBytes) {
    if !bytes.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            bytes.data, bytes.len,
        )));
    }
}

/// # Safety
/// `ids` came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn sheave_ids_free(ids: SheaveIds) {
    if !ids.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            ids.data, ids.len,
        )));
    }
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are reported through `error`, never on stderr. The hook is this
/// archive's own: no other Rust code runs in the process.
fn silence_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let message = info.to_string();
            LAST_PANIC.with(|last| *last.borrow_mut() = message);
        }));
    });
}

/// `on_panic` is the code of a panic: files are read by crates that index
/// where they should check, so there a panic means a broken file.
unsafe fn guard(on_panic: Code, error: *mut SheaveBytes, body: impl FnOnce() -> Result<()>) -> i32 {
    silence_panics();
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        drop(catch_unwind(AssertUnwindSafe(move || drop(payload))));
        let message = LAST_PANIC.with(|last| last.take());
        Err(TextError::new(
            on_panic,
            format!("unexpected content: {message}"),
        ))
    });
    match outcome {
        Ok(()) => SHEAVE_TEXT_OK,
        Err(failure) => {
            *error = owned_bytes(one_line(&failure.message).into_bytes());
            failure.code as i32
        }
    }
}

fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len().min(1024));
    for c in message.chars().take(1000) {
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        let owned = Box::from_raw(pointer);
        drop(catch_unwind(AssertUnwindSafe(move || drop(owned))));
    }
}

unsafe fn array<'a, T>(data: *const T, len: usize) -> &'a [T] {
    match len {
        0 => &[],
        _ => std::slice::from_raw_parts(data, len),
    }
}

unsafe fn bytes<'a>(slice: SheaveSlice) -> &'a [u8] {
    array(slice.data, slice.len)
}

unsafe fn slices<'a>(data: *const SheaveSlice, len: usize) -> Vec<&'a [u8]> {
    array(data, len).iter().map(|slice| bytes(*slice)).collect()
}

unsafe fn text<'a>(what: &str, slice: SheaveSlice) -> Result<&'a str> {
    std::str::from_utf8(bytes(slice)).map_err(|e| {
        TextError::argument(format!("{what} isn't UTF-8 (at byte {})", e.valid_up_to()))
    })
}

fn optional_id(name: &str, id: i64) -> Result<Option<i32>> {
    if id == SHEAVE_TEXT_NONE {
        return Ok(None);
    }
    i32::try_from(id)
        .map(Some)
        .map_err(|_| TextError::file(format!("{name} token id {id} is out of range")))
}

fn optional_flag(flag: i64) -> Option<bool> {
    (flag != SHEAVE_TEXT_NONE).then_some(flag != 0)
}

fn owned_bytes(bytes: Vec<u8>) -> SheaveBytes {
    let len = bytes.len();
    SheaveBytes {
        data: Box::into_raw(bytes.into_boxed_slice()).cast(),
        len,
    }
}

fn owned_ids(ids: Vec<i32>) -> SheaveIds {
    let len = ids.len();
    SheaveIds {
        data: Box::into_raw(ids.into_boxed_slice()).cast(),
        len,
    }
}
