// The safetensors format: a length, a JSON header, the tensors' bytes. Reads
// headers and shard indexes only. No MLX.
// Source: the format's specification in huggingface/safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sheave/weights/tensor_info.h"

namespace sheave {

/// The tensors of a whole file's bytes, in the order of their offsets. Throws
/// FileError, its message beginning with `where`, if the header isn't what the
/// format asks for, a tensor lies outside the file, two overlap, or a size
/// doesn't equal dtype times shape.
std::vector<TensorInfo> parse_safetensors(
    std::span<const uint8_t> file,
    const std::string& where);

/// The weight_map of a model.safetensors.index.json: tensor name to shard file
/// name. Throws FileError if it isn't such a map or a shard's name is not a
/// plain file name.
std::map<std::string, std::string> parse_shard_index(
    std::string_view text,
    const std::string& where);

} // namespace sheave
