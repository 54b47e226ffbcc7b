//! What shape of messages a template takes. Families differ: some want the
//! arguments of a tool call as an object, some as a string; some fail on
//! `content: null`, some drop the call silently on `content: ""`. So the
//! template is tried once, when it is loaded, with every shape; a request in a
//! shape that it handles is left alone, any other is converted.

use serde_json::{json, Map, Value};

use crate::error::{quoted, Result, TextError};
use crate::python_json::dumps;

const NEEDLE: &str = "probe_needle";

/// True where the template shows what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub object_arguments: bool,
    pub string_arguments: bool,
    /// Beside a tool call.
    pub null_content: bool,
    pub empty_content: bool,
    pub missing_content: bool,
    /// In an assistant's message without tool calls.
    pub null_text: bool,
    pub string_text: bool,
    pub text_parts: bool,
}

impl Default for Shape {
    /// Leaves every message alone.
    fn default() -> Self {
        Self {
            object_arguments: true,
            string_arguments: true,
            null_content: true,
            empty_content: true,
            missing_content: true,
            null_text: true,
            string_text: true,
            text_parts: true,
        }
    }
}

impl Shape {
    /// `render` gives the text for messages and tools, or None on any error.
    pub fn probe(render: &dyn Fn(&Value, &Value) -> Option<String>) -> Self {
        let mut shape = Self::default();
        shape.probe_text(render);
        shape.probe_tool_calls(render);
        shape
    }

    fn probe_text(&mut self, render: &dyn Fn(&Value, &Value) -> Option<String>) {
        let user =
            |content: Value| render(&json!([{"role": "user", "content": content}]), &Value::Null);
        let text = user(json!(NEEDLE));
        let parts = user(json!([{"type": "text", "text": NEEDLE}]));
        let shows = |text: &Option<String>| text.as_deref().is_some_and(|t| t.contains(NEEDLE));
        let raw = |t: &str| t.contains("'type'") || t.contains("\"type\"");
        self.string_text = shows(&text);
        self.text_parts = shows(&parts) && !parts.as_deref().is_some_and(raw);

        let turn = |content: Value| {
            let messages = json!([{"role": "user", "content": "Hi"},
                {"role": "assistant", "content": content}]);
            render(&messages, &Value::Null)
        };
        self.null_text = prints_no_none(&turn(Value::Null), &turn(json!("")));
    }

    fn probe_tool_calls(&mut self, render: &dyn Fn(&Value, &Value) -> Option<String>) {
        let contents = [Some(Value::Null), Some(json!("")), None];
        let object = json!({NEEDLE: "value"});
        let string = json!(format!("{{\"{NEEDLE}\": \"value\"}}"));
        for with_reply in [true, false] {
            let show = |arguments: &Value, content: &Option<Value>| {
                let messages = tool_call_probe(arguments, content, with_reply);
                render(&messages, &probe_tools()).filter(|text| faithful(text))
            };
            let shown = [&object, &string].map(|a| contents.each_ref().map(|c| show(a, c)));
            let any = |row: &[Option<String>; 3]| row.iter().any(Option::is_some);
            let (by_object, by_string) = (any(&shown[0]), any(&shown[1]));
            if !by_object && !by_string {
                continue;
            }
            (self.object_arguments, self.string_arguments) = (by_object, by_string);
            let row = if by_object { &shown[0] } else { &shown[1] };
            self.empty_content = row[1].is_some();
            self.missing_content = row[2].is_some();
            self.null_content = row[0].is_some() && prints_no_none(&row[0], &row[1]);
            return;
        }
    }

    /// Turns `messages` into a shape that the template handles.
    pub fn apply(&self, messages: &mut [Value]) -> Result<()> {
        for (index, message) in messages.iter_mut().enumerate() {
            let Some(message) = message.as_object_mut() else {
                return Err(TextError::argument(format!(
                    "messages[{index}] isn't an object"
                )));
            };
            self.apply_text(index, message)?;
            let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
            let mut has_calls = false;
            for call in calls.into_iter().flatten() {
                has_calls = true;
                self.apply_arguments(index, call)?;
            }
            match has_calls {
                true => self.apply_call_content(message),
                false => self.apply_null_text(message),
            }
        }
        Ok(())
    }

