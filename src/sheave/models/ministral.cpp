// Ministral (8B 2410): sliding and full layers interleaved by layer_types.

#include "sheave/models/pre_norm_decoder.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

class MinistralModel : public PreNormDecoder {
 public:
  explicit MinistralModel(const LayerLoader& load) : PreNormDecoder(load, {}) {}
};

SHEAVE_REGISTER_MODEL("ministral", MinistralModel);

} // namespace
} // namespace sheave
