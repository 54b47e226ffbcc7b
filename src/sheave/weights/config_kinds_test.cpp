// Every key of config.json and of GGUF metadata with every kind of value:
// either the value is taken and the config holds together, or the message
// names the file and a key.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "sheave/weights/model_config.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

using Json = nlohmann::json;

const std::vector<std::string>& families() {
  static const std::vector<std::string> names =
      {"llama", "mistral", "ministral", "qwen3", "gemma3_text"};
  return names;
}

/// A config that says everything.
Json full_config(const std::string& family) {
  const Json yarn = {
      {"rope_type", "yarn"},
      {"factor", 4},
      {"original_max_position_embeddings", 512},
      {"beta_fast", 32},
      {"beta_slow", 1},
      {"attention_factor", 1.0},
      {"mscale", 1.0},
      {"mscale_all_dim", 1.0},
      {"truncate", true}};
  Json current = yarn;
  current["rope_theta"] = 5e5;
  current["partial_rotary_factor"] = 0.5;
  std::vector<std::string> layers(4, "full_attention");
  layers[1] = "sliding_attention";
  return {
      {"model_type", family},
      {"vocab_size", 384},
      {"hidden_size", 64},
      {"intermediate_size", 128},
      {"num_hidden_layers", 4},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 32},
      {"max_position_embeddings", 2048},
      {"rms_norm_eps", 1e-6},
      {"hidden_act", "silu"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"tie_word_embeddings", true},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"use_sliding_window", true},
      {"sliding_window", 16},
      {"sliding_window_pattern", 2},
      {"max_window_layers", 2},
      {"layer_types", layers},
      {"query_pre_attn_scalar", 32},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", 30.0},
      {"use_bidirectional_attention", false},
      {"bos_token_id", 1},
      {"eos_token_id", {1, 2}},
      {"rope_theta", 1e6},
      {"rope_local_base_freq", 1e4},
      {"rope_scaling", yarn},
      {"rope_parameters", current},
      {"quantization",
       {{"bits", 4},
        {"group_size", 64},
        {"mode", "affine"},
        {"lm_head", {{"bits", 8}, {"group_size", 32}}},
        {"model.norm", false}}}};
}

/// What a careless or hostile writer may put in any place.
const std::vector<Json>& odd_values() {
  static const std::vector<Json> values = {
      nullptr,
      true,
      false,
      0,
      -1,
      1,
      3,
      7,
      4097,
      INT32_MAX,
      int64_t{INT32_MAX} + 1,
      UINT64_MAX,
      INT64_MIN,
      0.5,
      -0.0,
      1e-300,
      1e300,
      std::numeric_limits<double>::max(),
      "",
      "7",
      "linear",
      "llama3",
      "yarn",
      "a\nb",
      Json::array(),
      Json::array({1}),
      Json::array({"full_attention"}),
      Json::array({nullptr, -1}),
      Json::object(),
      Json::object({{"bits", 3}}),
      Json::object({{"rope_type", "llama3"}})};
  return values;
}

/// "" or the message; fails the test where neither can stand.
std::string judge(const Json& json) {
  const auto message = file_error_of([&] {
    const auto config = config_from_json(json.dump(), "m");
    if (knows_model_type(config.model_type)) {
      EXPECT_NO_THROW(check_config(config, "m")) << json;
      EXPECT_GT(config.num_hidden_layers, 0) << json;
      EXPECT_LE(config.head_dim, 512) << json;
    }
  });
  if (!message.empty()) {
    EXPECT_TRUE(begins_with(message, "m: ")) << json;
    EXPECT_EQ(message.find('\n'), std::string::npos) << json;
  }
  return message;
}

TEST(ConfigKinds, EveryKeyWithEveryKindOfValue) {
  for (const std::string& family : families()) {
    const Json whole = full_config(family);
    ASSERT_EQ(judge(whole), "") << family;
    for (const auto& [key, good] : whole.items()) {
      for (const Json& value : odd_values()) {
        Json spoiled = whole;
        spoiled[key] = value;
        const std::string message = judge(spoiled);
        // Text put for a number is the fault itself, and null is no value;
        // numbers may fail later, where they disagree with another key.
        if (good.is_number() && !value.is_number() && !value.is_null() &&
            !message.empty()) {
          EXPECT_TRUE(contains(message, key)) << value;
        }
      }
    }
  }
}

