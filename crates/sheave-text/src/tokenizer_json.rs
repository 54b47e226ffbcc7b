//! Reads a Hugging Face tokenizer.json, and the few fields of
//! tokenizer_config.json that change ids.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::models::ModelWrapper;
use tokenizers::AddedToken;

use crate::error::{quoted, Result, TextError};
use crate::piece_table::Decoding;
use crate::post_processor::{frame_from_json, Frame};
use crate::tokenizer::{Parts, Tokenizer};

/// Padding, truncation and dropout are left out on purpose: they change what a
/// text encodes to, or allocate what a file says.
#[derive(Deserialize)]
struct TokenizerFile<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    #[serde(default)]
    added_tokens: Vec<AddedEntry>,
}

#[derive(Deserialize)]
struct AddedEntry {
    id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

#[derive(Deserialize)]
struct ModelHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
}

pub fn tokenizer_from_json(json: &str, config_json: &str) -> Result<Tokenizer> {
    let file: TokenizerFile =
        serde_json::from_str(json).map_err(|e| TextError::file(format!("tokenizer.json: {e}")))?;
    let config = match config_json.trim().is_empty() {
        true => Value::Null,
        false => serde_json::from_str(config_json)
            .map_err(|e| TextError::file(format!("tokenizer_config.json: {e}")))?,
    };
    check_growth("normalizer", &file.normalizer)?;
    check_growth("pre_tokenizer", &file.pre_tokenizer)?;
    let decoding = Decoding::from_json(&file.decoder)?;
    let added_are_literal = decoding == Decoding::ByteLevel;
    let said = frame_from_json(&file.post_processor)?;
    let mut added = file.added_tokens;
    added.sort_by_key(|entry| entry.id);
    Tokenizer::new(config.add_to(
        Parts {
            model: model_from_json(file.model.get())?,
            normalizer: file.normalizer,
            pre_tokenizer: file.pre_tokenizer,
            added: added.into_iter().map(|e| (e.id, e.token)).collect(),
            decoding,
            added_are_literal,
            frame: Frame::default(),
            bos: None,
            eos: None,
            stop_ids: Vec::new(),
        },
        said,
    )?)
}

fn model_from_json(json: &str) -> Result<ModelWrapper> {
    let broken = |e: serde_json::Error| TextError::file(format!("tokenizer.json: model: {e}"));
    let head: ModelHead = serde_json::from_str(json).map_err(broken)?;
    match head.kind.as_deref().unwrap_or("BPE") {
        "BPE" => {
            let mut bpe: BPE = serde_json::from_str(json).map_err(broken)?;
            bpe.dropout = None;
            Ok(ModelWrapper::BPE(bpe))
        }
        "Unigram" | "WordLevel" | "WordPiece" => serde_json::from_str(json).map_err(broken),
        other => Err(TextError::unsupported(format!(
            "tokenizer.json: model type {} isn't known",
            quoted(other)
        ))),
    }
}

/// Steps that make a text longer, chained, would turn one character into
/// gigabytes: the product of their growth is bounded.
fn check_growth(name: &str, step: &Value) -> Result<()> {
    const LIMIT: usize = 4096;
    match growth(step, 0) {
        Some(factor) if factor <= LIMIT => Ok(()),
        _ => Err(TextError::unsupported(format!(
            "tokenizer.json: {name} could make a text more than {LIMIT} times longer"
        ))),
    }
}

fn growth(step: &Value, depth: usize) -> Option<usize> {
    if depth > 8 {
        return None;
    }
    let length = |pointer: &str| step.pointer(pointer).and_then(Value::as_str).map(str::len);
    let inner = ["/normalizers", "/pretokenizers"];
    let inner = inner.iter().find_map(|p| step.pointer(p)?.as_array());
    match step.get("type").and_then(Value::as_str).unwrap_or("") {
        "Sequence" => inner?.iter().try_fold(1usize, |product, each| {
            product.checked_mul(growth(each, depth + 1)?)
        }),
        "Replace" => match length("/pattern/String") {
            Some(from) => Some(length("/content")?.div_ceil(from.max(1)).max(1)),
            None => Some(length("/content")? + 1),
        },
        "Prepend" => Some(length("/prepend")? + 1),
        "ByteLevel" => Some(2),
        "Metaspace" => Some(length("/replacement").unwrap_or(3).max(1)),
        _ => Some(1),
    }
}

/// What tokenizer_config.json adds.
trait TokenizerConfig {
    fn add_to(&self, parts: Parts, said: Option<Frame>) -> Result<Parts>;
    fn token(&self, key: &str) -> Option<&str>;
    fn flag(&self, key: &str) -> bool;
}

