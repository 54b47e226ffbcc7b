//! A model's chat template: Jinja as Transformers sets it up, with a budget, so
//! that a hostile template can neither hang nor exhaust memory or stack.

use std::collections::BTreeMap;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use serde_json::Value as Json;

use crate::chat_shape::Shape;
use crate::error::{quoted, Result, TextError};
use crate::python_json::tojson;
use crate::python_methods::python_method;
use crate::template_limits::{check_source, on_large_stack, render_fuel, PROBE_FUEL};

const NAME: &str = "chat";

/// One conversation to render; the texts are JSON, "" where there is nothing.
#[derive(Default)]
pub struct ChatRequest<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub extra: &'a str,
    pub add_generation_prompt: bool,
    /// What `strftime_now` takes for now, in Unix seconds; None is the clock.
    pub now_s: Option<i64>,
}

pub struct ChatTemplate {
    env: Environment<'static>,
    bos: String,
    eos: String,
    shape: Shape,
}

impl ChatTemplate {
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self> {
        check_source(source)?;
        on_large_stack(PROBE_FUEL, || Self::compile(source, bos, eos))
    }

    fn compile(source: &str, bos: &str, eos: &str) -> Result<Self> {
        let mut template = Self {
            env: environment(source)?,
            bos: bos.into(),
            eos: eos.into(),
            shape: Shape::default(),
        };
        template.shape = Shape::probe(&|messages, tools| {
            let context = template.context(messages, tools, false, Some(0));
            template.render_values(context, PROBE_FUEL).ok()
        });
        Ok(template)
    }

    pub fn render(&self, request: &ChatRequest) -> Result<String> {
        let mut messages = parse("messages", request.messages)?;
        let Json::Array(list) = &mut messages else {
            return Err(TextError::argument("messages: expected a JSON array"));
        };
        self.shape.apply(list)?;
        let tools = parse_or("tools", request.tools, Json::Null)?;
        if !tools.is_array() && !tools.is_null() {
            return Err(TextError::argument("tools: expected a JSON array"));
        }
        let extra = parse_or("extra", request.extra, Json::Object(Default::default()))?;
        let Json::Object(extra) = extra else {
            return Err(TextError::argument("extra: expected a JSON object"));
        };
        let generate = request.add_generation_prompt;
        let mut context = self.context(&messages, &tools, generate, request.now_s);
        for (key, value) in &extra {
            if matches!(key.as_str(), "messages" | "tools" | "add_generation_prompt") {
                return Err(TextError::argument(format!(
                    "extra: {} isn't an extra argument",
                    quoted(key)
                )));
            }
            context.push((key.clone(), Value::from(Serde(value))));
        }
        let texts = [request.messages, request.tools, request.extra];
        let fuel = render_fuel(texts.iter().map(|text| text.len()).sum());
        on_large_stack(fuel, || self.render_values(context, fuel).map_err(describe))
    }

    fn context(
        &self,
        messages: &Json,
        tools: &Json,
        generate: bool,
        now_s: Option<i64>,
    ) -> Vec<(String, Value)> {
        let strftime = Value::from_function(move |format: &str| strftime_now(format, now_s));
        let mut context = vec![
            ("messages".into(), Value::from(Serde(messages))),
            ("tools".into(), Value::from(Serde(tools))),
            ("documents".into(), Value::from(())),
            ("add_generation_prompt".into(), Value::from(generate)),
            ("strftime_now".into(), strftime),
        ];
        for (name, token) in [("bos_token", &self.bos), ("eos_token", &self.eos)] {
            if !token.is_empty() {
                context.push((name.into(), Value::from(token)));
            }
        }
        context
    }

    /// Fuel is a setting of the environment, hence the copy (a few tables of
    /// pointers).
    fn render_values(
        &self,
        context: Vec<(String, Value)>,
        fuel: u64,
    ) -> std::result::Result<String, Error> {
        let mut env = self.env.clone();
        env.set_fuel(Some(fuel));
        let context: BTreeMap<String, Value> = context.into_iter().collect();
        env.get_template(NAME)?.render(context)
    }

