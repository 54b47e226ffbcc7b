//! Builds a tokenizer from the metadata of a GGUF file.

use ahash::AHashMap;
use serde_json::{json, Value};
use tokenizers::models::bpe::{BpeBuilder, Merges};
use tokenizers::models::ModelWrapper;
use tokenizers::AddedToken;

use crate::error::{quoted, Result, TextError};
use crate::piece_table::{Decoding, MAX_IDS};
use crate::post_processor::Frame;
use crate::pre_tokenizer::{pre_tokenizer, PreTokenizer};
use crate::stop_ids::known_stop_ids;
use crate::tokenizer::{Parts, Tokenizer};

/// `tokenizer.ggml.*`, as found in the file and not yet checked.
#[derive(Default)]
pub struct Vocabulary<'a> {
    pub model: &'a [u8],
    pub pre: &'a [u8],
    pub tokens: Vec<&'a [u8]>,
    pub scores: &'a [f32],
    pub token_types: &'a [i32],
    pub merges: Vec<&'a [u8]>,
    pub bos: Option<i32>,
    pub eos: Option<i32>,
    pub eot: Option<i32>,
    pub unk: Option<i32>,
    pub pad: Option<i32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
}

/// The values of `tokenizer.ggml.token_type`.
pub mod token_type {
    pub const NORMAL: i32 = 1;
    pub const UNKNOWN: i32 = 2;
    pub const CONTROL: i32 = 3;
    pub const USER_DEFINED: i32 = 4;
}

/// Deriving merges takes a token's length squared; no vocabulary in use has a
/// token a quarter as long.
const MAX_TOKEN_BYTES: usize = 1024;
/// Four times the largest vocabulary in use; the worst one takes 3 s to load.
const MAX_TEXT_BYTES: usize = 16 << 20;

pub fn tokenizer_from_gguf(vocabulary: &Vocabulary) -> Result<Tokenizer> {
    let checked = Checked::new(vocabulary)?;
    match vocabulary.model {
        b"gpt2" => checked.byte_level_bpe(),
        b"llama" => checked.sentence_piece(),
        other => Err(TextError::unsupported(format!(
            "tokenizer.ggml.model {} isn't one that Sheave knows",
            quoted(&String::from_utf8_lossy(other))
        ))),
    }
}

/// A vocabulary whose texts are UTF-8, unique, and whose ids are in range.
struct Checked<'a> {
    source: &'a Vocabulary<'a>,
    tokens: Vec<String>,
    merges: Vec<&'a str>,
}

impl<'a> Checked<'a> {
    fn new(source: &'a Vocabulary<'a>) -> Result<Self> {
        check_counts(source)?;
        let checked = Self {
            source,
            tokens: checked_tokens(&source.tokens)?,
            merges: checked_texts("merge", &source.merges)?,
        };
        for (name, id) in [
            ("bos", source.bos),
            ("eos", source.eos),
            ("eot", source.eot),
            ("unk", source.unk),
            ("pad", source.pad),
        ] {
            checked.check_id(name, id)?;
        }
        Ok(checked)
    }

    fn check_id(&self, name: &str, id: Option<i32>) -> Result<()> {
        match id {
            Some(id) if usize::try_from(id).map_or(true, |id| id >= self.tokens.len()) => {
                Err(TextError::file(format!(
                    "{name} token id {id} is outside the vocabulary of {}",
                    self.tokens.len()
                )))
            }
            _ => Ok(()),
        }
    }

    fn kind(&self, id: usize) -> i32 {
        let kind = self.source.token_types.get(id);
        kind.copied().unwrap_or(token_type::NORMAL)
    }

    fn byte_level_bpe(&self) -> Result<Tokenizer> {
        let pre = std::str::from_utf8(self.source.pre)
            .map_err(|_| TextError::file("tokenizer.ggml.pre isn't UTF-8"))?;
        let PreTokenizer {
            pre_tokenizer,
            normalizer,
            ignore_merges,
            add_bos,
        } = pre_tokenizer(pre)?;
        let vocab = number(self.tokens.iter().cloned());
        let merges = self.written_merges(&vocab)?;
        let model = BpeBuilder::new()
            .vocab_and_merges(vocab, merges)
            .ignore_merges(ignore_merges)
            .build()
            .map_err(|e| TextError::file(format!("tokenizer.ggml.merges: {e}")))?;
        self.finish(Recipe {
            model: ModelWrapper::BPE(model),
            normalizer,
            pre_tokenizer,
            decoding: Decoding::ByteLevel,
            bos: self.source.bos,
            eos: self.source.eos,
            add_bos: add_bos && self.source.bos.is_some(),
        })
    }

