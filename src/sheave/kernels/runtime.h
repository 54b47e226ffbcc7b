// The kernels' run time: which CPU target computes, and on how many threads.
// Chosen once, at the first use or by configure().
#pragma once

#include <string>
#include <vector>

#include "sheave/base/thread_pool.h"
#include "sheave/kernels/kernel_table.h"

namespace sheave::kernels {

/// threads: 0 for the usable physical cores. target: "" for the environment's
/// SHEAVE_KERNELS or else the best that the processor has; "reference" for
/// MLX's own operations; or the name of a target.
struct RuntimeOptions {
  int threads = 0;
  std::string target;
};

/// Sets threads and target. Not while an operation is being evaluated.
/// Throws std::invalid_argument for a target that doesn't exist or that the
/// processor lacks, naming those it has, and for threads outside 0..1024.
void configure(const RuntimeOptions& options);

/// The target in use: "reference", "base", "avx2", "avx512_vnni".
std::string target_name();

int num_threads();

/// The targets that this processor can run, the best first; "reference" last.
std::vector<std::string> available_targets();

/// Whether operations are composed of MLX's own instead of our kernels: asked
/// for, or because MLX's default device is a GPU.
bool use_reference();

/// The kernels of the target in use, and the threads they run on. Only while
/// !use_reference().
const KernelTable& kernel_table();
ThreadPool& thread_pool();

/// The kernels that decode stored weights: those in use, or the best ones
/// where the reference path, which has no decoders of its own, is in use.
const KernelTable& decoding_table();

} // namespace sheave::kernels