TEST(ConfigKinds, EveryNestedKeyWithEveryKindOfValue) {
  for (const std::string& family : families()) {
    const Json whole = full_config(family);
    for (const char* outer :
         {"rope_scaling", "rope_parameters", "quantization"}) {
      for (const auto& [key, good] : whole[outer].items()) {
        for (const Json& value : odd_values()) {
          Json spoiled = whole;
          spoiled[outer][key] = value;
          const std::string message = judge(spoiled);
          if (good.is_number() && value.is_string()) {
            EXPECT_TRUE(contains(message, std::string(outer) + ": key " + key))
                << value;
          }
        }
      }
    }
  }
}

// Values that are each fine can still disagree, so several change at a time.
TEST(ConfigKinds, SeveralKeysAtOnce) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return random() % n; };
  int accepted = 0;
  for (const std::string& family : families()) {
    const Json whole = full_config(family);
    std::vector<std::string> keys;
    for (const auto& [key, value] : whole.items()) {
      keys.push_back(key);
    }
    for (int i = 0; i < 2000; ++i) {
      Json spoiled = whole;
      for (size_t n = 1 + below(4); n > 0; --n) {
        const std::string& key = keys[below(keys.size())];
        if (below(3) == 0) {
          spoiled.erase(key);
        } else if (below(3) == 0 && whole[key].is_number_integer()) {
          spoiled[key] = 1 + below(64);
        } else {
          spoiled[key] = odd_values()[below(odd_values().size())];
        }
      }
      accepted += judge(spoiled).empty() ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 500) << "seed " << kSeed; // else little was looked at
}

TEST(ConfigKinds, ATextConfigEqualsTheSameKeysOutside) {
  for (const std::string& family : families()) {
    const Json flat = full_config(family);
    const Json nested = {
        {"model_type", "some_multimodal"},
        {"text_config", flat},
        {"hidden_size", 1},
        {"vision_config", {{"hidden_size", 7}}}};
    EXPECT_EQ(
        config_from_json(flat.dump(), "m"),
        config_from_json(nested.dump(), "m"))
        << family;
  }
}

TEST(ConfigKinds, AListOfLayersBeatsThePattern) {
  Json listed = full_config("gemma3_text");
  Json derived = listed;
  derived.erase("layer_types"); // each second is full
  listed["layer_types"] = {
      "sliding_attention",
      "full_attention",
      "sliding_attention",
      "full_attention"};
  listed["sliding_window_pattern"] = 3;
  EXPECT_EQ(
      config_from_json(listed.dump(), "m"),
      config_from_json(derived.dump(), "m"));
}

using Builder = GgufBuilder;

/// A value of GGUF metadata as raw bytes.
struct Raw {
  uint32_t type;
  std::string bytes;
};

std::string list_of(uint32_t type, uint64_t count, const std::string& values) {
  return raw(type) + raw(count) + values;
}

std::vector<Raw> odd_raws() {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      {Builder::kU8, raw(uint8_t{255})},
      {1, raw(int8_t{-1})},
      {2, raw(uint16_t{3})},
      {Builder::kU32, raw(uint32_t{0})},
      {Builder::kU32, raw(UINT32_MAX)},
      {Builder::kI32, raw(INT32_MIN)},
      {Builder::kF32, raw(kNan)},
      {Builder::kF32, raw(-0.0F)},
      {Builder::kF32, raw(1.5F)},
      {Builder::kBool, std::string(1, '\2')},
      {Builder::kString, Builder::text("")},
      {Builder::kString, Builder::text("\xff\n")},
      {Builder::kArray, list_of(Builder::kU32, 0, "")},
      {Builder::kArray, list_of(Builder::kU8, 3, "\1\1\1")},
      {Builder::kArray, list_of(Builder::kString, 1, Builder::text("a"))},
      {Builder::kArray, list_of(12, 2, raw(1e300) + raw(kInfinity))},
      {Builder::kArray,
       list_of(Builder::kArray, 1, list_of(Builder::kU8, 1, "x"))},
      {Builder::kU64, raw(UINT64_MAX)},
      {11, raw(INT64_MIN)},
      {12, raw(kInfinity)},
      {12, raw(-1e300)}};
}

