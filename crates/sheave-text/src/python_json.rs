//! `json.dumps` as Python does it, because that is what templates expect of
//! `tojson` and what models saw in training.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

const MAX_DEPTH: usize = 100;

/// The options that `tojson` takes, with Transformers' defaults.
#[derive(Clone, Debug)]
pub struct Style {
    pub ensure_ascii: bool,
    /// None: all on one line.
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            ensure_ascii: false,
            indent: None,
            item_separator: ", ".into(),
            key_separator: ": ".into(),
            sort_keys: false,
        }
    }
}

/// The `tojson` filter of Transformers' chat templates. Unlike Jinja's own it
/// leaves `<`, `>`, `&` and `'` alone.
pub fn tojson(
    state: &State,
    value: &Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let mut style = Style::default();
    let ascii: Option<bool> = kwargs.get("ensure_ascii")?;
    style.ensure_ascii = ascii.or(ensure_ascii).unwrap_or(false);
    let keyword: Option<Value> = kwargs.get("indent")?;
    if let Some(indent) = keyword.or(indent).filter(|v| !v.is_none()) {
        style.indent = Some(indent_text(&indent)?);
        style.item_separator = ",".into();
    }
    if let Some(separators) = kwargs.get::<Option<Vec<String>>>("separators")? {
        let [item, key] = <[String; 2]>::try_from(separators)
            .map_err(|_| wrong("tojson: separators are two strings"))?;
        (style.item_separator, style.key_separator) = (item, key);
    }
    style.sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let mut writer = Writer {
        out: String::new(),
        style: &style,
        state: Some(state),
    };
    writer.write(value, 0)?;
    Ok(writer.out)
}

/// One line, as `json.dumps(value, ensure_ascii=False)` gives it.
pub fn dumps(value: &serde_json::Value) -> Result<String, Error> {
    let mut writer = Writer {
        out: String::new(),
        style: &Style::default(),
        state: None,
    };
    writer.write(&Value::from(minijinja::value::Serde(value)), 0)?;
    Ok(writer.out)
}

fn indent_text(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return match text.len() {
            0..=64 => Ok(text.to_owned()),
            _ => Err(wrong("tojson: indent is longer than 64")),
        };
    }
    match i64::try_from(indent.clone()) {
        Ok(width) if width <= 64 => Ok(" ".repeat(width.max(0) as usize)),
        _ => Err(wrong("tojson: indent isn't a number up to 64")),
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

struct Writer<'a, 'template, 'env> {
    out: String,
    style: &'a Style,
    state: Option<&'a State<'template, 'env>>,
}

impl Writer<'_, '_, '_> {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(wrong("tojson: the value is nested too deeply"));
        }
        self.charge(1)?;
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(bool_name(value.is_true())),
            ValueKind::Number => self.write_number(value),
            ValueKind::String => self.write_string(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => self.write_list(value, depth)?,
            ValueKind::Map => self.write_map(value, depth)?,
            other => {
                return Err(wrong(format!(
                    "Object of type {other} is not JSON serializable"
                )))
            }
        }
        Ok(())
    }

    /// A shared value may be written many times over: without this, forty
    /// nested pairs would be written 2^40 times.
    fn charge(&self, fuel: u64) -> Result<(), Error> {
        self.state.map_or(Ok(()), |state| state.consume_fuel(fuel))
    }

    fn write_number(&mut self, value: &Value) {
        if value.is_integer() {
            self.out.push_str(&value.to_string());
        } else {
            let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
            self.out.push_str(&float_repr(number));
        }
    }

    fn write_list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut first = true;
        for item in value.try_iter()? {
            self.start_item(&mut first, depth + 1);
            self.write(&item, depth + 1)?;
        }
        self.end_items(first, depth);
        self.out.push(']');
        Ok(())
    }

    fn write_map(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('{');
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.style.sort_keys {
            keys.sort();
        }
        let mut first = true;
        for key in keys {
            self.start_item(&mut first, depth + 1);
            self.write_key(&key)?;
            self.out.push_str(&self.style.key_separator);
            self.write(&value.get_item(&key)?, depth + 1)?;
        }
        self.end_items(first, depth);
        self.out.push('}');
        Ok(())
    }

    fn write_key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.write_string(key.as_str().unwrap_or_default()),
            ValueKind::None => self.write_string("null"),
            ValueKind::Bool => self.write_string(bool_name(key.is_true())),
            ValueKind::Number => {
                self.out.push('"');
                self.write_number(key);
                self.out.push('"');
                Ok(())
            }
            other => Err(wrong(format!("keys must be str, not {other}"))),
        }
    }

    fn start_item(&mut self, first: &mut bool, depth: usize) {
        if !*first {
            self.out.push_str(&self.style.item_separator);
        }
        *first = false;
        self.new_line(depth);
    }

    fn end_items(&mut self, empty: bool, depth: usize) {
        if !empty {
            self.new_line(depth);
        }
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn write_string(&mut self, text: &str) -> Result<(), Error> {
        self.charge(text.len() as u64 / 64)?;
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.style.ensure_ascii && !c.is_ascii()) => self.escape(c),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }

    fn escape(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            self.out.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

fn bool_name(value: bool) -> &'static str {
    match value {
        true => "true",
        false => "false",
    }
}

/// Python's `repr` of a float: as Rust's, but `1e-05` and `1e+16`.
fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .into();
    }
    let text = format!("{number:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(float_repr(number), text);
        }
    }

    #[test]
    fn dumps_keeps_order_and_letters() {
        let value = json!({"b": [1, 2.0, null, true], "a": "é<\u{1}\n\""});
        let expected = "{\"b\": [1, 2.0, null, true], \"a\": \"é<\\u0001\\n\\\"\"}";
        assert_eq!(dumps(&value).unwrap(), expected);
        assert_eq!(
            dumps(&json!({"a": {}, "b": []})).unwrap(),
            "{\"a\": {}, \"b\": []}"
        );
    }
}