    #[cfg(test)]
    fn shape(&self) -> Shape {
        self.shape
    }
}

fn environment(source: &str) -> Result<Environment<'static>> {
    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(|e| TextError::new(crate::error::Code::Internal, e.to_string()))?;
    env.set_syntax(syntax);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_unknown_method_callback(python_method);
    env.set_recursion_limit(100);
    // Not in Jinja, and slow in a way that fuel doesn't see.
    env.remove_filter("chain");
    env.remove_filter("zip");
    env.add_filter("tojson", tojson);
    env.add_filter("e", escape);
    env.add_filter("escape", escape);
    env.add_function("raise_exception", raise_exception);
    env.add_template_owned(NAME, without_generation_tags(source))
        .map_err(|e| TextError::file(format!("chat template: {}", located(&e))))?;
    Ok(env)
}

fn parse(name: &str, json: &str) -> Result<Json> {
    serde_json::from_str(json).map_err(|e| TextError::argument(format!("{name}: {e}")))
}

fn parse_or(name: &str, json: &str, empty: Json) -> Result<Json> {
    match json.trim().is_empty() {
        true => Ok(empty),
        false => parse(name, json),
    }
}

/// What a template said through `raise_exception`, word for word.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: &Value) -> std::result::Result<Value, Error> {
    let message = message.as_str().unwrap_or("the chat template refused");
    let error = Error::new(ErrorKind::InvalidOperation, "raised by the template");
    Err(error.with_source(Raised(message.into())))
}

fn describe(error: Error) -> TextError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(each) = cause {
        if let Some(Raised(message)) = each.downcast_ref::<Raised>() {
            return TextError::argument(message.clone());
        }
        let inner = each.downcast_ref::<Error>();
        if inner.is_some_and(|e| e.kind() == ErrorKind::OutOfFuel) {
            return TextError::argument(
                "the chat template needs more work or memory than a render may take",
            );
        }
        cause = each.source();
    }
    TextError::argument(format!("chat template: {}", located(&error)))
}

fn located(error: &Error) -> String {
    let what = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let shown: String = what.chars().take(300).collect();
    match error.line() {
        Some(line) => format!("line {line}: {shown}"),
        None => shown,
    }
}

/// HTML escapes as Python's markupsafe spells them.
fn escape(value: Value) -> std::result::Result<Value, Error> {
    if value.is_safe() {
        return Ok(value);
    }
    let text = match value.kind() {
        // Printing these could take forever: they may share their parts.
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Plain => {
            let what = "escape takes text; use tojson";
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
        _ => value.to_string(),
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    Ok(Value::from_safe_string(out))
}

/// Local time, by the C library, as Python's strftime does.
fn strftime_now(format: &str, now_s: Option<i64>) -> std::result::Result<String, Error> {
    let wrong =
        |what: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {what}"));
    if format.is_empty() {
        return Ok(String::new());
    }
    let format = std::ffi::CString::new(format).map_err(|_| wrong("a NUL in the format"))?;
    let clock = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| d.as_secs() as i64)
    };
    let seconds = now_s.unwrap_or_else(clock) as libc::time_t;
    let mut buffer = [0u8; 4096];
    // SAFETY: both calls write only into the locals they are given, of the
    // sizes they are given; the format ends with NUL.
    let written = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut local).is_null() {
            return Err(wrong("the time is out of range"));
        }
        let out = buffer.as_mut_ptr().cast();
        libc::strftime(out, buffer.len(), format.as_ptr(), &local)
    };
    if written == 0 {
        return Err(wrong("the result is too long"));
    }
    Ok(String::from_utf8_lossy(&buffer[..written]).into_owned())
}

