#include "sheave/models/model.h"

namespace sheave {

LayerCaches make_layer_caches(
    const ModelConfig& config,
    const CacheOptions& options) {
  const PlanesShape shape = {
      .num_key_value_heads = config.num_key_value_heads,
      .head_dim = config.head_dim,
      .dtype = options.dtype};
  LayerCaches caches;
  for (const LayerType type : config.layer_types) {
    caches.push_back(
        type == LayerType::kSliding
            ? make_rotating_kv_cache(shape, *config.sliding_window)
            : make_kv_cache(shape));
  }
  return caches;
}

} // namespace sheave
