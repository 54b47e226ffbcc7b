//! One vocabulary shared by the two ways of reading a text: with special
//! tokens recognised, and with special tokens as ordinary text.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::{Model, Token};

/// A model behind a reference count, so that cloning a tokenizer is cheap.
#[derive(Clone)]
pub struct SharedModel(pub Arc<ModelWrapper>);

impl Model for SharedModel {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        self.0.tokenize(sequence)
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        self.0.get_vocab()
    }

    fn get_vocab_size(&self) -> usize {
        self.0.get_vocab_size()
    }

    fn save(&self, _: &Path, _: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("a shared model can't be saved".into())
    }

    fn get_trainer(&self) -> TrainerWrapper {
        self.0.get_trainer()
    }
}
