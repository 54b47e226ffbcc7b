//! The tokenizer as both kinds of file give it: text ↔ ids, and what the ids
//! stand for.

use std::sync::Arc;

use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::{
    AddedToken, DecoderWrapper, Model, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, TokenizerBuilder, TokenizerImpl,
};

use crate::error::{quoted, Result, TextError};
use crate::piece_table::{Decoding, PieceTable, Spelling, MAX_IDS};
use crate::post_processor::Frame;
use crate::shared_model::SharedModel;

type Core = TokenizerImpl<
    SharedModel,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// What a tokenizer is built from, whichever file it came from.
pub struct Parts {
    pub model: ModelWrapper,
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    /// In the order of their ids.
    pub added: Vec<(u32, AddedToken)>,
    pub decoding: Decoding,
    /// True if added tokens spell what they stand for.
    pub added_are_literal: bool,
    pub frame: Frame,
    pub bos: Option<i32>,
    pub eos: Option<i32>,
    /// Ids after which generation ends, as far as this file knows.
    pub stop_ids: Vec<i32>,
}

pub struct Tokenizer {
    /// Recognises special tokens in the text.
    trusting: Core,
    /// The same vocabulary, but special tokens are ordinary text.
    plain: Core,
    pub pieces: PieceTable,
    pub frame: Frame,
    pub bos: Option<i32>,
    pub eos: Option<i32>,
    pub stop_ids: Vec<i32>,
}

impl Tokenizer {
    pub fn new(parts: Parts) -> Result<Self> {
        let spellings = spellings_of(&parts)?;
        let pieces = PieceTable::build(&spellings, &parts.decoding)?;
        if pieces.len() == 0 {
            return Err(TextError::file("the vocabulary is empty"));
        }
        check_named_ids(&parts, &pieces)?;
        let trusting = build_core(
            parts.model,
            parts.normalizer,
            parts.pre_tokenizer,
            &parts.added,
        )?;
        let mut plain = trusting.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self {
            trusting,
            plain,
            pieces,
            frame: parts.frame,
            bos: parts.bos,
            eos: parts.eos,
            stop_ids: parts.stop_ids,
        })
    }

    /// The ids of `text` alone; the caller adds `frame`.
    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<i32>> {
        let core = match parse_special {
            true => &self.trusting,
            false => &self.plain,
        };
        let encoding = core
            .encode_fast(text, false)
            .map_err(|e| TextError::argument(format!("can't encode the text: {e}")))?;
        let ids = encoding.get_ids().iter().map(|&id| id as i32);
        Ok(ids.collect())
    }

    pub fn token_to_id(&self, token: &str) -> Option<i32> {
        self.trusting.token_to_id(token).map(|id| id as i32)
    }

    pub fn id_to_token(&self, id: i32) -> Option<String> {
        self.trusting.id_to_token(u32::try_from(id).ok()?)
    }
}

fn spellings_of(parts: &Parts) -> Result<Vec<Spelling>> {
    let added_ids: ahash::AHashSet<u32> = parts.added.iter().map(|(id, _)| *id).collect();
    let mut spellings: Vec<Spelling> = parts
        .model
        .get_vocab()
        .into_iter()
        .filter(|(_, id)| !added_ids.contains(id))
        .map(|(text, id)| Spelling {
            id,
            text,
            literal: false,
            special: false,
        })
        .collect();
    spellings.sort_unstable_by(|a, b| (a.id, &a.text).cmp(&(b.id, &b.text)));
    if let Some(pair) = spellings.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(TextError::file(format!(
            "tokens {} and {} share the id {}",
            quoted(&pair[0].text),
            quoted(&pair[1].text),
            pair[0].id
        )));
    }
    spellings.extend(parts.added.iter().map(|(id, token)| Spelling {
        id: *id,
        text: token.content.clone(),
        literal: parts.added_are_literal,
        special: token.special,
    }));
    Ok(spellings)
}

fn check_named_ids(parts: &Parts, pieces: &PieceTable) -> Result<()> {
    let named = [("bos", parts.bos), ("eos", parts.eos)];
    for (name, id) in named {
        if id.is_some_and(|id| !pieces.is_present(id)) {
            return Err(TextError::file(format!(
                "{name} token id {} is outside the vocabulary of {}",
                id.unwrap_or(-1),
                pieces.len()
            )));
        }
    }
    for id in parts.frame.prefix.iter().chain(&parts.frame.suffix) {
        if !pieces.is_present(*id) {
            return Err(TextError::file(format!(
                "token id {id}, put around each text, is outside the vocabulary of {}",
                pieces.len()
            )));
        }
    }
    Ok(())
}

fn build_core(
    model: ModelWrapper,
    normalizer: Value,
    pre_tokenizer: Value,
    added: &[(u32, AddedToken)],
) -> Result<Core> {
    debug_assert!(added.len() <= MAX_IDS);
    let normalizer: Option<NormalizerWrapper> = serde_json::from_value(normalizer)
        .map_err(|e| TextError::file(format!("tokenizer.json: normalizer: {e}")))?;
    let pre_tokenizer: Option<PreTokenizerWrapper> = serde_json::from_value(pre_tokenizer)
        .map_err(|e| TextError::file(format!("tokenizer.json: pre_tokenizer: {e}")))?;
    let mut core: Core = TokenizerBuilder::new()
        .with_model(SharedModel(Arc::new(model)))
        .with_normalizer(normalizer)
        .with_pre_tokenizer(pre_tokenizer)
        .build()
        .map_err(|e| TextError::file(format!("tokenizer: {e}")))?;
    core.add_tokens(added.iter().map(|(_, token)| token.clone()))
        .map_err(|e| TextError::file(format!("added tokens: {e}")))?;
    for (id, token) in added {
        let given = core.token_to_id(&token.content);
        if given != Some(*id) {
            return Err(TextError::file(format!(
                "added token {} has the id {id}, but its place in the vocabulary is {given:?}",
                quoted(&token.content)
            )));
        }
    }
    Ok(core)
}
