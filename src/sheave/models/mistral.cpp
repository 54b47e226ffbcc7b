// Mistral: every layer slides when the config has a window (7B v0.1), none
// does otherwise.

#include "sheave/models/pre_norm_decoder.h"
#include "sheave/models/registry.h"

namespace sheave {
namespace {

class MistralModel : public PreNormDecoder {
 public:
  explicit MistralModel(const LayerLoader& load) : PreNormDecoder(load, {}) {}
};

SHEAVE_REGISTER_MODEL("mistral", MistralModel);

} // namespace
} // namespace sheave
