// Model: a loaded network, whatever its family. It computes over packed tokens
// and holds no conversation; what a conversation remembers lives in the caches
// that make_caches() returns.
#pragma once

#include <mlx/array.h>

#include <memory>
#include <vector>

#include "sheave/cache/cache.h"
#include "sheave/cache/step_layout.h"
#include "sheave/weights/model_config.h"

namespace sheave {

namespace mx = mlx::core;

/// One cache per layer, in the layers' order.
using LayerCaches = std::vector<std::unique_ptr<Cache>>;

/// How caches store keys and values (float32, float16 or bfloat16), and for
/// how many rows.
struct CacheOptions {
  mx::Dtype dtype = mx::float16;
  int num_rows = 1;
};

/// One cache per layer by the config's layer types: rows with planes of their
/// own for our kernels; elsewhere KVCache and RotatingKVCache, which hold one
/// row. Throws std::invalid_argument for more rows there.
LayerCaches make_layer_caches(
    const ModelConfig& config,
    const CacheOptions& options);

/// Whether every layer's cache can forget its newest tokens.
bool trimmable(const LayerCaches& caches);

/// Forgets the newest n tokens of every layer. Throws std::invalid_argument
/// unless trimmable(caches).
void trim(const LayerCaches& caches, int n);

/// How layers compute. kFast: quantized weights are packed for the integer
/// kernels, which round activations to 8 bits; where those kernels aren't used
/// (GPU, the reference target) it is as kExact: float32 throughout.
enum class Arithmetic { kFast, kExact };

/// A network. Const calls only build graphs; all of them belong to the one
/// thread that owns MLX.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;

  /// Fresh caches for options.num_rows rows.
  virtual LayerCaches make_caches(const CacheOptions& options) const = 0;

  /// Runs a step. tokens: [T] int32 within the vocabulary, packed as `layout`
  /// says. Appends to every cache and returns the hidden states after the
  /// final norm, [T, hidden_size] float32.
  /// Throws std::invalid_argument if tokens, layout and caches don't agree.
  virtual mx::array forward(
      const mx::array& tokens,
      const StepLayout& layout,
      LayerCaches& caches) const = 0;

  /// hidden: [N, hidden_size], rows of what forward() returned. Returns
  /// logits [N, V] float32. Apart from forward(), so that a prompt pays for
  /// the head at its last token only.
  virtual mx::array logits(const mx::array& hidden) const = 0;
};

} // namespace sheave