    fn apply_text(&self, index: usize, message: &mut Map<String, Value>) -> Result<()> {
        let Some(content) = message.get_mut("content") else {
            return Ok(());
        };
        match content {
            Value::Array(parts) if !self.text_parts && self.string_text => {
                *content = Value::String(joined_parts(index, parts)?);
            }
            Value::String(text) if !self.string_text && self.text_parts => {
                *content = json!([{"type": "text", "text": text}]);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_arguments(&self, index: usize, call: &mut Value) -> Result<()> {
        let holder = match call.get("function").is_some_and(Value::is_object) {
            true => &mut call["function"],
            false => call,
        };
        let Some(arguments) = holder.get_mut("arguments") else {
            return Ok(());
        };
        match arguments {
            Value::String(text) if !self.string_arguments => {
                *arguments = parsed_arguments(index, text)?;
            }
            Value::Object(_) if !self.object_arguments => {
                let text = dumps(arguments).map_err(|e| TextError::argument(e.to_string()))?;
                *arguments = Value::String(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_call_content(&self, message: &mut Map<String, Value>) {
        let fine = match message.get("content") {
            None => self.missing_content,
            Some(Value::Null) => self.null_content,
            Some(Value::String(text)) if text.is_empty() => self.empty_content,
            Some(_) => true,
        };
        if fine {
            return;
        }
        if self.null_content {
            message.insert("content".into(), Value::Null);
        } else if self.empty_content {
            message.insert("content".into(), json!(""));
        } else if self.missing_content {
            message.shift_remove("content");
        }
    }

    fn apply_null_text(&self, message: &mut Map<String, Value>) {
        if !self.null_text && message.get("content").is_some_and(Value::is_null) {
            message.insert("content".into(), json!(""));
        }
    }
}

/// Mistral's templates want call ids of nine letters and digits.
fn tool_call_probe(arguments: &Value, content: &Option<Value>, with_reply: bool) -> Value {
    let mut call = json!({"role": "assistant", "tool_calls": [{"id": "call00001",
        "type": "function", "function": {"name": "probe_tool", "arguments": arguments}}]});
    if let Some(content) = content {
        call["content"] = content.clone();
    }
    let mut messages = vec![json!({"role": "user", "content": "Hi"}), call];
    if with_reply {
        messages.push(json!({"role": "tool", "name": "probe_tool",
            "tool_call_id": "call00001", "content": "done"}));
    }
    Value::Array(messages)
}

fn probe_tools() -> Value {
    json!([{"type": "function", "function": {"name": "probe_tool", "description": "Probes.",
        "parameters": {"type": "object", "properties": {}, "required": []}}}])
}

/// A string that was dumped again shows its quotes escaped.
fn faithful(text: &str) -> bool {
    text.contains(NEEDLE) && !text.contains(&format!("{NEEDLE}\\"))
}

/// True if a null content rendered, and not as the word None.
fn prints_no_none(null: &Option<String>, empty: &Option<String>) -> bool {
    let count = |text: &str| text.matches("None").count() + text.matches("null").count();
    match (null, empty) {
        (Some(null), Some(empty)) => count(null) <= count(empty),
        (Some(null), None) => count(null) == 0,
        (None, _) => false,
    }
}

fn joined_parts(index: usize, parts: &[Value]) -> Result<String> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        let kind = part.get("type").and_then(Value::as_str);
        match (part.get("text").and_then(Value::as_str), part.as_str()) {
            (Some(text), _) if matches!(kind, Some("text") | None) => texts.push(text),
            (_, Some(text)) => texts.push(text),
            _ => {
                return Err(TextError::argument(format!(
                    "messages[{index}]: this model's template takes text only, not a part of \
                     type {}",
                    quoted(kind.unwrap_or("unknown"))
                )))
            }
        }
    }
    Ok(texts.join("\n"))
}

fn parsed_arguments(index: usize, text: &str) -> Result<Value> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let value: std::result::Result<Value, _> = serde_json::from_str(text);
    match value {
        Ok(value) if value.is_object() => Ok(value),
        _ => Err(TextError::argument(format!(
            "messages[{index}]: the arguments of a tool call aren't a JSON object: {}",
            quoted(text)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(content: Value, arguments: Value) -> Vec<Value> {
        vec![json!({"role": "assistant", "content": content,
            "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})]
    }

    #[test]
    fn arguments_and_content_are_converted_only_where_needed() {
        let mut messages = call(Value::Null, json!("{\"a\": 1}"));
        let before = messages.clone();
        Shape::default().apply(&mut messages).unwrap();
        assert_eq!(messages, before);

        let shape = Shape {
            string_arguments: false,
            null_content: false,
            ..Shape::default()
        };
        shape.apply(&mut messages).unwrap();
        assert_eq!(messages, call(json!(""), json!({"a": 1})));

        let shape = Shape {
            object_arguments: false,
            empty_content: false,
            ..Shape::default()
        };
        shape.apply(&mut messages).unwrap();
        assert_eq!(messages, call(Value::Null, json!("{\"a\": 1}")));
    }

    #[test]
    fn arguments_that_are_no_object_are_the_requests_fault() {
        let shape = Shape {
            string_arguments: false,
            ..Shape::default()
        };
        let error = shape
            .apply(&mut call(Value::Null, json!("{oops")))
            .unwrap_err();
        assert!(error.message.contains("messages[0]"), "{}", error.message);
        let mut empty = call(Value::Null, json!(""));
        shape.apply(&mut empty).unwrap();
        assert_eq!(empty, call(Value::Null, json!({})));
    }

    #[test]
    fn parts_are_joined_for_templates_that_take_strings() {
        let shape = Shape {
            text_parts: false,
            ..Shape::default()
        };
        let mut messages = vec![json!({"role": "user", "content":
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})];
        shape.apply(&mut messages).unwrap();
        assert_eq!(messages[0]["content"], "a\nb");
        let mut messages = vec![json!({"role": "user", "content": [{"type": "image_url"}]})];
        let error = shape.apply(&mut messages).unwrap_err();
        assert!(error.message.contains("image_url"));
    }
}