    /// Each merge is two tokens around the first space that isn't at the front.
    fn written_merges(&self, vocab: &AHashMap<String, u32>) -> Result<Merges> {
        let mut merges = Merges::with_capacity(self.merges.len());
        for (index, merge) in self.merges.iter().enumerate() {
            let broken =
                |what: &str| TextError::file(format!("merge {index} ({}) {what}", quoted(merge)));
            let space = merge.bytes().skip(1).position(|b| b == b' ');
            let space = space.ok_or_else(|| broken("isn't two tokens"))? + 1;
            let (left, right) = (&merge[..space], &merge[space + 1..]);
            for part in [left, right, &[left, right].concat()] {
                if !vocab.contains_key(part) {
                    return Err(broken("is of a token that isn't in the vocabulary"));
                }
            }
            merges.push((left.into(), right.into()));
        }
        Ok(merges)
    }

    fn sentence_piece(&self) -> Result<Tokenizer> {
        if self.source.scores.len() != self.tokens.len() {
            return Err(TextError::file(format!(
                "{} scores for {} tokens",
                self.source.scores.len(),
                self.tokens.len()
            )));
        }
        let space_prefix = self.source.add_space_prefix.unwrap_or(true);
        let keys: Vec<String> = (0..self.tokens.len())
            .map(|id| self.piece_key(id))
            .collect();
        let merges = self.derived_merges(&keys)?;
        let mut builder = BpeBuilder::new()
            .vocab_and_merges(number(keys.into_iter()), merges)
            .fuse_unk(true)
            .byte_fallback(true);
        // SentencePiece's own numbers, for files that don't give them.
        let default_id = |id: i32| Some(id).filter(|&id| (id as usize) < self.tokens.len());
        if let Some(unk) = self.source.unk.or(default_id(0)) {
            builder = builder.unk_token(self.piece_key(unk as usize));
        }
        let model = builder
            .build()
            .map_err(|e| TextError::file(format!("tokenizer.ggml.tokens: {e}")))?;
        self.finish(Recipe {
            model: ModelWrapper::BPE(model),
            normalizer: piece_normalizer(space_prefix),
            pre_tokenizer: Value::Null,
            decoding: Decoding::sentence_piece(space_prefix),
            bos: self.source.bos.or(default_id(1)),
            eos: self.source.eos.or(default_id(2)),
            add_bos: true,
        })
    }

    /// Spaces are ▁ inside the vocabulary, but not in tokens that are matched
    /// in the raw text.
    fn piece_key(&self, id: usize) -> String {
        match self.kind(id) {
            token_type::NORMAL => self.tokens[id].replace(' ', "▁"),
            _ => self.tokens[id].clone(),
        }
    }

