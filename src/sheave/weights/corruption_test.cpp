// Files with any one byte, or any eight, overwritten: a parser either says in
// one line what is wrong, or what it made of the file holds together.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "sheave/weights/checkpoint_files.h"
#include "sheave/weights/safetensors.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

/// Whether the tensors lie within the file, apart from each other.
testing::AssertionResult lie_within(
    std::vector<TensorInfo> tensors,
    size_t file_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.bytes > 0 && tensor.offset < end) {
      return testing::AssertionFailure() << tensor.name << " overlaps another";
    }
    end = std::max(end, tensor.offset + tensor.bytes);
  }
  return end <= file_bytes ? testing::AssertionSuccess()
                           : testing::AssertionFailure() << "beyond the file";
}

/// Whether it is one line of printable text that names the file "m".
testing::AssertionResult is_a_message(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7F;
  });
  return plain && text.starts_with("m: ") && text.size() < 1000
             ? testing::AssertionSuccess()
             : testing::AssertionFailure() << "\"" << text << "\"";
}

/// Runs `check` on the file with something else at each of its bytes.
template <typename Check>
void corrupt_everywhere(const std::string& file, const Check& check) {
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char byte : {'\0', '\x01', '\x7F', '\x80', '\xFF', '"', '['}) {
      std::string spoiled = file;
      spoiled[at] = byte;
      check(spoiled);
    }
    for (const uint64_t word :
         {uint64_t{0},
          uint64_t{1} << 31,
          uint64_t{1} << 32,
          uint64_t{1} << 61,
          uint64_t{1} << 63,
          UINT64_MAX - 31,
          UINT64_MAX}) {
      std::string spoiled = file;
      std::memcpy(
          spoiled.data() + at,
          &word,
          std::min(sizeof(word), spoiled.size() - at));
      check(spoiled);
    }
  }
}

/// A model that is complete but for its layers.
std::string small_gguf() {
  GgufBuilder builder;
  builder.add("general.architecture", "llama");
  builder.add("general.alignment", uint32_t{32});
  builder.add("llama.block_count", uint32_t{1});
  builder.add("llama.embedding_length", uint32_t{32});
  builder.add("llama.feed_forward_length", uint32_t{32});
  builder.add("llama.attention.head_count", uint32_t{2});
  builder.add("llama.context_length", uint32_t{64});
  builder.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  builder.add("tokenizer.ggml.model", "gpt2");
  builder.add_list(
      "tokenizer.ggml.tokens",
      GgufBuilder::kString,
      2,
      GgufBuilder::text("a") + GgufBuilder::text("\xff"));
  builder.add_list(
      "tokenizer.ggml.scores",
      GgufBuilder::kF32,
      2,
      raw(0.0F) + raw(1.0F));
  builder.add_list(
      "x",
      GgufBuilder::kArray,
      1,
      raw<uint32_t>(0) + raw<uint64_t>(1) + "x");
  builder.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  builder.add_tensor("token_embd.weight", {32, 2}, 2, 0);
  builder.add_tensor("blk.0.attn_norm.weight", {32}, 0, 64);
  return builder.build(192);
}

TEST(Corruption, OfAGgufFileIsReportedOrHarmless) {
  const std::string whole = small_gguf();
  const auto describe = [](const std::string& file) {
    return describe_gguf(bytes_of(file), "m");
  };
  ASSERT_EQ(file_error_of([&] { describe(whole); }), "");
  int refused = 0;
  corrupt_everywhere(whole, [&](const std::string& file) {
    CheckpointFiles files;
    const auto message = file_error_of([&] { files = describe(file); });
    if (!message.empty()) {
      ++refused;
      EXPECT_TRUE(is_a_message(message));
      return;
    }
    std::vector<TensorInfo> tensors;
    for (const CheckpointTensor& tensor : files.tensors) {
      tensors.push_back(tensor.info);
    }
    EXPECT_TRUE(lie_within(tensors, file.size()));
    if (knows_model_type(files.config.model_type)) {
      EXPECT_NO_THROW(check_config(files.config, "m"));
    }
  });
  EXPECT_GT(refused, 1000);
}

TEST(Corruption, OfAGgufFileCutShortIsReported) {
  const std::string whole = small_gguf();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto message = file_error_of(
        [&] { describe_gguf(bytes_of(whole).subspan(0, size), "m"); });
    EXPECT_TRUE(is_a_message(message)) << size;
  }
}

TEST(Corruption, OfASafetensorsFileIsReportedOrHarmless) {
  const std::string whole = safetensors_file(
      R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16",)"
      R"("shape":[2,2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[],)"
      R"("data_offsets":[8,12]}})",
      std::string(12, '\0'));
  int refused = 0;
  corrupt_everywhere(whole, [&](const std::string& file) {
    std::vector<TensorInfo> tensors;
    const auto message = file_error_of(
        [&] { tensors = parse_safetensors(bytes_of(file), "m"); });
    if (message.empty()) {
      EXPECT_TRUE(lie_within(tensors, file.size()));
      return;
    }
    ++refused;
    EXPECT_TRUE(is_a_message(message));
  });
  EXPECT_GT(refused, 1000);
}

TEST(Corruption, OfAnIndexIsReportedOrHarmless) {
  const std::string whole =
      R"({"metadata":{"total_size":1},"weight_map":{"a":"m-1","b":"m-2"}})";
  corrupt_everywhere(whole, [&](const std::string& text) {
    std::map<std::string, std::string> shards;
    const auto message =
        file_error_of([&] { shards = parse_shard_index(text, "m"); });
    EXPECT_TRUE(message.empty() || is_a_message(message)) << text;
    for (const auto& [tensor, shard] : shards) {
      EXPECT_EQ(shard.find('/'), std::string::npos);
    }
  });
}

TEST(Corruption, OfAConfigIsReportedOrHarmless) {
  for (const std::string name :
       {"llama", "llama_tied", "gemma3_text", "qwen3", "mistral_swa"}) {
    const auto whole = read_whole(weight_fixture("config/" + name + ".json"));
    corrupt_everywhere(whole, [&](const std::string& text) {
      const auto message = file_error_of([&] {
        const auto config = config_from_json(text, "m");
        if (knows_model_type(config.model_type)) {
          check_config(config, "never reached with");
        }
      });
      EXPECT_TRUE(message.empty() || is_a_message(message)) << text;
    });
  }
}

} // namespace
} // namespace sheave
