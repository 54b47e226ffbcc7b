//! What a chat template may cost. The engine's fuel bounds a render; it bounds
//! neither the parser, whose constant folding takes a chain of operators
//! squared, nor the stack that deeply nested values need when they are
//! compared or dropped. So long tags are refused, and work that depends on a
//! template runs on a stack sized for the deepest value that its fuel can buy.

use crate::error::{Result, TextError};

/// The longest template in use has a fifth of this.
const MAX_SOURCE_BYTES: usize = 256 << 10;
/// Names, numbers and punctuation marks between one pair of delimiters.
const MAX_TAG_TOKENS: usize = 2000;

/// Fuel for trying a template out when it is loaded.
pub const PROBE_FUEL: u64 = 200_000;
const MIN_RENDER_FUEL: u64 = 1_000_000;
const MAX_RENDER_FUEL: u64 = 16_000_000;

/// One unit is about an instruction, or 64 bytes handled; a short message
/// takes a hundred or so. A million units last a second at worst.
pub fn render_fuel(input_bytes: usize) -> u64 {
    let fuel = MIN_RENDER_FUEL.saturating_add(4 * input_bytes as u64);
    fuel.min(MAX_RENDER_FUEL)
}

/// Runs `body` with room for what `fuel` can nest: a level costs at least
/// seven units, and at most 420 bytes of stack. The pages are not touched, so
/// they cost nothing, until a template needs them.
pub fn on_large_stack<R>(fuel: u64, body: impl FnOnce() -> R) -> R {
    stacker::grow((64 << 20) + 128 * fuel as usize, body)
}

/// Refuses a source that would take the parser too long or too deep.
pub fn check_source(source: &str) -> Result<()> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(TextError::file(format!(
            "the chat template is {} bytes long; Sheave allows {MAX_SOURCE_BYTES}",
            source.len()
        )));
    }
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let tag = &rest[start + 1..];
        let length = match tag.as_bytes().first() {
            Some(b'#') => tag.find("#}").unwrap_or(tag.len()),
            Some(b'{' | b'%') => checked_tag(tag)?,
            _ => 1,
        };
        rest = tag.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// `tag` starts after its first brace; returns how long it is.
fn checked_tag(tag: &str) -> Result<usize> {
    let inner = tag[1..].trim_start_matches(['-', '+', ' ', '\t', '\r', '\n']);
    if tag.starts_with('%') && inner.starts_with("raw") {
        return Ok(tag.find("endraw").unwrap_or(tag.len()));
    }
    let close: &[u8] = if tag.starts_with('%') { b"%}" } else { b"}}" };
    let bytes = tag.as_bytes();
    let (mut at, mut tokens) = (1, 0);
    while at < bytes.len() && !bytes[at..].starts_with(close) {
        tokens += 1;
        if tokens > MAX_TAG_TOKENS {
            return Err(TextError::file(format!(
                "the chat template has a tag of more than {MAX_TAG_TOKENS} words and marks"
            )));
        }
        at += token_length(&bytes[at..]);
    }
    Ok(at.min(tag.len()))
}

/// A string, a word, or one mark, with the spaces after it.
fn token_length(bytes: &[u8]) -> usize {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
    let length = match bytes[0] {
        quote @ (b'"' | b'\'') => string_length(bytes, quote),
        first if is_word(&first) => bytes.iter().take_while(|b| is_word(b)).count(),
        _ => 1,
    };
    let spaces = bytes[length..]
        .iter()
        .take_while(|b| b.is_ascii_whitespace());
    length + spaces.count()
}

fn string_length(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_refused_wherever_they_hide() {
        let chain = format!("1{}", "~1".repeat(3000));
        for source in [
            format!("{{{{ {chain} }}}}"),
            format!("{{% set x = {chain} %}}"),
            format!("a {{ b {{# ' {{{{ #}} {{{{{chain}}}}}"),
            format!("{{% raw %}}{{{{ ' {{% endraw %}}{{{{ {chain} }}}}"),
            format!("{{{{ 'a' }}}}'{{{{ {chain}}}}}"),
            format!("{{{{ 'it\\'s' ~ {chain} }}}}'"),
            format!("{{{{ {chain}"),
        ] {
            assert!(check_source(&source).is_err(), "{}", &source[..30]);
        }
        assert!(check_source(&"a".repeat(MAX_SOURCE_BYTES + 1)).is_err());
    }

    #[test]
    fn long_texts_are_not_chains() {
        let text = "a, b. ".repeat(10_000);
        for source in [
            text.clone(),
            format!("{{{{ '{text}' }}}}"),
            format!("{{# {text} #}}"),
            format!("{{% raw %}}{{{{ {text} {{% endraw %}}"),
            "{{ a }}{% if b %}{ {% endif %}".repeat(3000),
            "é{".into(),
            "{{".into(),
            "{% 'é".into(),
        ] {
            assert_eq!(check_source(&source), Ok(()));
        }
    }

    #[test]
    fn fuel_grows_with_the_request() {
        assert_eq!(render_fuel(0), 1_000_000);
        assert_eq!(render_fuel(1_000_000), 5_000_000);
        assert_eq!(render_fuel(usize::MAX / 8), 16_000_000);
    }
}
