// The lowest common denominator: SSE2 on x86-64, NEON on 64-bit ARM, plain code
// elsewhere.

#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/targets/targets.h"

#define SHEAVE_TARGET_LANES 4

namespace sheave::kernels {
namespace base {
namespace {

#include "sheave/kernels/targets/kernels-inl.h"

} // namespace
} // namespace base

const KernelTable* base_table() {
  static const KernelTable table = {
      .name = "base",
      .linear = base::linear,
      .packed_linear = base::packed_linear,
      .packed_start_factor = base::packed_start_factor,
      .quantize_token = base::quantize_token,
      .store_floats = base::store_floats,
      .decode_row = base::decode_row,
      .rms_norm = base::rms_norm,
      .swiglu = base::swiglu,
      .geglu_tanh = base::geglu_tanh,
      .largest_logit = base::largest_logit,
      .find_logits = base::find_logits,
      .sum_exp = base::sum_exp,
      .exp_logits = base::exp_logits,
      .attention = base::attention,
      .attention_span = base::attention_span,
      .attention_merge = base::attention_merge};
  return &table;
}

} // namespace sheave::kernels