impl TokenizerConfig for Value {
    /// `said` is what the post processor says about BOS and EOS; only if it
    /// says nothing do add_bos_token and add_eos_token count.
    fn add_to(&self, mut parts: Parts, said: Option<Frame>) -> Result<Parts> {
        parts.bos = self.token("bos_token").and_then(|t| id_of(&parts, t));
        parts.eos = self.token("eos_token").and_then(|t| id_of(&parts, t));
        parts.stop_ids = parts.eos.into_iter().collect();
        if let Some(frame) = said {
            if parts.bos.is_none() && frame.prefix.len() == 1 {
                parts.bos = Some(frame.prefix[0]);
            }
            parts.frame = frame;
            return Ok(parts);
        }
        for (key, id, side) in [
            ("bos_token", parts.bos, &mut parts.frame.prefix),
            ("eos_token", parts.eos, &mut parts.frame.suffix),
        ] {
            if !self.flag(&format!("add_{key}")) {
                continue;
            }
            let id = id.ok_or_else(|| {
                TextError::file(format!(
                    "tokenizer_config.json: add_{key} is set, but {key} isn't in the vocabulary"
                ))
            })?;
            side.push(id);
        }
        Ok(parts)
    }

    /// A token is a string, or an object with `content`.
    fn token(&self, key: &str) -> Option<&str> {
        let value = self.get(key)?;
        value.as_str().or_else(|| value.get("content")?.as_str())
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
}

fn id_of(parts: &Parts, token: &str) -> Option<i32> {
    let added = parts.added.iter().find(|(_, t)| t.content == token);
    let id = match added {
        Some((id, _)) => Some(*id),
        None => tokenizers::Model::token_to_id(&parts.model, token),
    };
    id.and_then(|id| i32::try_from(id).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tiny() -> Value {
        json!({"version": "1.0", "added_tokens": [
            {"id": 3, "content": "<s>", "single_word": false, "lstrip": false,
             "rstrip": false, "normalized": false, "special": true}],
            "normalizer": null, "pre_tokenizer": {"type": "ByteLevel",
             "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": null, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                      "merges": ["a b"]}})
    }

    fn load(file: &Value, config: &str) -> Result<Tokenizer> {
        tokenizer_from_json(&file.to_string(), config)
    }

    fn message(file: &Value) -> String {
        load(file, "").err().expect("must fail").message
    }

    #[test]
    fn special_tokens_are_text_unless_asked_for() {
        let tokenizer = load(&tiny(), "").unwrap();
        assert_eq!(tokenizer.encode("ab<s>a", true).unwrap(), [2, 3, 0]);
        assert_eq!(tokenizer.encode("<s>ab", false).unwrap(), [2]);
    }

    #[test]
    fn the_config_adds_bos_where_the_post_processor_is_silent() {
        let config = r#"{"bos_token": {"content": "<s>"}, "add_bos_token": true}"#;
        let tokenizer = load(&tiny(), config).unwrap();
        assert_eq!(tokenizer.frame.prefix, [3]);
        let missing = r#"{"bos_token": "<x>", "add_bos_token": true}"#;
        assert!(load(&tiny(), missing).is_err());
    }

    #[test]
    fn what_would_allocate_or_randomise_is_ignored() {
        let mut file = tiny();
        file["model"]["dropout"] = json!(1.0);
        file["padding"] = json!({"strategy": {"Fixed": 1u64 << 40}, "direction": "Right",
            "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"});
        assert_eq!(load(&file, "").unwrap().encode("ab", true).unwrap(), [2]);
    }

    #[test]
    fn broken_files_are_errors_that_name_the_place() {
        let mut file = tiny();
        file["model"]["merges"] = json!(["a x"]);
        assert!(message(&file).contains('x'));

        let mut file = tiny();
        file["model"]["vocab"]["b"] = json!(0);
        assert!(message(&file).contains("share the id 0"));

        let mut file = tiny();
        file["model"]["vocab"]["z"] = json!(4_000_000_000u32);
        assert!(message(&file).contains("4000000000"));

        let mut file = tiny();
        file["added_tokens"][0]["id"] = json!(7);
        assert!(message(&file).contains("<s>"));

        assert!(tokenizer_from_json("{", "").is_err());
        assert!(tokenizer_from_json(&"[".repeat(100_000), "").is_err());
        assert!(tokenizer_from_json("{}", "").is_err());
    }

    #[test]
    fn a_chain_of_replacements_cannot_explode() {
        let mut file = tiny();
        let step = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"});
        file["normalizer"] = json!({"type": "Sequence", "normalizers": vec![step; 40]});
        assert!(message(&file).contains("longer"));
    }
}
