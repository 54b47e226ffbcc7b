// One name for a tensor whatever file it comes from: Hugging Face's, with the
// prefixes of multimodal checkpoints taken off. No MLX.
#pragma once

#include <string>
#include <string_view>

namespace sheave {

/// "model.language_model.layers.0.x" and "language_model.model.layers.0.x" to
/// "model.layers.0.x"; other names stay.
std::string canonical_name(std::string_view name);

/// GGUF's name to Hugging Face's: "blk.3.attn_q.weight" to
/// "model.layers.3.self_attn.q_proj.weight". The norms' names mean different
/// things in different families: `model_type` decides. Names that aren't known
/// stay.
std::string canonical_gguf_name(
    std::string_view name,
    std::string_view model_type);

} // namespace sheave
