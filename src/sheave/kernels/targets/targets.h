// The CPU targets, and what a target's source file needs before it opens its
// region. Everything is compiled for the lowest processor; only code between
// SHEAVE_TARGET_BEGIN and SHEAVE_TARGET_END may use wider instructions, and
// that code includes no standard header, so none of it leaks into functions
// that other files share.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SHEAVE_KERNEL_INLINE static inline __attribute__((always_inline))
#define SHEAVE_KERNEL_INLINE_METHOD inline __attribute__((always_inline))
