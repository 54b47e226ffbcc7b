#include "sheave/kernels/kv_store/kv_store.h"

#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/fail_check.h"
#include "sheave/kernels/runtime.h"
#include "sheave/kernels/weight_rows.h"

namespace sheave::kernels {
namespace {

/// Tokens per task.
constexpr int kTaskTokens = 32;

/// Keys and values of all planes, alternately.
std::vector<mx::array> arrays_of(std::vector<KVPlanes> planes) {
  std::vector<mx::array> arrays;
  arrays.reserve(2 * planes.size());
  for (KVPlanes& p : planes) {
    arrays.push_back(std::move(p.keys));
    arrays.push_back(std::move(p.values));
  }
  return arrays;
}

/// Inputs: keys, values. Outputs: keys and values of all planes, alternately.
/// The old planes are members, not inputs: every output would hold a
/// reference to each input, and none could be written in place.
class StoreKVPrimitive : public CpuPrimitive {
 public:
  StoreKVPrimitive(std::vector<mx::array> planes, std::vector<KVWrite> writes)
      : planes_(std::move(planes)), writes_(std::move(writes)) {}

  DEFINE_NAME(SheaveStoreKV)

 protected:
  void allocate(
      const std::vector<mx::array>& /*inputs*/,
      std::vector<mx::array>& outputs) const override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (planes_[i].is_donatable()) {
        outputs[i].copy_shared_buffer(planes_[i]);
      } else {
        outputs[i].set_data(mx::allocator::malloc(outputs[i].nbytes()));
      }
    }
  }

  void run_all(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      const Scratch& /*scratch*/) const override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto* to = outputs[i].data<uint8_t>();
      const auto* from = planes_[i].data<uint8_t>();
      if (to != from) {
        std::memcpy(to, from, outputs[i].nbytes());
      }
    }
    for (const KVWrite& write : writes_) {
      const int tasks = (write.num_tokens + kTaskTokens - 1) / kTaskTokens;
      thread_pool().run(tasks, [&](int task, int) {
        const int first = task * kTaskTokens;
        const auto begin = static_cast<size_t>(first);
        const auto end = static_cast<size_t>(
            std::min(write.num_tokens, first + kTaskTokens));
        for (size_t kv = 0; kv < 2; ++kv) {
          const auto plane = 2 * static_cast<size_t>(write.planes) + kv;
          store_tokens(inputs[kv], write, begin, end, outputs[plane]);
        }
      });
    }
  }

 private:
  static void store_tokens(
      const mx::array& packed,
      const KVWrite& write,
      size_t begin,
      size_t end,
      mx::array& plane) {
    const auto heads = static_cast<size_t>(plane.shape(1));
    const auto columns = static_cast<size_t>(plane.shape(2));
    const int dims = plane.shape(3);
    const size_t row_bytes = static_cast<size_t>(dims) * plane.itemsize();
    const FloatType type = float_type(plane.dtype());
    const auto first_plane = static_cast<size_t>(write.plane_row) * heads;
    const auto first_token = static_cast<size_t>(write.first_token);
    const auto first_column = static_cast<size_t>(write.column);
    for (size_t head = 0; head < heads; ++head) {
      for (size_t i = begin; i < end; ++i) {
        const size_t token = (first_token + i) * heads + head;
        const size_t row = (first_plane + head) * columns + first_column + i;
        kernel_table().store_floats(
            type,
            packed.data<float>() + token * static_cast<size_t>(dims),
            dims,
            plane.data<uint8_t>() + row * row_bytes);
      }
    }
  }

  std::vector<mx::array> planes_;
  std::vector<KVWrite> writes_;
};

constexpr const char* kOp = "store_kv";

