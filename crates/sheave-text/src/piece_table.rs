//! id → bytes: what each token stands for in the text. Decoding, streaming and
//! grammars all read this one table, so they can't disagree.

use serde_json::Value;

use crate::error::{quoted, Result, TextError};

/// Ids above this are refused: the table is indexed by id, and an absurd id in
/// a file must not become an absurd allocation. The largest vocabularies in
/// use are sixteen times smaller.
pub const MAX_IDS: usize = 1 << 22;

pub const PIECE_PRESENT: u8 = 1;
pub const PIECE_SPECIAL: u8 = 2;

/// How a token's spelling in the vocabulary turns into bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// GPT-2's alphabet: one printable character for each byte.
    ByteLevel,
    /// SentencePiece: replaced strings, and `<0x0A>` for a byte.
    Pieces {
        replacements: Vec<(String, String)>,
        byte_fallback: bool,
        strip_leading_space: bool,
    },
}

impl Decoding {
    pub fn sentence_piece(strip_leading_space: bool) -> Self {
        Self::Pieces {
            replacements: vec![("▁".into(), " ".into())],
            byte_fallback: true,
            strip_leading_space,
        }
    }

    /// Reads the `decoder` of a tokenizer.json.
    pub fn from_json(decoder: &Value) -> Result<Self> {
        let mut steps = Steps::default();
        steps.add(decoder, 0)?;
        steps.finish()
    }

    fn bytes(&self, token: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => byte_level_bytes(token),
            Self::Pieces {
                replacements,
                byte_fallback,
                ..
            } => {
                if let (true, Some(byte)) = (*byte_fallback, fallback_byte(token)) {
                    return vec![byte];
                }
                let mut text = token.to_owned();
                for (from, to) in replacements {
                    text = text.replace(from.as_str(), to);
                }
                text.into_bytes()
            }
        }
    }
}

/// The decoder's steps as they are met, before they are judged as a whole.
#[derive(Default)]
struct Steps {
    byte_level: bool,
    byte_fallback: bool,
    strip_leading_space: bool,
    replacements: Vec<(String, String)>,
    any: bool,
}

impl Steps {
    fn add(&mut self, step: &Value, depth: usize) -> Result<()> {
        if depth > 4 || self.replacements.len() > 16 {
            return Err(unsupported_decoder("is nested too deeply or too long"));
        }
        let kind = step.get("type").and_then(Value::as_str).unwrap_or("");
        self.any = true;
        match kind {
            "ByteLevel" => self.byte_level = true,
            "ByteFallback" => self.byte_fallback = true,
            "Fuse" => {}
            "Replace" => self.add_replace(step)?,
            "Strip" => self.add_strip(step)?,
            "Metaspace" => self.add_metaspace(step),
            "Sequence" => {
                let inner = step.get("decoders").and_then(Value::as_array);
                for each in inner.into_iter().flatten() {
                    self.add(each, depth + 1)?;
                }
            }
            "" => return Err(unsupported_decoder("is missing")),
            other => {
                let what = format!("{} isn't one that Sheave can stream", quoted(other));
                return Err(unsupported_decoder(&what));
            }
        }
        Ok(())
    }

    fn add_replace(&mut self, step: &Value) -> Result<()> {
        let from = step.pointer("/pattern/String").and_then(Value::as_str);
        let to = step.get("content").and_then(Value::as_str);
        match (from, to) {
            (Some(from), Some(to)) if !from.is_empty() && to.len() <= from.len() => {
                self.replacements.push((from.into(), to.into()));
                Ok(())
            }
            _ => Err(unsupported_decoder(
                "has a Replace that isn't of a string by one no longer",
            )),
        }
    }

    fn add_strip(&mut self, step: &Value) -> Result<()> {
        let number = |key: &str| step.get(key).and_then(Value::as_u64).unwrap_or(0);
        let content = step.get("content").and_then(Value::as_str);
        if content != Some(" ") || number("stop") != 0 || number("start") > 1 {
            return Err(unsupported_decoder(
                "has a Strip of something else than one leading space",
            ));
        }
        self.strip_leading_space |= number("start") == 1;
        Ok(())
    }

    fn add_metaspace(&mut self, step: &Value) {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        let mark = text("replacement").filter(|mark| !mark.is_empty());
        self.replacements
            .push((mark.unwrap_or("▁").into(), " ".into()));
        let legacy = step.get("add_prefix_space").and_then(Value::as_bool);
        self.strip_leading_space = match text("prepend_scheme") {
            Some(scheme) => scheme != "never",
            None => legacy.unwrap_or(true),
        };
    }

    fn finish(self) -> Result<Decoding> {
        if !self.any {
            return Err(unsupported_decoder("is missing"));
        }
        if !self.byte_level {
            return Ok(Decoding::Pieces {
                replacements: self.replacements,
                byte_fallback: self.byte_fallback,
                strip_leading_space: self.strip_leading_space,
            });
        }
        if self.byte_fallback || self.strip_leading_space || !self.replacements.is_empty() {
            return Err(unsupported_decoder("mixes ByteLevel with other steps"));
        }
        Ok(Decoding::ByteLevel)
    }
}

