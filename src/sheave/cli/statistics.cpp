#include "sheave/cli/statistics.h"

#include <fmt/format.h>

namespace sheave {

std::string statistics_line(
    const GenerationStats& stats,
    uint64_t peak_memory_bytes,
    std::optional<uint64_t> seed) {
  std::string line = fmt::format("prompt: {} tokens", stats.prompt_tokens);
  if (stats.cached_tokens > 0) {
    line += fmt::format(" ({} cached)", stats.cached_tokens);
  }
  line += fmt::format(
      ", {:.1f} tokens/s; generated: {} tokens, {:.1f} tokens/s; "
      "first token: {:.2f} s; peak memory: {:.0f} MB",
      stats.prompt_tokens_per_second(),
      stats.generated_tokens,
      stats.generation_tokens_per_second(),
      stats.prompt_seconds,
      static_cast<double>(peak_memory_bytes) / 1e6);
  if (seed) {
    line += fmt::format("; seed: {}", *seed);
  }
  return line;
}

nlohmann::ordered_json statistics_json(
    const GenerationStats& stats,
    uint64_t peak_memory_bytes) {
  return {
      {"prompt_tokens", stats.prompt_tokens},
      {"cached_tokens", stats.cached_tokens},
      {"generated_tokens", stats.generated_tokens},
      {"prompt_tokens_per_second", stats.prompt_tokens_per_second()},
      {"generation_tokens_per_second", stats.generation_tokens_per_second()},
      {"time_to_first_token_s", stats.prompt_seconds},
      {"peak_memory_bytes", peak_memory_bytes}};
}

} // namespace sheave
