// AVX-512 with VNNI.

#include "sheave/kernels/kernel_table.h"
#include "sheave/kernels/targets/targets.h"

#if defined(__x86_64__)

#define SHEAVE_TARGET_LANES 16
#ifdef __clang__
#pragma clang attribute push(                                             \
    __attribute__((target(                                                \
        "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target( \
    "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

namespace sheave::kernels {
namespace avx512_vnni {
namespace {

#include "sheave/kernels/targets/kernels-inl.h"

} // namespace
} // namespace avx512_vnni

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const KernelTable* avx512_vnni_table() {
  static const KernelTable table = {
      .name = "avx512_vnni",
      .linear = avx512_vnni::linear,
      .packed_linear = avx512_vnni::packed_linear,
      .packed_start_factor = avx512_vnni::packed_start_factor,
      .quantize_token = avx512_vnni::quantize_token,
      .store_floats = avx512_vnni::store_floats,
      .decode_row = avx512_vnni::decode_row,
      .rms_norm = avx512_vnni::rms_norm,
      .swiglu = avx512_vnni::swiglu,
      .geglu_tanh = avx512_vnni::geglu_tanh,
      .largest_logit = avx512_vnni::largest_logit,
      .find_logits = avx512_vnni::find_logits,
      .sum_exp = avx512_vnni::sum_exp,
      .exp_logits = avx512_vnni::exp_logits,
      .attention = avx512_vnni::attention,
      .attention_span = avx512_vnni::attention_span,
      .attention_merge = avx512_vnni::attention_merge};
  return &table;
}

} // namespace sheave::kernels

#else

namespace sheave::kernels {

const KernelTable* avx512_vnni_table() {
  return nullptr;
}

} // namespace sheave::kernels

#endif
