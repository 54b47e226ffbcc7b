#include "sheave/kernels/embedding/embedding.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/linear/linear.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

/// Inputs: ids, the table's arrays.
class EmbeddingPrimitive : public CpuFloatPrimitive {
 public:
  explicit EmbeddingPrimitive(const Weight& table)
      : table_(table), rows_(table.out_features) {}

  DEFINE_NAME(SheaveEmbedding)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const int32_t* ids = inputs[0].data<int32_t>();
    const WeightRows table = table_.rows(inputs, 1);
    thread_pool().run(inputs[0].shape(0), [&](int token, int) {
      float* to = output + static_cast<size_t>(token) *
                               static_cast<size_t>(table.in_features);
      const int32_t id = ids[token];
      if (id < 0 || id >= rows_) {
        std::fill_n(
            to,
            table.in_features,
            std::numeric_limits<float>::quiet_NaN());
        return;
      }
      kernel_table().decode_row(table, id, to);
    });
  }

 private:
  WeightSpec table_;
  int rows_;
};

} // namespace

mx::array embedding(const Weight& table, const mx::array& ids) {
  check_weight("embedding", table);
  if (ids.ndim() != 1 || ids.dtype() != mx::int32) {
    std::ostringstream message;
    message << "[embedding] expected ids [T] int32, got " << ids.shape() << " "
            << ids.dtype();
    throw std::invalid_argument(message.str());
  }
  if (use_reference()) {
    return mx::take(dequantize(table), ids, 0);
  }
  std::vector<mx::array> inputs = {mx::contiguous(ids)};
  append_arrays(table, inputs);
  return make_output<EmbeddingPrimitive>(
      {ids.shape(0), table.in_features},
      std::move(inputs),
      table);
}

} // namespace sheave::kernels
