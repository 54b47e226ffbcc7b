// Qwen3 (dense): RMSNorm on every query and key head before RoPE.

#include "sheave/models/pre_norm_decoder.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

class Qwen3Model : public PreNormDecoder {
 public:
  explicit Qwen3Model(const LayerLoader& load)
      : PreNormDecoder(
            load,
            {.attention = {
                 .bias = load.config().attention_bias,
                 .head_norms = true}}) {}
};

SHEAVE_REGISTER_MODEL("qwen3", Qwen3Model);

} // namespace
} // namespace sheave
