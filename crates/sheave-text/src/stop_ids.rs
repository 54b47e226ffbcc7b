//! After which tokens generation ends.

use serde_json::Value;

use crate::error::{Result, TextError};
use crate::tokenizer::Tokenizer;

/// Spellings that end a turn or a text in the model families that use them.
/// Source: llama.cpp, src/llama-vocab.cpp, its list of end-of-generation
/// tokens; we count them only where the file says that they are CONTROL.
const STOP_SPELLINGS: [&str; 25] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
];

/// Ids of the known spellings among the control tokens, in ascending order.
pub fn known_stop_ids(tokens: &[String], is_control: impl Fn(usize) -> bool) -> Vec<i32> {
    let control: Vec<usize> = (0..tokens.len()).filter(|&id| is_control(id)).collect();
    let find = |spelling: &str| {
        let id = control.iter().find(|&&id| tokens[id] == spelling);
        id.map(|&id| id as i32)
    };
    let mut ids: Vec<i32> = STOP_SPELLINGS.iter().filter_map(|s| find(s)).collect();
    let mut drop = |spelling: &str| {
        let id = find(spelling);
        ids.retain(|&known| Some(known) != id);
    };
    // Harmony ends a message, not the turn, with <|end|>; Solar does alike.
    let call = find("<|call|>").or(find("<|calls|>")).is_some();
    if call && (find("<|return|>").is_some() || find("<|flush|>").is_some()) {
        drop("<|end|>");
    }
    // Where Gemma 4's own tokens are, </s> is ordinary markup.
    if find("<|tool_response>").is_some() {
        drop("</s>");
    }
    ids.sort_unstable();
    ids
}

/// All ids that end generation: what the tokenizer's own file says, and
/// `eos_token_id` of generation_config.json and config.json (each may be "").
pub fn stop_ids(tokenizer: &Tokenizer, generation: &str, config: &str) -> Result<Vec<i32>> {
    let mut ids = tokenizer.stop_ids.clone();
    for (name, json) in [
        ("generation_config.json", generation),
        ("config.json", config),
    ] {
        if json.trim().is_empty() {
            continue;
        }
        let file: Value =
            serde_json::from_str(json).map_err(|e| TextError::file(format!("{name}: {e}")))?;
        add_eos_ids(name, &file["eos_token_id"], &mut ids)?;
        add_eos_ids(name, &file["text_config"]["eos_token_id"], &mut ids)?;
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn add_eos_ids(name: &str, value: &Value, ids: &mut Vec<i32>) -> Result<()> {
    let list = match value {
        Value::Null => return Ok(()),
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    for id in list {
        let id = id.as_u64().and_then(|id| i32::try_from(id).ok());
        ids.push(id.ok_or_else(|| {
            TextError::file(format!(
                "{name}: eos_token_id isn't a token id or a list of them"
            ))
        })?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{tokenizer_from_gguf, Vocabulary};

    fn tokens(list: &[&str]) -> Vec<String> {
        list.iter().map(|t| t.to_string()).collect()
    }

    #[test]
    fn only_control_tokens_count() {
        let list = tokens(&["a", "<|im_end|>", "<|eot_id|>"]);
        assert_eq!(known_stop_ids(&list, |id| id == 1), [1]);
    }

    #[test]
    fn harmony_does_not_stop_at_the_end_of_a_message() {
        let list = tokens(&["<|end|>", "<|return|>", "<|call|>"]);
        assert_eq!(known_stop_ids(&list, |_| true), [1, 2]);
        assert_eq!(known_stop_ids(&list[..1], |_| true), [0]);
    }

    #[test]
    fn every_source_is_joined() {
        let tokenizer = tokenizer_from_gguf(&Vocabulary {
            model: b"gpt2",
            pre: b"gpt-2",
            tokens: vec![b"a", b"<|im_end|>", b"b"],
            token_types: &[1, 3, 1],
            eos: Some(2),
            ..Vocabulary::default()
        })
        .unwrap();
        let ids = |generation: &str, config: &str| stop_ids(&tokenizer, generation, config);
        assert_eq!(ids("", "").unwrap(), [1, 2]);
        assert_eq!(ids(r#"{"eos_token_id": [7, 2]}"#, "{}").unwrap(), [1, 2, 7]);
        let nested = r#"{"eos_token_id": null, "text_config": {"eos_token_id": 9}}"#;
        assert_eq!(ids("", nested).unwrap(), [1, 2, 9]);
        for bad in ["{", r#"{"eos_token_id": -1}"#, r#"{"eos_token_id": "x"}"#] {
            assert!(ids(bad, "").is_err());
        }
    }
}