    /// SentencePiece has no merges: it joins the neighbours whose joint token
    /// scores highest. So every way to halve a token into two tokens is a
    /// merge, ranked by the token's score; of one token's halvings, the one
    /// with the longer left half comes first.
    fn derived_merges(&self, keys: &[String]) -> Result<Merges> {
        let normal: AHashMap<&str, usize> = (0..keys.len())
            .filter(|&id| self.kind(id) == token_type::NORMAL)
            .map(|id| (keys[id].as_str(), id))
            .collect();
        let mut ranked: Vec<(f32, usize, usize)> = Vec::new();
        for (id, key) in keys.iter().enumerate() {
            if self.kind(id) != token_type::NORMAL {
                continue;
            }
            if key.len() > MAX_TOKEN_BYTES {
                return Err(TextError::file(format!(
                    "token {id} is {} bytes long; Sheave allows {MAX_TOKEN_BYTES}",
                    key.len()
                )));
            }
            for (cut, _) in key.char_indices().skip(1) {
                if normal.contains_key(&key[..cut]) && normal.contains_key(&key[cut..]) {
                    ranked.push((self.source.scores[id], cut, id));
                }
            }
        }
        ranked.sort_by(|a, b| {
            let by_score = b.0.total_cmp(&a.0);
            by_score.then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2))
        });
        let halves = |&(_, cut, id): &(f32, usize, usize)| {
            let key: &str = &keys[id];
            (key[..cut].to_owned(), key[cut..].to_owned())
        };
        Ok(ranked.iter().map(halves).collect())
    }

    fn finish(&self, recipe: Recipe) -> Result<Tokenizer> {
        let mut frame = Frame::default();
        if self.source.add_bos.unwrap_or(recipe.add_bos) {
            frame.prefix.push(needed("bos", recipe.bos)?);
        }
        if self.source.add_eos.unwrap_or(false) {
            frame.suffix.push(needed("eos", recipe.eos)?);
        }
        let control = |id: usize| self.kind(id) == token_type::CONTROL;
        let mut stop_ids = known_stop_ids(&self.tokens, control);
        stop_ids.extend(recipe.eos.into_iter().chain(self.source.eot));
        stop_ids.sort_unstable();
        stop_ids.dedup();
        Tokenizer::new(Parts {
            model: recipe.model,
            normalizer: recipe.normalizer,
            pre_tokenizer: recipe.pre_tokenizer,
            added: self.added_tokens(),
            decoding: recipe.decoding,
            added_are_literal: true,
            frame,
            bos: recipe.bos,
            eos: recipe.eos,
            stop_ids,
        })
    }

    fn added_tokens(&self) -> Vec<(u32, AddedToken)> {
        let added = |id: usize| {
            let special = match self.kind(id) {
                token_type::CONTROL | token_type::UNKNOWN => true,
                token_type::USER_DEFINED => false,
                _ => return None,
            };
            let token = AddedToken::from(self.tokens[id].clone(), special).normalized(false);
            Some((id as u32, token))
        };
        (0..self.tokens.len()).filter_map(added).collect()
    }
}

/// What the two kinds of vocabulary don't share.
struct Recipe {
    model: ModelWrapper,
    normalizer: Value,
    pre_tokenizer: Value,
    decoding: Decoding,
    bos: Option<i32>,
    eos: Option<i32>,
    add_bos: bool,
}

fn piece_normalizer(space_prefix: bool) -> Value {
    let mut steps = vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
    if space_prefix {
        steps.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
    }
    json!({"type": "Sequence", "normalizers": steps})
}

fn needed(name: &str, id: Option<i32>) -> Result<i32> {
    id.ok_or_else(|| TextError::file(format!("add_{name}_token is set, but no {name} token is")))
}

fn number(tokens: impl Iterator<Item = String>) -> AHashMap<String, u32> {
    tokens
        .enumerate()
        .map(|(id, token)| (token, id as u32))
        .collect()
}

fn check_counts(source: &Vocabulary) -> Result<()> {
    let count = source.tokens.len();
    if count == 0 {
        return Err(TextError::file("tokenizer.ggml.tokens is empty"));
    }
    if count > MAX_IDS {
        return Err(TextError::file(format!(
            "{count} tokens; Sheave allows {MAX_IDS}"
        )));
    }
    for (name, len) in [
        ("scores", source.scores.len()),
        ("token types", source.token_types.len()),
    ] {
        if len != 0 && len != count {
            return Err(TextError::file(format!("{len} {name} for {count} tokens")));
        }
    }
    let text: usize = source.tokens.iter().map(|token| token.len()).sum();
    if text > MAX_TEXT_BYTES {
        return Err(TextError::file(format!(
            "the vocabulary holds {text} bytes of text; Sheave allows {MAX_TEXT_BYTES}"
        )));
    }
    Ok(())
}

fn checked_texts<'a>(what: &str, texts: &[&'a [u8]]) -> Result<Vec<&'a str>> {
    let check = |(index, text): (usize, &&'a [u8])| {
        std::str::from_utf8(text)
            .map_err(|_| TextError::file(format!("{what} {index} isn't UTF-8")))
    };
    texts.iter().enumerate().map(check).collect()
}