fn unsupported_decoder(what: &str) -> TextError {
    TextError::unsupported(format!("tokenizer.json: decoder {what}"))
}

/// `<0x0A>` → 10.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|d| d.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// A token with a character outside the alphabet stands for itself, as in the
/// tokenizers crate.
fn byte_level_bytes(token: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = token.chars().map(byte_of_char).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// GPT-2's alphabet: the printable Latin-1 characters are their own bytes, and
/// the other 68 bytes follow each other from U+0100.
fn byte_of_char(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8), // 00..20
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8), // 7f..a0
        0x143 => Some(0xad),
        _ => None,
    }
}

/// A token as the vocabulary spells it.
pub struct Spelling {
    pub id: u32,
    pub text: String,
    /// True if `text` is already what the token stands for.
    pub literal: bool,
    pub special: bool,
}

/// The bytes of every id, back to back; `offsets[id]..offsets[id + 1]`.
pub struct PieceTable {
    pub bytes: Vec<u8>,
    pub offsets: Vec<u32>,
    pub flags: Vec<u8>,
    pub strip_leading_space: bool,
}

impl PieceTable {
    /// Later spellings of an id replace earlier ones (added tokens come last).
    pub fn build(spellings: &[Spelling], decoding: &Decoding) -> Result<Self> {
        let count = spellings.iter().map(|s| s.id as usize + 1).max();
        let count = count.unwrap_or(0);
        if count > MAX_IDS {
            return Err(TextError::file(format!(
                "token id {} is beyond the {MAX_IDS} that Sheave allows",
                count - 1
            )));
        }
        let mut by_id: Vec<Option<&Spelling>> = vec![None; count];
        for spelling in spellings {
            by_id[spelling.id as usize] = Some(spelling);
        }
        let mut table = Self {
            bytes: Vec::new(),
            offsets: vec![0],
            flags: Vec::with_capacity(count),
            strip_leading_space: matches!(
                decoding,
                Decoding::Pieces {
                    strip_leading_space: true,
                    ..
                }
            ),
        };
        for spelling in by_id {
            table.push(spelling, decoding)?;
        }
        Ok(table)
    }

    fn push(&mut self, spelling: Option<&Spelling>, decoding: &Decoding) -> Result<()> {
        let mut flags = 0;
        if let Some(spelling) = spelling {
            flags |= PIECE_PRESENT;
            if spelling.special {
                flags |= PIECE_SPECIAL;
            }
            if spelling.literal {
                self.bytes.extend_from_slice(spelling.text.as_bytes());
            } else {
                self.bytes.extend(decoding.bytes(&spelling.text));
            }
        }
        let end = u32::try_from(self.bytes.len())
            .map_err(|_| TextError::file("the vocabulary holds more than 4 GiB of text"))?;
        self.offsets.push(end);
        self.flags.push(flags);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.flags.len()
    }

    pub fn is_present(&self, id: i32) -> bool {
        let flags = usize::try_from(id).ok().and_then(|id| self.flags.get(id));
        flags.is_some_and(|flags| flags & PIECE_PRESENT != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        let bytes: Vec<u8> = (0u32..0x200)
            .filter_map(char::from_u32)
            .filter_map(byte_of_char)
            .collect();
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_level_bytes("Ġthe"), b" the");
        assert_eq!(byte_level_bytes("Ċ"), b"\n");
        assert_eq!(byte_level_bytes("<｜x｜>"), "<｜x｜>".as_bytes());
    }

    #[test]
    fn a_llama_decoder_strips_one_space_and_knows_bytes() {
        let decoder = json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]});
        let decoding = Decoding::from_json(&decoder).unwrap();
        assert_eq!(decoding, Decoding::sentence_piece(true));
        assert_eq!(decoding.bytes("<0xE2>"), [0xe2]);
        assert_eq!(decoding.bytes("<0xE>"), b"<0xE>");
        assert_eq!(decoding.bytes("▁a▁b"), b" a b");
    }

    #[test]
    fn decoders_that_cannot_be_streamed_are_refused_by_name() {
        for (decoder, word) in [
            (json!(null), "missing"),
            (json!({"type": "CTC"}), "CTC"),
            (
                json!({"type": "Strip", "content": "x", "start": 1, "stop": 0}),
                "Strip",
            ),
            (
                json!({"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}),
                "Replace",
            ),
        ] {
            let error = Decoding::from_json(&decoder).unwrap_err();
            assert!(error.message.contains(word), "{}", error.message);
        }
    }

    #[test]
    fn an_absurd_id_is_an_error_and_no_allocation() {
        let spelling = Spelling {
            id: u32::MAX,
            text: "a".into(),
            literal: false,
            special: false,
        };
        let error = PieceTable::build(&[spelling], &Decoding::ByteLevel).err();
        assert!(error.unwrap().message.contains("4294967295"));
    }
}
