// GGUF metadata to ModelConfig.

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sheave/base/file_error.h"
#include "sheave/weights/model_config.h"
#include "sheave/weights/model_limits.h"
#include "sheave/weights/tensor_info.h"
#include "sheave/weights/text_assets.h"

namespace sheave {
namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// The metadata of one architecture, each value checked.
class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  std::optional<int> integer(const std::string& key, IntegerRange range) const {
    const auto value = file_.integer(prefix_ + key);
    if (!value) {
      return std::nullopt;
    }
    if (*value < range.low || *value > range.high) {
      fail(key, std::to_string(*value), range_text(range));
    }
    return static_cast<int>(*value);
  }

  int required(const std::string& key, IntegerRange range) const {
    const auto value = integer(key, range);
    if (!value) {
      fail(key, "missing", range_text(range));
    }
    return *value;
  }

  std::optional<double> number(const std::string& key, NumberRange range)
      const {
    const auto value = file_.number(prefix_ + key);
    // Written so that NaN fails.
    if (value && !(*value >= range.low && *value <= range.high)) {
      fail(key, number_text(*value), range_text(range));
    }
    return value;
  }

  std::optional<std::string> string(const std::string& key) const {
    return file_.string(prefix_ + key);
  }

  /// One flag per layer, or empty if the key is absent or holds one number.
  const std::vector<int64_t>& list(const std::string& key) const {
    return file_.integers(prefix_ + key);
  }

  bool is_list(const std::string& key) const {
    return file_.is_list(prefix_ + key);
  }

  /// Throws unless the key is absent or its value is what it would default to.
  void only(const std::string& key, double value) const {
    const auto found = file_.number(prefix_ + key);
    if (found && *found != value) {
      fail(key, number_text(*found), number_text(value) + " (not supported)");
    }
  }

  const TensorInfo* tensor(const std::string& name) const {
    for (const TensorInfo& tensor : file_.tensors()) {
      if (tensor.name == name) {
        return &tensor;
      }
    }
    return nullptr;
  }

  [[noreturn]] void fail(
      const std::string& key,
      const std::string& found,
      const std::string& expected) const {
    throw FileError(
        file_.where() + ": key " + prefix_ + key + " is " + found +
        ", expected " + expected);
  }

