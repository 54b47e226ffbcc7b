#include "sheave/cache/append_check.h"

#include <mlx/ops.h>

#include <sstream>
#include <stdexcept>

namespace sheave {

void check_append(
    const std::string& name,
    const PlanesShape& shape,
    int offset,
    const StepLayout& layout,
    const mx::array& keys,
    const mx::array& values) {
  if (layout.rows.size() != 1 || layout.rows[0].num_tokens < 1 ||
      layout.rows[0].first_token != 0) {
    throw std::invalid_argument(
        "[" + name + "] expected one row with tokens, got " +
        std::to_string(layout.rows.size()) + " rows and " +
        std::to_string(layout.num_tokens()) + " tokens");
  }
  if (layout.rows[0].first_position != offset) {
    throw std::invalid_argument(
        "[" + name + "] expected the next token at position " +
        std::to_string(offset) + ", got " +
        std::to_string(layout.rows[0].first_position));
  }
  check_packed(name, shape, layout.num_tokens(), keys, values);
}

void check_packed(
    const std::string& name,
    const PlanesShape& shape,
    int tokens,
    const mx::array& keys,
    const mx::array& values) {
  const mx::Shape expected = {
      tokens,
      shape.num_key_value_heads,
      shape.head_dim};
  if (keys.shape() != expected || values.shape() != expected) {
    std::ostringstream message;
    message << "[" << name << "] expected keys and values " << expected
            << ", got " << keys.shape() << " and " << values.shape();
    throw std::invalid_argument(message.str());
  }
}

mx::array as_block(const mx::array& packed) {
  return mx::expand_dims(mx::transpose(packed, {1, 0, 2}), 0);
}

size_t planes_bytes(const PlanesShape& shape, int columns) {
  return size_t{2} * static_cast<size_t>(shape.num_key_value_heads) *
         static_cast<size_t>(columns) * static_cast<size_t>(shape.head_dim) *
         mx::size_of(shape.dtype);
}

std::string dtype_name(mx::Dtype dtype) {
  std::ostringstream name;
  name << dtype;
  return name.str();
}

} // namespace sheave
