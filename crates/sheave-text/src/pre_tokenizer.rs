//! How `tokenizer.ggml.pre` splits a text into words before the merges. GGUF
//! files name the family; the patterns are the families' own.

use serde_json::{json, Value};

use crate::error::{quoted, Result, TextError};

/// Everything that `tokenizer.ggml.pre` decides for a byte-level BPE.
pub struct PreTokenizer {
    pub pre_tokenizer: Value,
    pub normalizer: Value,
    pub ignore_merges: bool,
    /// What holds where the file has no `add_bos_token`.
    pub add_bos: bool,
}

const CONTRACTIONS: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const CASED_WORDS: [&str; 2] = [
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
];
const SPACES: &str = r"\s*[\r\n]+|\s+(?!\S)|\s+";

pub fn pre_tokenizer(pre: &str) -> Result<PreTokenizer> {
    let mut ignore_merges = false;
    let mut add_bos = false;
    let mut normalizer = Value::Null;
    let steps = match pre {
        "gpt-2" | "phi-2" | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling"
        | "exaone4" | "gigachat" | "modern-bert" | "a.x-4.0" | "mellum" | "jina-es" | "jina-de"
        | "jina-v2-es" | "jina-v2-de" => vec![byte_level(true)],
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b"
        | "mellum2" => vec![
            json!({"type": "Digits", "individual_digits": true}),
            byte_level(true),
        ],
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0"
        | "lfm2" => {
            (ignore_merges, add_bos) = (true, true);
            words(&[llama_words(r"\p{N}{1,3}")])
        }
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => words(&[llama_words(r"\p{N}{1,3}")]),
        "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "stablelm2" | "hunyuan" | "megrez"
        | "solar-open" | "grok-2" => {
            if matches!(pre, "qwen2" | "deepseek-r1-qwen") {
                normalizer = json!({"type": "NFC"});
            }
            words(&[llama_words(r"\p{N}")])
        }
        "qwen35" => {
            normalizer = json!({"type": "NFC"});
            words(&[format!(
                r"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}"
            )])
        }
        "gpt-4o" | "llama4" | "kanana2" | "minimax-m2" => {
            let [lower, upper] = CASED_WORDS;
            words(&[format!(
                r"{lower}{CONTRACTIONS}?|{upper}{CONTRACTIONS}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
            )])
        }
        "tekken" => {
            (ignore_merges, add_bos) = (true, true);
            let [lower, upper] = CASED_WORDS;
            words(&[format!(
                r"{lower}|{upper}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
            )])
        }
        "deepseek-v3" | "hunyuan-dense" | "joyai-llm" => words(&[
            r"\p{N}{1,3}".into(),
            "[一-龥぀-ゟ゠-ヿ]+".into(),
            format!(
                r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{{|}}~][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{SPACES}"##
            ),
        ]),
        "deepseek-coder" => words(&[
            r"[\r\n]".into(),
            r"\s?\p{L}+".into(),
            r"\s?\p{P}+".into(),
            "[一-龥ࠀ-一가-퟿]+".into(),
            r"\p{N}".into(),
        ]),
        "falcon" => {
            let mut steps = splits(&[r"[\p{P}$+<=>^~|`]+".into()]);
            steps.push(byte_level(true));
            steps.extend(splits(&["[0-9][0-9][0-9]".into()]));
            steps
        }
        other => {
            return Err(TextError::unsupported(format!(
                "tokenizer.ggml.pre {} isn't one that Sheave knows",
                quoted(other)
            )))
        }
    };
    Ok(PreTokenizer {
        pre_tokenizer: json!({"type": "Sequence", "pretokenizers": steps}),
        normalizer,
        ignore_merges,
        add_bos,
    })
}

/// The pattern of Llama 3 and of Qwen 2, which differ in how numbers are cut.
fn llama_words(numbers: &str) -> String {
    format!(
        r"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
    )
}

/// Each pattern splits the pieces that the one before left.
fn words(patterns: &[String]) -> Vec<Value> {
    let mut steps = splits(patterns);
    steps.push(byte_level(false));
    steps
}

fn splits(patterns: &[String]) -> Vec<Value> {
    let split = |pattern: &String| {
        json!({"type": "Split", "pattern": {"Regex": pattern},
               "behavior": "Isolated", "invert": false})
    };
    patterns.iter().map(split).collect()
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
           "use_regex": use_regex})
}