/// Metadata by key, without the prefix of the architecture.
std::vector<std::pair<std::string, Raw>> full_metadata() {
  const auto u32 = [](uint32_t value) {
    return Raw{Builder::kU32, raw(value)};
  };
  const auto f32 = [](float value) { return Raw{Builder::kF32, raw(value)}; };
  return {
      {"block_count", u32(6)},
      {"embedding_length", u32(64)},
      {"feed_forward_length", u32(128)},
      {"attention.head_count", u32(4)},
      {"attention.head_count_kv", u32(2)},
      {"attention.key_length", u32(16)},
      {"attention.value_length", u32(16)},
      {"attention.layer_norm_rms_epsilon", f32(1e-5F)},
      {"attention.sliding_window", u32(16)},
      {"attention.sliding_window_pattern", u32(3)},
      {"context_length", u32(2048)},
      {"rope.dimension_count", u32(16)},
      {"rope.freq_base", f32(1e6F)},
      {"rope.freq_base_swa", f32(1e4F)},
      {"rope.scaling.type", {Builder::kString, Builder::text("yarn")}},
      {"rope.scaling.factor", f32(4)},
      {"rope.scaling.original_context_length", u32(512)},
      {"rope.scaling.yarn_beta_fast", f32(32)},
      {"rope.scaling.yarn_log_multiplier", f32(0.1F)},
      {"final_logit_softcapping", f32(30)},
      {"expert_count", u32(0)}};
}

std::string judge_gguf(
    const std::string& architecture,
    const std::vector<std::pair<std::string, Raw>>& metadata) {
  Builder builder;
  builder.add("general.architecture", architecture);
  for (const auto& [key, value] : metadata) {
    builder.add(architecture + "." + key, value.type, value.bytes);
  }
  builder.add_tensor("token_embd.weight", {64, 2}, 0, 0);
  const std::string file = builder.build(512);
  const auto message = file_error_of([&] {
    const auto config = config_from_gguf(GgufFile::parse(bytes_of(file), "m"));
    EXPECT_NO_THROW(check_config(config, "m"));
  });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(ConfigKinds, EveryGgufKeyWithEveryKindOfValue) {
  for (const std::string architecture :
       {"llama", "mistral3", "qwen3", "gemma3"}) {
    const auto whole = full_metadata();
    ASSERT_EQ(judge_gguf(architecture, whole), "") << architecture;
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const Raw& value : odd_raws()) {
        auto spoiled = whole;
        spoiled[i].second = value;
        const std::string message = judge_gguf(architecture, spoiled);
        if (!message.empty()) {
          EXPECT_TRUE(begins_with(message, "m: ")) << whole[i].first;
        }
        // A string is a value of none but the scaling's type.
        const bool read =
            architecture == "gemma3" ||
            (whole[i].first.find("_swa") == std::string::npos &&
             whole[i].first.find("sliding") == std::string::npos &&
             whole[i].first.find("cap") == std::string::npos);
        if (read && value.type == Builder::kString &&
            whole[i].second.type != Builder::kString) {
          EXPECT_TRUE(contains(
              message,
              "key " + architecture + "." + whole[i].first + " is"));
        }
      }
    }
  }
}

TEST(ConfigKinds, AListOfListsIsNoListOfFlags) {
  auto metadata = full_metadata();
  for (auto& [key, value] : metadata) {
    if (key == "attention.sliding_window_pattern") {
      value = {
          Builder::kArray,
          list_of(Builder::kArray, 1, list_of(Builder::kU8, 1, "x"))};
    }
  }
  EXPECT_EQ(
      judge_gguf("gemma3", metadata),
      "m: key gemma3.attention.sliding_window_pattern is a list of lists, "
      "expected a list of integers");
}

TEST(ConfigKinds, AGgufFileMayHaveVersion2) {
  std::string file = Builder().add("general.architecture", "none").build();
  file[4] = 2;
  EXPECT_EQ(
      config_from_gguf(GgufFile::parse(bytes_of(file), "m")).model_type,
      "none");
}

} // namespace
} // namespace sheave
