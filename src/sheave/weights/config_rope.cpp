#include "sheave/weights/config_rope.h"

#include <string>

namespace sheave {
namespace {

RopeType parse_rope_type(const JsonObject& read) {
  const std::string key =
      read.find("rope_type") != nullptr ? "rope_type" : "type";
  const auto name = read.string(key).value_or("default");
  if (name == "default") {
    return RopeType::kDefault;
  }
  if (name == "linear") {
    return RopeType::kLinear;
  }
  if (name == "llama3") {
    return RopeType::kLlama3;
  }
  if (name == "yarn") {
    return RopeType::kYarn;
  }
  read.fail(key, "default, linear, llama3 or yarn");
}

/// A factor that counts as absent if it is 0, as in Transformers.
std::optional<double> factor_or_zero(
    const JsonObject& read,
    const std::string& key) {
  const auto value = read.number(key, {0, kRopeFactor.high});
  return value == 0.0 ? std::nullopt : value;
}

void read_yarn(const JsonObject& read, RopeParameters& rope) {
  rope.beta_fast = factor_or_zero(read, "beta_fast").value_or(32);
  rope.beta_slow = factor_or_zero(read, "beta_slow").value_or(1);
  rope.attention_factor = read.number("attention_factor", kRopeFactor);
  rope.mscale = factor_or_zero(read, "mscale");
  rope.mscale_all_dim = factor_or_zero(read, "mscale_all_dim");
  rope.truncate = read.boolean("truncate").value_or(true);
}

/// Reads what `read` says over `rope`'s defaults: an entry of rope_parameters
/// (with rope_theta) or of the older rope_scaling (without).
void read_rope(const JsonObject& read, int context, RopeParameters& rope) {
  rope.type = parse_rope_type(read);
  rope.theta = read.number("rope_theta", kRopeTheta).value_or(rope.theta);
  rope.partial_rotary_factor = read.number("partial_rotary_factor", kFraction)
                                   .value_or(rope.partial_rotary_factor);
  if (rope.type == RopeType::kDefault) {
    return;
  }
  rope.original_max_position_embeddings =
      read.integer("original_max_position_embeddings", kContext)
          .value_or(rope.original_max_position_embeddings);
  const auto factor = read.number("factor", kRopeFactor);
  if (!factor && rope.type != RopeType::kYarn) {
    read.fail("factor", range_text(kRopeFactor));
  }
  rope.factor = factor.value_or(
      static_cast<double>(context) / rope.original_max_position_embeddings);
  if (rope.type == RopeType::kYarn) {
    read_yarn(read, rope);
  }
  if (rope.type == RopeType::kLlama3) {
    rope.low_freq_factor =
        read.number("low_freq_factor", kRopeFactor).value_or(1);
    rope.high_freq_factor =
        read.number("high_freq_factor", kRopeFactor).value_or(4);
  }
}

} // namespace

void read_rope_parameters(const JsonObject& read, ModelConfig& config) {
  const bool gemma = config.model_type == "gemma3_text";
  const int context = config.max_position_embeddings;
  config.rope.theta =
      read.number("rope_theta", kRopeTheta).value_or(gemma ? 1e6 : 1e4);
  config.rope.partial_rotary_factor =
      read.number("partial_rotary_factor", kFraction).value_or(1);
  config.rope.original_max_position_embeddings = context;
  config.rope_local = config.rope;
  if (gemma) {
    config.rope_local.theta =
        read.number("rope_local_base_freq", kRopeTheta).value_or(1e4);
  }
  // Only Gemma tells the layers apart here: its scaling is for full ones.
  const auto read_full = [&](const JsonObject& from) {
    read_rope(from, context, config.rope);
    if (!gemma) {
      config.rope_local = config.rope;
    }
  };
  if (const auto scaling = read.object("rope_scaling")) {
    read_full(*scaling);
  }
  if (const auto current = read.object("rope_parameters")) {
    const auto full = current->object("full_attention");
    const auto sliding = current->object("sliding_attention");
    if (full) {
      read_rope(*full, context, config.rope);
    }
    if (sliding) {
      read_rope(*sliding, context, config.rope_local);
    }
    if (!full && !sliding) {
      read_full(*current);
    }
  }
}

} // namespace sheave
