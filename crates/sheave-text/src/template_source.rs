//! Which of a model's files holds its chat template.

use serde_json::Value;

use crate::error::{Code, Result, TextError};

/// The places where a template may be; "" where there is none.
#[derive(Default)]
pub struct TemplateSources<'a> {
    pub jinja_file: &'a str,
    pub tokenizer_config_json: &'a str,
    pub gguf: &'a str,
    pub gguf_tool_use: &'a str,
}

/// chat_template.jinja before tokenizer_config.json before GGUF. `for_tools`
/// prefers a template named tool_use, where the chosen place has one.
pub fn choose_template(sources: &TemplateSources, for_tools: bool) -> Result<String> {
    if !sources.jinja_file.is_empty() {
        return Ok(sources.jinja_file.into());
    }
    if !sources.tokenizer_config_json.trim().is_empty() {
        let config: Value = serde_json::from_str(sources.tokenizer_config_json)
            .map_err(|e| TextError::file(format!("tokenizer_config.json: {e}")))?;
        if let Some(text) = template_in_config(&config["chat_template"], for_tools)? {
            return Ok(text);
        }
    }
    if for_tools && !sources.gguf_tool_use.is_empty() {
        return Ok(sources.gguf_tool_use.into());
    }
    if !sources.gguf.is_empty() {
        return Ok(sources.gguf.into());
    }
    Err(TextError::new(
        Code::NotFound,
        "the model has no chat template",
    ))
}

fn template_in_config(value: &Value, for_tools: bool) -> Result<Option<String>> {
    let named = |name: &str| match value {
        Value::Array(list) => {
            let entry = list.iter().find(|entry| entry["name"] == name)?;
            entry["template"].as_str()
        }
        Value::Object(map) => map.get(name)?.as_str(),
        _ => None,
    };
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => {
            let tool_use = named("tool_use").filter(|_| for_tools);
            let text = tool_use.or_else(|| named("default"));
            let text = text.ok_or_else(|| {
                TextError::file("tokenizer_config.json: chat_template has no \"default\"")
            })?;
            Ok(Some(text.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_has_one_wins() {
        let config = r#"{"chat_template": "config"}"#;
        let mut sources = TemplateSources {
            jinja_file: "jinja",
            tokenizer_config_json: config,
            gguf: "gguf",
            gguf_tool_use: "tools",
        };
        assert_eq!(choose_template(&sources, true).unwrap(), "jinja");
        sources.jinja_file = "";
        assert_eq!(choose_template(&sources, true).unwrap(), "config");
        sources.tokenizer_config_json = "{}";
        assert_eq!(choose_template(&sources, true).unwrap(), "tools");
        assert_eq!(choose_template(&sources, false).unwrap(), "gguf");
        let none = choose_template(&TemplateSources::default(), false);
        assert_eq!(none.unwrap_err().code, Code::NotFound);
    }

    #[test]
    fn a_list_of_templates_is_chosen_from_by_name() {
        let config = r#"{"chat_template": [{"name": "default", "template": "d"},
            {"name": "tool_use", "template": "t"}]}"#;
        let sources = TemplateSources {
            tokenizer_config_json: config,
            ..TemplateSources::default()
        };
        assert_eq!(choose_template(&sources, false).unwrap(), "d");
        assert_eq!(choose_template(&sources, true).unwrap(), "t");
        let nameless = TemplateSources {
            tokenizer_config_json: r#"{"chat_template": [1]}"#,
            ..TemplateSources::default()
        };
        assert!(choose_template(&nameless, false).is_err());
    }
}
