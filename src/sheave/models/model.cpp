#include "sheave/models/model.h"

#include <algorithm>
#include <stdexcept>

#include "sheave/kernels/runtime.h"

namespace sheave {

LayerCaches make_layer_caches(
    const ModelConfig& config,
    const CacheOptions& options) {
  const PlanesShape shape = {
      .num_key_value_heads = config.num_key_value_heads,
      .head_dim = config.head_dim,
      .dtype = options.dtype};
  const bool rows = !kernels::use_reference();
  if (!rows && options.num_rows != 1) {
    throw std::invalid_argument(
        "[model] caches of several rows need our own kernels, which the "
        "reference path and GPUs don't use");
  }
  LayerCaches caches;
  for (const LayerType type : config.layer_types) {
    const int window = type == LayerType::kSliding ? *config.sliding_window : 0;
    if (rows) {
      caches.push_back(make_row_kv_cache(shape, options.num_rows, window));
    } else {
      caches.push_back(
          window > 0 ? make_rotating_kv_cache(shape, window)
                     : make_kv_cache(shape));
    }
  }
  return caches;
}

bool trimmable(const LayerCaches& caches) {
  return std::ranges::all_of(caches, [](const std::unique_ptr<Cache>& cache) {
    return cache->trimmable();
  });
}

void trim(const LayerCaches& caches, int n) {
  for (const std::unique_ptr<Cache>& cache : caches) {
    cache->trim(n);
  }
}

} // namespace sheave