  const std::string& where() const {
    return file_.where();
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

/// GGUF's architecture names to Hugging Face's model types.
std::string model_type_of(const std::string& architecture) {
  return architecture == "gemma3"     ? "gemma3_text"
         : architecture == "mistral3" ? "mistral"
                                      : architecture;
}

int vocabulary_size(const GgufKeys& read) {
  const TensorInfo* table = read.tensor("token_embd.weight");
  if (table == nullptr) {
    throw FileError(
        read.where() + ": tensor token_embd.weight is missing, expected it");
  }
  const int64_t size = table->shape.size() == 2 ? table->shape[0] : 0;
  if (size < kVocabulary.low || size > kVocabulary.high) {
    throw FileError(
        read.where() + ": tensor token_embd.weight is " +
        shape_text(table->shape) + ", expected [vocabulary, hidden]");
  }
  return static_cast<int>(size);
}

void read_shape(const GgufKeys& read, ModelConfig& config) {
  config.vocab_size = vocabulary_size(read);
  config.hidden_size = read.required("embedding_length", kWidth);
  config.intermediate_size = read.required("feed_forward_length", kWidth);
  config.num_hidden_layers = read.required("block_count", kLayers);
  config.num_attention_heads = read.required("attention.head_count", kHeads);
  config.num_key_value_heads = read.integer("attention.head_count_kv", kHeads)
                                   .value_or(config.num_attention_heads);
  const auto head_dim = read.integer("attention.key_length", kHeadDim);
  config.head_dim =
      head_dim.value_or(config.hidden_size / config.num_attention_heads);
  if (config.head_dim < kHeadDim.low || config.head_dim > kHeadDim.high) {
    read.fail(
        "attention.key_length",
        std::to_string(config.head_dim),
        range_text(kHeadDim));
  }
  const auto value_dim = read.integer("attention.value_length", kHeadDim);
  if (value_dim && *value_dim != config.head_dim) {
    read.fail(
        "attention.value_length",
        std::to_string(*value_dim),
        "key_length, " + std::to_string(config.head_dim));
  }
  config.max_position_embeddings = read.required("context_length", kContext);
  const std::string eps_key = "attention.layer_norm_rms_epsilon";
  const auto eps = read.number(eps_key, kEpsilon);
  if (!eps) {
    read.fail(eps_key, "missing", range_text(kEpsilon));
  }
  config.rms_norm_eps = static_cast<float>(*eps);
}

/// The fraction whose product with head_dim, cut to an integer, is dims.
double rotary_fraction(int dims, int head_dim) {
  const double fraction = static_cast<double>(dims) / head_dim;
  return static_cast<int>(fraction * head_dim) == dims
             ? fraction
             : std::nextafter(fraction, 1.0);
}

void read_yarn(const GgufKeys& read, RopeParameters& rope) {
  rope.type = RopeType::kYarn;
  rope.beta_fast =
      read.number("rope.scaling.yarn_beta_fast", kRopeFactor).value_or(32);
  rope.beta_slow =
      read.number("rope.scaling.yarn_beta_slow", kRopeFactor).value_or(1);
  // DeepSeek's way to say how much attention is sharpened.
  const auto multiplier =
      read.number("rope.scaling.yarn_log_multiplier", {0, kRopeFactor.high});
  if (multiplier.value_or(0) != 0) {
    rope.mscale = 1;
    rope.mscale_all_dim = multiplier;
  }
  read.only("rope.scaling.yarn_ext_factor", 1);
  read.only("rope.scaling.yarn_attn_factor", 1);
}

void read_scaling(const GgufKeys& read, RopeParameters& rope) {
  const std::string key = "rope.scaling.type";
  // A factor without a type scales linearly.
  const std::string type = read.string(key).value_or("linear");
  if (type != "none" && type != "linear" && type != "yarn") {
    read.fail(key, printable(type), "none, linear or yarn");
  }
  constexpr NumberRange kFactor = {0, kRopeFactor.high};
  const auto scale_linear = read.number("rope.scale_linear", kFactor);
  const double factor = read.number("rope.scaling.factor", kFactor)
                            .value_or(scale_linear.value_or(0));
  if (type == "none" || factor == 0 || factor == 1) {
    return;
  }
  rope.factor = factor;
  rope.type = RopeType::kLinear;
  if (type == "yarn") {
    read_yarn(read, rope);
  }
}

void read_rope(const GgufKeys& read, bool traditional, ModelConfig& config) {
  const bool gemma = config.model_type == "gemma3_text";
  RopeParameters& rope = config.rope;
  rope.theta = read.number("rope.freq_base", kRopeTheta).value_or(1e4);
  const auto dims = read.integer("rope.dimension_count", {2, config.head_dim});
  rope.partial_rotary_factor =
      rotary_fraction(dims.value_or(config.head_dim), config.head_dim);
  rope.traditional = traditional;
  rope.original_max_position_embeddings =
      read.integer("rope.scaling.original_context_length", kContext)
          .value_or(config.max_position_embeddings);
  config.rope_local = rope;
  if (gemma) {
    config.rope_local.theta =
        read.number("rope.freq_base_swa", kRopeTheta).value_or(1e4);
  }
  read.only("rope.scaling.attn_factor", 1);
  read_scaling(read, rope);
  if (!gemma) { // Gemma's scaling is for full layers only
    config.rope_local = rope;
  }
}

/// attention.sliding_window_pattern: a flag per layer, or each nth is full.
void read_gemma3_layers(const GgufKeys& read, ModelConfig& config) {
  const std::string key = "attention.sliding_window_pattern";
  const auto layers = static_cast<size_t>(config.num_hidden_layers);
  std::vector<int64_t> slides;
  if (read.is_list(key)) {
    slides = read.list(key);
    if (slides.size() < layers) {
      read.fail(
          key,
          "a list of " + std::to_string(slides.size()),
          "one flag for each of " + std::to_string(layers) + " layers");
    }
  } else {
    const int pattern = read.integer(key, kLayers).value_or(6);
    for (int i = 0; i < config.num_hidden_layers; ++i) {
      slides.push_back((i + 1) % pattern != 0);
    }
  }
  for (size_t i = 0; i < layers; ++i) {
    config.layer_types[i] =
        slides[i] != 0 ? LayerType::kSliding : LayerType::kFull;
  }
}

void read_gemma3(const GgufKeys& read, ModelConfig& config) {
  config.hidden_act = HiddenAct::kGeluTanh;
  config.sliding_window = read.integer("attention.sliding_window", kContext);
  if (config.sliding_window) {
    read_gemma3_layers(read, config);
  }
  // The 27B model scales queries by its hidden size, the others by head_dim.
  constexpr int kLayersOf27B = 62;
  config.query_pre_attn_scalar = static_cast<float>(
      config.num_hidden_layers == kLayersOf27B
          ? config.hidden_size / config.num_attention_heads
          : config.head_dim);
  const auto cap =
      read.number("final_logit_softcapping", {0, kRopeFactor.high});
  if (cap.value_or(0) != 0) {
    config.final_logit_softcapping = static_cast<float>(*cap);
  }
}

/// What files of known architectures may say that no model of ours does.
void refuse_unsupported(const GgufFile& file, const GgufKeys& read) {
  const int64_t parts = file.integer("split.count").value_or(1);
  if (parts > 1) {
    throw FileError(
        file.where() + ": key split.count is " + std::to_string(parts) +
        ", expected 1 (join the parts with llama-gguf-split --merge)");
  }
  read.only("expert_count", 0);
  read.only("attention.temperature_scale", 0);
}

} // namespace

ModelConfig config_from_gguf(const GgufFile& file) {
  const std::string key = "general.architecture";
  const std::string architecture = file.string(key).value_or("");
  if (architecture.empty() || architecture != printable(architecture)) {
    throw FileError(
        file.where() + ": key " + key + " is \"" + printable(architecture) +
        "\", expected the name of an architecture");
  }
  ModelConfig config;
  config.model_type = model_type_of(architecture);
  if (!knows_model_type(config.model_type)) {
    return config;
  }
  const GgufKeys read(file, architecture);
  refuse_unsupported(file, read);
  read_shape(read, config);
  config.layer_types.assign(
      static_cast<size_t>(config.num_hidden_layers),
      LayerType::kFull);
  // These files' q and k rows are interleaved for the older form of RoPE.
  const bool traditional =
      architecture == "llama" || architecture == "mistral3";
  read_rope(read, traditional, config);
  config.tie_word_embeddings = read.tensor("output.weight") == nullptr;
  config.attention_bias = read.tensor("blk.0.attn_q.bias") != nullptr;
  config.mlp_bias = read.tensor("blk.0.ffn_gate.bias") != nullptr;
  if (config.model_type == "gemma3_text") {
    read_gemma3(read, config);
  }
  config.bos_token_id = gguf_token_id(file, "tokenizer.ggml.bos_token_id");
  if (const auto eos = gguf_token_id(file, "tokenizer.ggml.eos_token_id")) {
    config.eos_token_id.push_back(*eos);
  }
  check_config(config, file.where());
  return config;
}

} // namespace sheave
