#include "sheave/engine/model_summary.h"

#include <algorithm>
#include <map>

#include "sheave/models/registry.h"
#include "sheave/text/chat_template.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

bool is_supported(const std::string& model_type) {
  const auto types = model_types();
  return std::find(types.begin(), types.end(), model_type) != types.end();
}

/// Elements as the model counts them: packed words hold several.
int64_t parameters_of(
    const CheckpointTensor& tensor,
    const ModelConfig& config) {
  const int64_t elements = element_count(tensor.info.shape);
  const std::string& name = tensor.canonical_name;
  if (name.ends_with(".scales") || name.ends_with(".biases")) {
    return 0;
  }
  if (tensor.info.type != "U32" || !config.quantization) {
    return elements;
  }
  const std::string module = name.substr(0, name.rfind('.'));
  const auto& overrides = config.quantization->overrides;
  const auto found = overrides.find(module);
  const int bits = found != overrides.end() && found->second
                       ? found->second->bits
                       : config.quantization->all.bits;
  return elements * 32 / bits;
}

/// "Q4_1 63 %, Q8_0 37 %", or what config.json says for MLX's quantization.
std::string quantization_text(
    const Checkpoint& checkpoint,
    const ModelSummary& summary) {
  if (const auto& quantization = checkpoint.config().quantization) {
    return std::to_string(quantization->all.bits) + "-bit affine, groups of " +
           std::to_string(quantization->all.group_size) +
           (quantization->overrides.empty() ? "" : ", mixed per layer");
  }
  std::map<std::string, uint64_t> bytes;
  for (const TensorSummary& tensor : summary.tensors) {
    if (tensor.shape.size() > 1) {
      bytes[tensor.type] += tensor.bytes;
    }
  }
  std::vector<std::pair<std::string, uint64_t>> order(
      bytes.begin(),
      bytes.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  uint64_t total = 0;
  for (const auto& [type, count] : order) {
    total += count;
  }
  std::string text;
  for (const auto& [type, count] : order) {
    text += (text.empty() ? "" : ", ") + type + " " +
            std::to_string((count * 100 + total / 2) / total) + " %";
  }
  return text;
}

void add_tensors(const Checkpoint& checkpoint, ModelSummary& summary) {
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    summary.parameters += parameters_of(tensor, checkpoint.config());
    summary.bytes += tensor.info.bytes;
    summary.tensors.push_back(
        {.name = tensor.canonical_name,
         .stored_name = tensor.info.name,
         .type = tensor.info.type,
         .shape = tensor.info.shape,
         .bytes = tensor.info.bytes});
  }
}

void add_layers(const ModelConfig& config, ModelSummary& summary) {
  const LayerCaches caches = make_layer_caches(config, {});
  for (size_t i = 0; i < caches.size(); ++i) {
    const bool slides = config.layer_types[i] == LayerType::kSliding;
    summary.layers.push_back(
        {.attention = slides ? "sliding" : "full",
         .cache = caches[i]->signature()});
  }
}

void add_config(const ModelConfig& config, ModelSummary& summary) {
  summary.context_tokens = config.max_position_embeddings;
  summary.vocab_size = config.vocab_size;
  summary.hidden_size = config.hidden_size;
  summary.intermediate_size = config.intermediate_size;
  summary.num_attention_heads = config.num_attention_heads;
  summary.num_key_value_heads = config.num_key_value_heads;
  summary.head_dim = config.head_dim;
  summary.sliding_window = config.sliding_window;
  summary.tied_head = config.tie_word_embeddings;
  add_layers(config, summary);
}

} // namespace

ModelSummary summarize_model(const fs::path& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  const TextAssets& assets = checkpoint.text_assets();
  ModelSummary summary;
  summary.path = path;
  summary.format =
      checkpoint.format() == CheckpointFormat::kGguf ? "gguf" : "safetensors";
  summary.architecture = checkpoint.config().model_type;
  summary.supported = is_supported(summary.architecture);
  add_tensors(checkpoint, summary);
  summary.quantization = quantization_text(checkpoint, summary);
  summary.has_tokenizer = assets.has_tokenizer();
  summary.has_chat_template =
      choose_chat_template(
          {.chat_template_jinja = assets.chat_template_jinja,
           .tokenizer_config_json = assets.tokenizer_config_json,
           .gguf_chat_template = assets.gguf_chat_template,
           .gguf_tool_use_template = assets.gguf_tool_use_template},
          false)
          .has_value();
  if (summary.supported) {
    add_config(checkpoint.config(), summary);
  }
  return summary;
}

} // namespace sheave
