//! How this crate says what went wrong.

/// What kind of failure; the numbers are the C ABI's return codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidArgument = 1,
    NotFound = 2,
    InvalidFile = 3,
    Unsupported = 4,
    Internal = 5,
}

/// One failure: its kind and a message that names what and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    pub code: Code,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, TextError>;

impl TextError {
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub fn file(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidFile, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Code::Unsupported, message)
    }

    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// At most 60 characters of `text`, quoted, for use in a message: a hostile
/// file must not be able to write megabytes into a log.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_cut_at_sixty_characters() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        let long = "é".repeat(1000);
        assert_eq!(quoted(&long).chars().count(), 63);
    }
}