/// An empty token gets a name of its own, so that it can't match anything.
fn checked_tokens(tokens: &[&[u8]]) -> Result<Vec<String>> {
    let mut seen: AHashMap<String, usize> = AHashMap::with_capacity(tokens.len());
    let mut checked = Vec::with_capacity(tokens.len());
    for (id, text) in checked_texts("token", tokens)?.into_iter().enumerate() {
        let text = match text.is_empty() {
            true => format!("[EMPTY_{id}]"),
            false => text.to_owned(),
        };
        if let Some(first) = seen.insert(text.clone(), id) {
            return Err(TextError::file(format!(
                "tokens {first} and {id} are both {}",
                quoted(&text)
            )));
        }
        checked.push(text);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&str; 9] = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab", "<0xC3>"];
    const KINDS: [i32; 9] = [2, 3, 3, 1, 1, 1, 1, 1, 6];
    const SCORES: [f32; 9] = [0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0, 0.0];

    fn pieces() -> Vocabulary<'static> {
        Vocabulary {
            model: b"llama",
            tokens: PIECES.iter().map(|t| t.as_bytes()).collect(),
            scores: &SCORES,
            token_types: &KINDS,
            ..Vocabulary::default()
        }
    }

    fn byte_level() -> Vocabulary<'static> {
        let tokens = ["a", "b", "ab", "<|im_end|>", "Ġ"];
        Vocabulary {
            model: b"gpt2",
            pre: b"gpt-2",
            tokens: tokens.iter().map(|t| t.as_bytes()).collect(),
            token_types: &[1, 1, 1, 3, 1],
            merges: vec![b"a b"],
            ..Vocabulary::default()
        }
    }

    fn message(vocabulary: &Vocabulary) -> String {
        tokenizer_from_gguf(vocabulary)
            .err()
            .expect("must fail")
            .message
    }

    #[test]
    fn sentence_piece_joins_by_score_and_prefixes_a_space() {
        let tokenizer = tokenizer_from_gguf(&pieces()).unwrap();
        assert_eq!(tokenizer.encode("ab ab", true).unwrap(), [7, 7]);
        assert_eq!(tokenizer.encode("</s>", true).unwrap(), [2]);
        assert_eq!(tokenizer.frame.prefix, [1]);
        assert!(tokenizer.pieces.strip_leading_space);
    }

    #[test]
    fn byte_level_bpe_takes_the_written_merges() {
        let tokenizer = tokenizer_from_gguf(&byte_level()).unwrap();
        assert_eq!(tokenizer.encode("ab a", true).unwrap(), [2, 4, 0]);
        assert_eq!(tokenizer.stop_ids, [3]);
        assert!(tokenizer.frame.prefix.is_empty());
    }

    #[test]
    fn hostile_vocabularies_are_errors_that_name_the_place() {
        let mut v = byte_level();
        v.tokens[2] = b"\xff";
        assert!(message(&v).contains("token 2 isn't UTF-8"));

        let mut v = byte_level();
        v.tokens[1] = b"a";
        assert!(message(&v).contains("tokens 0 and 1 are both"));

        let mut v = byte_level();
        v.merges = vec![b"a zzz"];
        assert!(message(&v).contains("merge 0"));

        let mut v = byte_level();
        v.merges = vec![b" "];
        assert!(message(&v).contains("isn't two tokens"));

        for id in [-1, 5, i32::MAX, i32::MIN] {
            let mut v = byte_level();
            v.bos = Some(id);
            assert!(message(&v).contains(&format!("bos token id {id}")));
        }
        assert!(message(&Vocabulary::default()).contains("empty"));

        let mut v = byte_level();
        v.pre = b"unheard-of";
        assert!(message(&v).contains("unheard-of"));

        let mut v = pieces();
        v.scores = &SCORES[1..];
        assert!(message(&v).contains("8 scores for 9 tokens"));
    }

    #[test]
    fn a_long_token_is_refused_before_its_merges_are_derived() {
        let long = "a".repeat(MAX_TOKEN_BYTES + 1);
        let mut v = pieces();
        v.tokens[6] = long.as_bytes();
        assert!(message(&v).contains("token 6 is 1025 bytes long"));
    }
}
