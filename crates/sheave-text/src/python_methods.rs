//! Python's methods of strings, lists and dicts, as templates call them. The
//! crate that knows them allocates what a template asks for before the fuel
//! is charged, so the price is taken here, beforehand.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

pub fn python_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let bytes = match (value.as_str(), method) {
        (Some(text), "replace") => replaced_bytes(text, args),
        (Some(text), "format") => formatted_bytes(text, args)?,
        (Some(text), "join") => joined_bytes(state, text, args)?,
        (Some(text), _) => text.len(),
        _ => 0,
    };
    state.consume_fuel(bytes as u64 / 64)?;
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
}

fn length(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, str::len)
}

fn replaced_bytes(text: &str, args: &[Value]) -> usize {
    let from = args.first().and_then(Value::as_str).unwrap_or_default();
    let count = text.matches(from).count();
    count
        .saturating_mul(length(args.get(1)))
        .saturating_add(text.len())
}

fn joined_bytes(state: &State, separator: &str, args: &[Value]) -> Result<usize, Error> {
    let mut bytes = 0usize;
    for item in args
        .first()
        .map(Value::try_iter)
        .transpose()?
        .into_iter()
        .flatten()
    {
        state.consume_fuel(1)?;
        bytes = bytes.saturating_add(length(Some(&item)) + separator.len());
    }
    Ok(bytes)
}

/// A width is a run of digits, in the format or in an argument.
fn formatted_bytes(format: &str, args: &[Value]) -> Result<usize, Error> {
    let wrong = |what: &str| Error::new(ErrorKind::InvalidOperation, format!("format: {what}"));
    let runs = format.split(|c: char| !c.is_ascii_digit());
    if runs.map(str::len).any(|digits| digits > 5) {
        return Err(wrong("too wide"));
    }
    let mut bytes = 100;
    for arg in args {
        match arg.kind() {
            ValueKind::String => bytes += length(Some(arg)),
            ValueKind::Number if i32::try_from(arg.clone()).map_or(true, |n| n < 100_000) => {}
            ValueKind::Bool | ValueKind::None | ValueKind::Undefined => {}
            ValueKind::Number if !format.contains(":{") && !format.contains(".{") => {}
            _ => return Err(wrong("takes texts and small numbers")),
        }
    }
    Ok(bytes.saturating_mul(format.matches('{').count()))
}
