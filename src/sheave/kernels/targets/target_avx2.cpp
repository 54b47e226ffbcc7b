// AVX2 with FMA and F16C.

#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/targets/targets.h"

#if defined(__x86_64__)

#define SHEAVE_TARGET_LANES 8
#ifdef __clang__
#pragma clang attribute push(                 \
    __attribute__((target("avx2,fma,f16c"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace sheave::kernels {
namespace avx2 {
namespace {

#include "sheave/kernels/targets/kernels-inl.h"

} // namespace
} // namespace avx2

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const KernelTable* avx2_table() {
  static const KernelTable table = {
      .name = "avx2",
      .linear = avx2::linear,
      .packed_linear = avx2::packed_linear,
      .packed_start_factor = avx2::packed_start_factor,
      .quantize_token = avx2::quantize_token,
      .store_floats = avx2::store_floats,
      .decode_row = avx2::decode_row,
      .rms_norm = avx2::rms_norm,
      .swiglu = avx2::swiglu,
      .geglu_tanh = avx2::geglu_tanh,
      .largest_logit = avx2::largest_logit,
      .find_logits = avx2::find_logits,
      .sum_exp = avx2::sum_exp,
      .exp_logits = avx2::exp_logits,
      .attention = avx2::attention,
      .attention_span = avx2::attention_span,
      .attention_merge = avx2::attention_merge};
  return &table;
}

} // namespace sheave::kernels

#else

namespace sheave::kernels {

const KernelTable* avx2_table() {
  return nullptr;
}

} // namespace sheave::kernels

#endif
