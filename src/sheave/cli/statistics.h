// What an answer cost, in words and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sheave/engine/generator.h"

namespace sheave {

/// "prompt: 31 tokens, 210.4 tokens/s; generated: 64 tokens, 52.0 tokens/s;
/// first token: 0.15 s; peak memory: 201 MB". Says how many of the prompt's
/// tokens were cached if any were, and the seed if there is one.
std::string statistics_line(
    const GenerationStats& stats,
    uint64_t peak_memory_bytes,
    std::optional<uint64_t> seed);

/// The same figures under the names of GenerationStats.
nlohmann::ordered_json statistics_json(
    const GenerationStats& stats,
    uint64_t peak_memory_bytes);

} // namespace sheave