void check_planes(const KVPlanes& planes, const mx::array& packed) {
  if (planes.bits != 0) {
    fail_check(kOp, "quantized planes can't be written yet");
  }
  const bool fits =
      planes.keys.ndim() == 4 && planes.keys.shape() == planes.values.shape() &&
      planes.keys.dtype() == planes.values.dtype() && packed.ndim() == 3 &&
      planes.keys.shape(1) == packed.shape(1) &&
      planes.keys.shape(3) == packed.shape(2);
  if (!fits) {
    fail_check(
        kOp,
        "expected planes [B, Hkv, S, D] for tokens [T, Hkv, D], got ",
        planes.keys.shape(),
        ", ",
        planes.values.shape(),
        " and ",
        packed.shape());
  }
  float_type(planes.keys.dtype());
}

void check_write(
    const std::vector<KVPlanes>& planes,
    const KVWrite& write,
    int tokens) {
  const bool known =
      write.planes >= 0 && write.planes < static_cast<int>(planes.size());
  const bool fits =
      known && write.num_tokens >= 0 && write.first_token >= 0 &&
      write.first_token + write.num_tokens <= tokens && write.column >= 0 &&
      write.plane_row >= 0 &&
      write.plane_row <
          planes[static_cast<size_t>(write.planes)].keys.shape(0) &&
      write.column + write.num_tokens <=
          planes[static_cast<size_t>(write.planes)].keys.shape(2);
  if (!fits) {
    fail_check(
        kOp,
        write.num_tokens,
        " tokens from ",
        write.first_token,
        " at column ",
        write.column,
        " of row ",
        write.plane_row,
        " of planes ",
        write.planes,
        " don't fit");
  }
}

/// [T, Hkv, D] tokens of a write as [1, Hkv, L, D].
mx::array block_of(const mx::array& packed, const KVWrite& write) {
  const mx::array tokens = mx::slice(
      packed,
      {write.first_token, 0, 0},
      {write.first_token + write.num_tokens, packed.shape(1), packed.shape(2)});
  return mx::expand_dims(mx::transpose(tokens, {1, 0, 2}), 0);
}

void write_reference(
    mx::array& plane,
    const mx::array& packed,
    const KVWrite& write) {
  const auto& shape = plane.shape();
  plane = mx::slice_update(
      plane,
      mx::astype(block_of(packed, write), plane.dtype()),
      mx::Shape{write.plane_row, 0, write.column, 0},
      mx::Shape{
          write.plane_row + 1,
          shape[1],
          write.column + write.num_tokens,
          shape[3]});
}

} // namespace

std::vector<KVPlanes> store_kv(
    std::vector<KVPlanes> planes,
    const mx::array& keys,
    const mx::array& values,
    const std::vector<KVWrite>& writes) {
  for (const KVPlanes& p : planes) {
    check_planes(p, keys);
    check_planes(p, values);
  }
  if (keys.shape(0) != values.shape(0)) {
    fail_check(kOp, "keys ", keys.shape(), " and values ", values.shape());
  }
  for (const KVWrite& write : writes) {
    check_write(planes, write, keys.shape(0));
  }
  if (use_reference()) {
    for (const KVWrite& write : writes) {
      KVPlanes& p = planes[static_cast<size_t>(write.planes)];
      write_reference(p.keys, keys, write);
      write_reference(p.values, values, write);
    }
    return planes;
  }
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (const KVPlanes& p : planes) {
    shapes.insert(shapes.end(), 2, p.keys.shape());
    dtypes.insert(dtypes.end(), 2, p.keys.dtype());
  }
  std::vector<mx::array> old = arrays_of(std::move(planes));
  for (mx::array& plane : old) {
    plane = contiguous_stored(plane);
    plane.eval();
  }
  const auto outputs = mx::array::make_arrays(
      std::move(shapes),
      dtypes,
      std::make_shared<StoreKVPrimitive>(std::move(old), writes),
      {contiguous_input(keys), contiguous_input(values)});
  std::vector<KVPlanes> result;
  for (size_t i = 0; i < outputs.size(); i += 2) {
    result.push_back({.keys = outputs[i], .values = outputs[i + 1]});
  }
  return result;
}

} // namespace sheave::kernels