/// Transformers marks what the assistant wrote with `{% generation %}`; for a
/// render it means nothing.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}") else {
            break;
        };
        let tag = &rest[start + 2..start + length];
        let name = tag.trim_matches(|c: char| c.is_ascii_whitespace() || c == '-' || c == '+');
        let statement = match name {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        match statement {
            Some(statement) => {
                out.push_str(&rest[..start + 2]);
                out.push_str(&tag.replace(name, &format!(" {statement} ")));
                out.push_str("%}");
                rest = &rest[start + length + 2..];
            }
            None => {
                out.push_str(&rest[..start + 2]);
                rest = &rest[start + 2..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str) -> Result<String> {
        let template = ChatTemplate::new(source, "<s>", "</s>")?;
        template.render(&ChatRequest {
            messages: r#"[{"role": "user", "content": "it's <b>\"é\"</b>"}]"#,
            ..ChatRequest::default()
        })
    }

    #[test]
    fn text_is_printed_as_it_is_and_escaped_as_python_does() {
        assert_eq!(
            render("{{ messages[0].content }}").unwrap(),
            "it's <b>\"é\"</b>"
        );
        let escaped = "it&#39;s &lt;b&gt;&#34;é&#34;&lt;/b&gt;";
        assert_eq!(render("{{ messages[0].content | e }}").unwrap(), escaped);
        let dumped = "\"it's <b>\\\"\\u00e9\\\"</b>\"";
        let source = "{{ messages[0].content | tojson(ensure_ascii=true) }}";
        assert_eq!(render(source).unwrap(), dumped);
    }

    #[test]
    fn a_raised_message_is_the_error() {
        let error = render("{{ raise_exception('roles must alternate') }}").unwrap_err();
        assert_eq!(error.message, "roles must alternate");
        let source = "{% macro m() %}{{ raise_exception('inside') }}{% endmacro %}{{ m() }}";
        assert_eq!(render(source).unwrap_err().message, "inside");
    }

    #[test]
    fn generation_tags_keep_their_whitespace_control() {
        assert_eq!(
            render("a {%- generation -%} b {%- endgeneration %} c").unwrap(),
            "ab c"
        );
        assert_eq!(render("{% generation %}x{%endgeneration%}").unwrap(), "x");
    }

    #[test]
    fn a_hostile_template_is_stopped() {
        for source in [
            "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
            "{% include 'chat' %}",
            "{% extends 'chat' %}",
            "{% import 'chat' as c %}{{ c }}",
            "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
            "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
            "{{ 'a' * 10000000000 }}",
            "{{ 'a'|indent(10000000000) }}",
            "{{ 'a'|center(10000000000) }}",
            "{{ 'a'.center(10000000000) }}",
            "{{ '%10000000000d'|format(1) }}",
            "{{ '%.10000000000f'|format(1.5) }}",
            "{{ '{:10000000000}'.format(1) }}",
            "{{ '{:{}}'.format(1, 10000000000) }}",
            "{{ '{:{w}}'.format(1, w=10000000000) }}",
            "{{ '{:.{}f}'.format(1.5, 10000000000) }}",
            "{{ ('a' * 10000000).replace('a', 'b' * 10000000) }}",
            "{{ ('a' * 10000000).join([1] * 10000) }}",
            "{{ ('{0}' * 10000).format('a' * 10000000) }}",
            "{{ range(10000000000)|list }}",
            "{{ ([0] * 10000000000)|list }}",
            "{{ strftime_now('%1000000000Y') }}",
        ] {
            assert!(render(source).is_err(), "{source}");
        }
    }

    #[test]
    fn shared_values_are_not_written_out_without_end() {
        let double = "{% set ns = namespace(l=[1]) %}{% for i in range(90) %}\
            {% set ns.l = [ns.l, ns.l] %}{% endfor %}";
        for each in [
            "ns.l|tojson",
            "ns.l|e",
            "'{}'.format(ns.l)",
            "raise_exception(ns.l)",
        ] {
            let source = format!("{double}{{{{ {each} }}}}");
            assert!(render(&source).is_err(), "{each}");
        }
    }

    #[test]
    fn deep_syntax_and_deep_values_do_not_overflow_the_stack() {
        let _ = render(&format!(
            "{{{{ {}1{} }}}}",
            "(".repeat(100_000),
            ")".repeat(100_000)
        ));
        let _ = render(&format!("{{{{ {}1 }}}}", "not ".repeat(100_000)));
        let _ = render(&format!("{{{{ 1{} }}}}", " ~ 1".repeat(100_000)));
        let _ = render(&format!("{{{{ a{} }}}}", ".a".repeat(100_000)));
        let _ = render(&format!("{{{{ a{} }}}}", "|e".repeat(100_000)));
        let _ = render(&"{% if a %}".repeat(50_000));
        let _ = render(&format!(
            "{}{}",
            "{% if a %}".repeat(20_000),
            "{% endif %}".repeat(20_000)
        ));
        let nest = "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% for j in range(20) %}{% set ns.l = [ns.l] %}{% endfor %}{% endfor %}";
        for use_it in [
            "",
            "{{ ns.l }}",
            "{{ ns.l|tojson }}",
            "{{ ns.l == [ns.l] }}",
            "{{ ns.l|string|length }}",
        ] {
            let _ = render(&format!("{nest}{use_it}"));
        }
        let mapped = nest.replace("[ns.l]", "{'a': ns.l}");
        let _ = render(&mapped);
        let added = nest.replace("[ns.l]", "ns.l + [1]");
        let _ = render(&format!("{added}{{{{ ns.l|length }}}}"));
    }

    #[test]
    fn templates_that_want_objects_get_objects() {
        let source = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}\
            {% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}\
            {% endfor %}{% endfor %}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        let shape = template.shape();
        assert!(shape.object_arguments && !shape.string_arguments && !shape.null_content);
        let text = template.render(&ChatRequest {
            messages: r#"[{"role": "assistant", "content": null, "tool_calls":
                [{"function": {"name": "f", "arguments": "{\"city\": \"Oslo\"}"}}]}]"#,
            ..ChatRequest::default()
        });
        assert_eq!(text.unwrap(), "city=Oslo");
    }

    #[test]
    fn templates_that_want_strings_get_strings() {
        let source = "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}\
            {{ c.function.name + ' ' + c.function.arguments }}{% endfor %}\
            {% else %}{{ m.content }}{% endif %}{% endfor %}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        let shape = template.shape();
        assert!(!shape.object_arguments && shape.string_arguments);
        assert!(shape.null_content && !shape.empty_content);
        let text = template.render(&ChatRequest {
            messages: r#"[{"role": "assistant", "content": "", "tool_calls":
                [{"function": {"name": "f", "arguments": {"city": "Oslo"}}}]}]"#,
            ..ChatRequest::default()
        });
        assert_eq!(text.unwrap(), "f {\"city\": \"Oslo\"}");
    }

    #[test]
    fn malformed_requests_name_the_field() {
        let template = ChatTemplate::new("x", "", "").unwrap();
        let error = |request: ChatRequest| template.render(&request).unwrap_err().message;
        let request = |messages| ChatRequest {
            messages,
            ..ChatRequest::default()
        };
        assert!(error(request("")).starts_with("messages: "));
        assert!(error(request("{}")).starts_with("messages: "));
        assert!(error(request("[1]")).starts_with("messages[0]"));
        let with = |tools, extra| ChatRequest {
            messages: "[]",
            tools,
            extra,
            ..ChatRequest::default()
        };
        assert!(error(with("{", "")).starts_with("tools: "));
        assert!(error(with("", "[]")).starts_with("extra: "));
        assert!(error(with("", r#"{"tools": 1}"#)).contains("tools"));
    }
}
