// Llama and what is published under its name: Llama 2 and 3, SmolLM2, and
// Mistral files in GGUF.

#include "sheave/models/pre_norm_decoder.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

class LlamaModel : public PreNormDecoder {
 public:
  explicit LlamaModel(const LayerLoader& load)
      : PreNormDecoder(
            load,
            {.attention = {.bias = load.config().attention_bias},
             .mlp_bias = load.config().mlp_bias}) {}
};

SHEAVE_REGISTER_MODEL("llama", LlamaModel);

} // namespace
} // namespace sheave
