//! Which ids the tokenizer.json's post processor puts before and after a text.
//! Only that is read from it: running it could multiply the text.

use serde_json::Value;

use crate::error::{quoted, Result, TextError};

/// Ids around an encoded text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub prefix: Vec<i32>,
    pub suffix: Vec<i32>,
}

/// None if the post processor says nothing about special tokens.
pub fn frame_from_json(processor: &Value) -> Result<Option<Frame>> {
    let kind = processor.get("type").and_then(Value::as_str);
    match kind {
        None if processor.is_null() => Ok(None),
        Some("ByteLevel") => Ok(None),
        Some("TemplateProcessing") => template_frame(processor).map(Some),
        Some("BertProcessing" | "RobertaProcessing") => cls_sep_frame(processor).map(Some),
        Some("Sequence") => sequence_frame(processor),
        other => Err(TextError::unsupported(format!(
            "tokenizer.json: post_processor {} isn't known",
            quoted(other.unwrap_or("without a type"))
        ))),
    }
}

fn sequence_frame(processor: &Value) -> Result<Option<Frame>> {
    let list = processor.get("processors").and_then(Value::as_array);
    let mut whole: Option<Frame> = None;
    for each in list.into_iter().flatten() {
        if each.get("type").and_then(Value::as_str) == Some("Sequence") {
            return Err(broken("has a Sequence inside a Sequence"));
        }
        let Some(mut outer) = frame_from_json(each)? else {
            continue;
        };
        let inner = whole.take().unwrap_or_default();
        outer.prefix.extend(inner.prefix);
        outer.suffix.splice(0..0, inner.suffix);
        whole = Some(outer);
    }
    Ok(whole)
}

fn template_frame(processor: &Value) -> Result<Frame> {
    let single = processor.get("single").and_then(Value::as_array);
    let Some(single) = single else {
        return Err(broken("has no list \"single\""));
    };
    let mut frame = Frame::default();
    let mut seen_text = false;
    for item in single {
        if item.get("Sequence").is_some() {
            if seen_text {
                return Err(broken("repeats the text"));
            }
            seen_text = true;
            continue;
        }
        let name = item.pointer("/SpecialToken/id").and_then(Value::as_str);
        let ids = name.and_then(|name| processor.get("special_tokens")?.get(name)?.get("ids"));
        let Some(ids) = ids.and_then(Value::as_array) else {
            return Err(broken("names a special token without ids"));
        };
        let side = match seen_text {
            true => &mut frame.suffix,
            false => &mut frame.prefix,
        };
        for id in ids {
            side.push(token_id(id)?);
        }
    }
    Ok(frame)
}

fn cls_sep_frame(processor: &Value) -> Result<Frame> {
    let id = |key: &str| {
        token_id(
            processor
                .get(key)
                .and_then(|v| v.get(1))
                .unwrap_or(&Value::Null),
        )
    };
    Ok(Frame {
        prefix: vec![id("cls")?],
        suffix: vec![id("sep")?],
    })
}

fn token_id(value: &Value) -> Result<i32> {
    let id = value.as_u64().and_then(|id| i32::try_from(id).ok());
    id.ok_or_else(|| broken("holds an id that isn't one"))
}

fn broken(what: &str) -> TextError {
    TextError::file(format!("tokenizer.json: post_processor {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(before: i32, after: Option<i32>) -> Value {
        let mut single = vec![
            json!({"SpecialToken": {"id": "<s>", "type_id": 0}}),
            json!({"Sequence": {"id": "A", "type_id": 0}}),
        ];
        if after.is_some() {
            single.push(json!({"SpecialToken": {"id": "</s>", "type_id": 0}}));
        }
        json!({"type": "TemplateProcessing", "single": single, "special_tokens": {
            "<s>": {"id": "<s>", "ids": [before], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [after], "tokens": ["</s>"]}}})
    }

    #[test]
    fn a_template_gives_prefix_and_suffix() {
        let frame = frame_from_json(&template(1, Some(2))).unwrap().unwrap();
        assert_eq!((frame.prefix, frame.suffix), (vec![1], vec![2]));
    }

    #[test]
    fn a_sequence_wraps_from_the_inside_out() {
        let inner = template(1, Some(2));
        let sequence = json!({"type": "Sequence", "processors":
            [{"type": "ByteLevel"}, inner, template(3, Some(4))]});
        let frame = frame_from_json(&sequence).unwrap().unwrap();
        assert_eq!((frame.prefix, frame.suffix), (vec![3, 1], vec![2, 4]));
    }

    #[test]
    fn silence_and_nonsense_are_told_apart() {
        assert_eq!(frame_from_json(&Value::Null), Ok(None));
        assert_eq!(frame_from_json(&json!({"type": "ByteLevel"})), Ok(None));
        assert!(frame_from_json(&json!({"type": "Other"})).is_err());
        assert!(frame_from_json(&json!({"type": "BertProcessing"})).is_err());
        let mut twice = template(1, None);
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        twice["single"].as_array_mut().unwrap().push(text);
        assert!(frame_from_json(&twice).is_err());
    }
}
