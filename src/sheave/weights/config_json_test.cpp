#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sheave/weights/model_config.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

using Json = nlohmann::json;

ModelConfig parse(const Json& json) {
  return config_from_json(json.dump(), "config.json");
}

ModelConfig parse(const char* text) {
  return config_from_json(text, "config.json");
}

int count_sliding(const ModelConfig& config) {
  return static_cast<int>(std::count(
      config.layer_types.begin(),
      config.layer_types.end(),
      LayerType::kSliding));
}

/// A small config of the family to which tests add.
Json base(const std::string& model_type) {
  return {
      {"model_type", model_type},
      {"vocab_size", 384},
      {"hidden_size", 64},
      {"intermediate_size", 128},
      {"num_hidden_layers", 8},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 16},
      {"max_position_embeddings", 2048}};
}

Json with(Json json, const Json& more) {
  json.update(more);
  return json;
}

TEST(ConfigFromJson, ReadsEveryFieldOfAFixture) {
  const std::string path = weight_fixture("config/gemma3_text.json");
  const auto config = config_from_json(read_whole(path), path);
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.vocab_size, 384);
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 128);
  EXPECT_EQ(config.num_hidden_layers, 8);
  EXPECT_EQ(config.num_attention_heads, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-6F);
  EXPECT_EQ(config.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.sliding_window, 16);
  EXPECT_EQ(count_sliding(config), 7);
  EXPECT_EQ(config.layer_types[5], LayerType::kFull);
  EXPECT_EQ(config.query_pre_attn_scalar, 32);
  EXPECT_EQ(config.attn_logit_softcapping, std::nullopt);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope_local.theta, 1e4);
  EXPECT_EQ(config.rms_norm_offset, 1);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_id, std::vector<int>{2});
}

TEST(ConfigFromJson, FillsInTransformersDefaults) {
  const auto llama = parse({{"model_type", "llama"}});
  EXPECT_EQ(llama.hidden_size, 4096);
  EXPECT_EQ(llama.intermediate_size, 11008);
  EXPECT_EQ(llama.num_key_value_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.rope.theta, 1e4);
  EXPECT_FALSE(llama.tie_word_embeddings);
  EXPECT_EQ(count_sliding(llama), 0);
  const auto mistral = parse({{"model_type", "mistral"}});
  EXPECT_EQ(mistral.num_key_value_heads, 8);
  EXPECT_EQ(mistral.sliding_window, 4096);
  EXPECT_EQ(count_sliding(mistral), 32);
  const auto qwen = parse({{"model_type", "qwen3"}});
  EXPECT_EQ(qwen.head_dim, 128);
  EXPECT_EQ(qwen.num_key_value_heads, 32);
  EXPECT_EQ(qwen.sliding_window, std::nullopt);
  const auto gemma = parse({{"model_type", "gemma3_text"}});
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_EQ(gemma.query_pre_attn_scalar, 256);
  EXPECT_EQ(gemma.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_EQ(gemma.rope.theta, 1e6);
  EXPECT_EQ(gemma.rope_local.theta, 1e4);
  EXPECT_EQ(count_sliding(gemma), 22); // 26 of which each sixth is full
}

TEST(ConfigFromJson, TellsNullFromAbsent) {
  const auto mistral =
      parse(with(base("mistral"), {{"sliding_window", nullptr}}));
  EXPECT_EQ(mistral.sliding_window, std::nullopt);
  EXPECT_EQ(count_sliding(mistral), 0);
  const auto heads =
      parse(with(base("mistral"), {{"num_key_value_heads", nullptr}}));
  EXPECT_EQ(heads.num_key_value_heads, 4);
}

struct Alike {
  const char* what;
  Json legacy;
  Json current;
};

TEST(ConfigFromJson, TakesLegacyAndCurrentKeysAlike) {
  const Json sliding8 = {
      "sliding_attention",
      "sliding_attention",
      "sliding_attention",
      "full_attention",
      "sliding_attention",
      "sliding_attention",
      "sliding_attention",
      "full_attention"};
  const Json linear = {{"rope_type", "linear"}, {"factor", 8}};
  const Json yarn = {
      {"rope_type", "yarn"},
      {"factor", 4},
      {"original_max_position_embeddings", 512},
      {"beta_fast", 16},
      {"truncate", false}};
  const Json llama3 = {
      {"rope_type", "llama3"},
      {"factor", 8},
      {"low_freq_factor", 1},
      {"high_freq_factor", 4},
      {"original_max_position_embeddings", 64}};
  const auto themed = [](const Json& rope, double theta) {
    return with(rope, {{"rope_theta", theta}});
  };
  const Json plain = {{"rope_type", "default"}};
  const std::vector<Alike> cases = {
      {"theta",
       with(base("qwen3"), {{"rope_theta", 5e5}}),
       with(base("qwen3"), {{"rope_parameters", themed(plain, 5e5)}})},
      {"llama3",
       with(base("llama"), {{"rope_theta", 5e5}, {"rope_scaling", llama3}}),
       with(base("llama"), {{"rope_parameters", themed(llama3, 5e5)}})},
      {"yarn",
       with(base("llama"), {{"rope_theta", 1e4}, {"rope_scaling", yarn}}),
       with(base("llama"), {{"rope_parameters", themed(yarn, 1e4)}})},
      {"type",
       with(
           base("llama"),
           {{"rope_scaling", {{"type", "linear"}, {"factor", 8}}}}),
       with(base("llama"), {{"rope_scaling", linear}})},
      {"partial",
       with(base("llama"), {{"partial_rotary_factor", 0.5}}),
       with(
           base("llama"),
           {{"rope_parameters",
             with(plain, {{"partial_rotary_factor", 0.5}})}})},
      {"gemma",
       with(
           base("gemma3_text"),
           {{"sliding_window", 16},
            {"sliding_window_pattern", 4},
            {"rope_theta", 1e6},
            {"rope_local_base_freq", 2e4},
            {"rope_scaling", linear}}),
       with(
           base("gemma3_text"),
           {{"sliding_window", 16},
            {"layer_types", sliding8},
            {"rope_parameters",
             {{"full_attention", themed(linear, 1e6)},
              {"sliding_attention", themed(plain, 2e4)}}}})},
      {"qwen's window",
       with(
           base("qwen3"),
           {{"use_sliding_window", true},
            {"sliding_window", 32},
            {"max_window_layers", 8}}),
       with(
           base("qwen3"),
           {{"use_sliding_window", true},
            {"sliding_window", 32},
            {"layer_types",
             Json(std::vector<std::string>(8, "full_attention"))}})}};
  for (const Alike& c : cases) {
    EXPECT_EQ(parse(c.legacy), parse(c.current)) << c.what;
  }
}

TEST(ConfigFromJson, ScalesOnlyGemmasFullLayers) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 8}};
  const auto gemma =
      parse(with(base("gemma3_text"), {{"rope_scaling", linear}}));
  EXPECT_EQ(gemma.rope.type, RopeType::kLinear);
  EXPECT_EQ(gemma.rope_local.type, RopeType::kDefault);
  const auto mistral = parse(with(base("mistral"), {{"rope_scaling", linear}}));
  EXPECT_EQ(mistral.rope_local, mistral.rope);
}

TEST(ConfigFromJson, TakesTheYarnFactorFromTheContextsIfAbsent) {
  const Json yarn = {
      {"rope_type", "yarn"},
      {"factor", nullptr},
      {"original_max_position_embeddings", 512},
      {"beta_fast", nullptr},
      {"mscale", 0}};
  const auto config = parse(with(base("llama"), {{"rope_scaling", yarn}}));
  EXPECT_EQ(config.rope.factor, 4);
  EXPECT_EQ(config.rope.beta_fast, 32);
  EXPECT_EQ(config.rope.mscale, std::nullopt);
}

TEST(ConfigFromJson, DerivesWhichLayersSlide) {
  const auto qwen = parse(with(
      base("qwen3"),
      {{"use_sliding_window", true},
       {"sliding_window", 32},
       {"max_window_layers", 6}}));
  EXPECT_EQ(count_sliding(qwen), 2);
  EXPECT_EQ(qwen.layer_types[6], LayerType::kSliding);
  // Mistral has one kind of layer, whatever layer_types says.
  const auto mistral = parse(with(
      base("mistral"),
      {{"sliding_window", 16},
       {"layer_types", Json(std::vector<std::string>(8, "full_attention"))}}));
  EXPECT_EQ(count_sliding(mistral), 8);
  const auto ministral =
      parse(with(base("ministral"), {{"sliding_window", 9}}));
  EXPECT_EQ(count_sliding(ministral), 8);
  // A llama slides only where it lists its layers.
  const auto llama = parse(with(base("llama"), {{"sliding_window", 16}}));
  EXPECT_EQ(llama.sliding_window, std::nullopt);
  std::vector<std::string> layers(8, "full_attention");
  layers[2] = "sliding_attention";
  const auto listed = parse(
      with(base("llama"), {{"sliding_window", 16}, {"layer_types", layers}}));
  EXPECT_EQ(count_sliding(listed), 1);
  EXPECT_EQ(listed.sliding_window, 16);
}

TEST(ConfigFromJson, TakesTheTextModelOutOfAMultimodalOne) {
  Json text = base("gemma3_text");
  text.erase("model_type");
  const Json whole = {
      {"model_type", "gemma3"},
      {"text_config", text},
      {"quantization", {{"bits", 4}, {"group_size", 64}}},
      {"eos_token_id", {1, 106}},
      {"vision_config", {{"hidden_size", 1152}}}};
  const auto config = parse(whole);
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.eos_token_id, (std::vector<int>{1, 106}));
  ASSERT_TRUE(config.quantization.has_value());
  EXPECT_EQ(config.quantization->all.bits, 4);
}

TEST(ConfigFromJson, ReadsQuantizationWithItsOverrides) {
  const Json quantization = {
      {"bits", 4},
      {"group_size", 64},
      {"mode", "affine"},
      {"language_model.model.layers.0.mlp.up_proj",
       {{"bits", 8}, {"group_size", 32}}},
      {"lm_head", false}};
  const auto config =
      parse(with(base("llama"), {{"quantization", quantization}}));
  const auto& overrides = config.quantization->overrides;
  EXPECT_EQ(overrides.size(), 2U);
  EXPECT_EQ(overrides.at("model.layers.0.mlp.up_proj")->bits, 8);
  EXPECT_EQ(overrides.at("lm_head"), std::nullopt);
  Json old = with(base("llama"), {{"quantization_config", quantization}});
  EXPECT_EQ(parse(old), config);
}

TEST(ConfigFromJson, TellsOnlyTheNameOfAnUnknownFamily) {
  const auto config = parse({{"model_type", "mamba"}, {"hidden_size", "odd"}});
  EXPECT_EQ(config.model_type, "mamba");
  EXPECT_EQ(config.hidden_size, 0);
  EXPECT_FALSE(knows_model_type("mamba"));
}

struct Broken {
  const char* model_type;
  Json more;
  const char* message;
};

TEST(ConfigFromJson, NamesTheKeyAndWhatWasExpected) {
  const Json linear_without_factor = {{"rope_type", "linear"}};
  const std::vector<Broken> cases = {
      {"llama",
       {{"hidden_size", "64"}},
       "key hidden_size is \"64\", expected an integer from 1 to"},
      {"llama", {{"hidden_size", 0}}, "key hidden_size is 0, expected"},
      {"llama", {{"hidden_size", -64}}, "key hidden_size is -64"},
      {"llama", {{"hidden_size", 1e18}}, "key hidden_size is 1e+18"},
      {"llama", {{"hidden_size", 64.5}}, "key hidden_size is 64.5"},
      {"llama", {{"hidden_size", {64}}}, "key hidden_size is a list of 1"},
      {"llama", {{"vocab_size", INT64_MAX}}, "key vocab_size is 9223372036"},
      {"llama", {{"num_hidden_layers", 1 << 30}}, "key num_hidden_layers is"},
      {"llama", {{"num_attention_heads", 0}}, "key num_attention_heads is 0"},
      {"llama",
       {{"num_key_value_heads", 3}},
       "key num_key_value_heads is 3, expected a divisor of "
       "num_attention_heads, 4"},
      {"llama",
       {{"head_dim", 15}},
       "key head_dim is 15, expected an even number"},
      {"llama", {{"head_dim", 100000}}, "key head_dim is 100000"},
      {"llama",
       {{"head_dim", nullptr}, {"num_attention_heads", 6}},
       "key hidden_size is 64, expected a multiple of num_attention_heads, 6"},
      {"llama",
       {{"head_dim", nullptr}, {"num_attention_heads", 64}},
       "key hidden_size is 64, expected 64 times an integer from 2"},
      {"llama", {{"max_position_embeddings", 0}}, "max_position_embeddings"},
      {"llama", {{"rms_norm_eps", 0}}, "key rms_norm_eps is 0"},
      {"llama", {{"rms_norm_eps", -1e-6}}, "key rms_norm_eps is -1e-06"},
      {"llama", {{"rope_theta", 0}}, "key rope_theta is 0"},
      {"llama",
       {{"hidden_act", "relu"}},
       "key hidden_act is \"relu\", expected silu or gelu_pytorch_tanh"},
      {"llama",
       {{"tie_word_embeddings", 1}},
       "key tie_word_embeddings is 1, expected true or false"},
      {"llama", {{"rope_scaling", "linear"}}, "key rope_scaling is \"linear\""},
      {"llama",
       {{"rope_scaling", {{"type", "ntk"}}}},
       "rope_scaling: key type is \"ntk\", expected default, linear"},
      {"llama",
       {{"rope_scaling", linear_without_factor}},
       "rope_scaling: key factor is missing"},
      {"llama",
       {{"rope_parameters",
         {{"rope_type", "llama3"},
          {"factor", 8},
          {"low_freq_factor", 4},
          {"high_freq_factor", 4}}}},
       "key high_freq_factor is 4"},
      {"llama", {{"partial_rotary_factor", 0.01}}, "partial_rotary_factor"},
      {"llama", {{"partial_rotary_factor", 1.5}}, "partial_rotary_factor is"},
      {"llama",
       {{"layer_types", {"full_attention"}}},
       "key layer_types is a list of 1, expected one entry for each of 8"},
      {"llama", {{"layer_types", {"linear_attention"}}}, "key layer_types"},
      {"llama", {{"layer_types", 3}}, "key layer_types is 3"},
      {"ministral", {{"sliding_window", 0}}, "key sliding_window is 0"},
      {"ministral",
       {{"sliding_window", nullptr},
        {"layer_types",
         Json(std::vector<std::string>(8, "sliding_attention"))}},
       "key sliding_window is missing"},
      {"gemma3_text",
       {{"sliding_window_pattern", 0}},
       "key sliding_window_pattern is 0"},
      {"gemma3_text", {{"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar"},
      {"gemma3_text",
       {{"use_bidirectional_attention", true}},
       "key use_bidirectional_attention is true, expected false"},
      {"llama", {{"eos_token_id", "x"}}, "key eos_token_id is \"x\""},
      {"llama", {{"eos_token_id", {1, -2}}}, "key eos_token_id is a list of 2"},
      {"llama",
       {{"quantization", {{"bits", 4}}}},
       "quantization: key group_size is missing, expected 16, 32, 64 or 128"},
      {"llama",
       {{"quantization", {{"bits", 7}, {"group_size", 64}}}},
       "quantization: key bits is 7, expected 2, 3, 4, 5, 6 or 8"},
      {"llama",
       {{"quantization", {{"bits", 4}, {"group_size", 24}}}},
       "quantization: key group_size is 24"},
      {"llama",
       {{"quantization", {{"bits", 4}, {"group_size", 32}, {"mode", "mxfp4"}}}},
       "quantization: key mode is \"mxfp4\", expected affine"},
      {"llama",
       {{"quantization",
         {{"bits", 4}, {"group_size", 32}, {"x", {{"bits", 99}}}}}},
       "quantization: x: key bits is 99"},
      {"llama",
       {{"quantization_config", {{"quant_method", "gptq"}}}},
       "quantization_config: key quant_method is \"gptq\""},
  };
  for (const Broken& c : cases) {
    const Json json = with(base(c.model_type), c.more);
    const std::string message = file_error_of([&] { parse(json); });
    EXPECT_TRUE(begins_with(message, "config.json: ")) << c.more;
    EXPECT_TRUE(contains(message, c.message)) << c.more;
  }
}

TEST(ConfigFromJson, NamesTheFileIfItIsNoConfig) {
  const auto error = [](const std::string& text) {
    return file_error_of([&] { config_from_json(text, "config.json"); });
  };
  EXPECT_EQ(
      error("{\"a\": }"),
      "config.json: is not valid JSON at byte 7, expected an object");
  EXPECT_TRUE(begins_with(error(""), "config.json: is not valid JSON"));
  EXPECT_TRUE(contains(error("3"), "is 3, expected a JSON object"));
  EXPECT_TRUE(contains(error("{}"), "key model_type is missing, expected"));
  EXPECT_TRUE(contains(error(R"({"model_type":3})"), "key model_type is 3"));
  EXPECT_TRUE(contains(error(R"({"model_type":"a\nb"})"), "key model_type is"));
  EXPECT_TRUE(contains(error(std::string(9999, '[')), "nests deeper than 64"));
  EXPECT_TRUE(
      contains(error(R"({"text_config":[]})"), "key text_config is a list"));
  EXPECT_TRUE(contains(error("{\"a\":\"\xff\"}"), "is not valid JSON"));
  EXPECT_TRUE(contains(error(R"({"rope_theta":1e999})"), "out of range"));
}

TEST(ConfigFromJson, CountsNoBracesWithinStrings) {
  const std::string text = R"({"model_type":"llama","template":")" +
                           std::string(200, '{') + R"(\")" +
                           std::string(200, '[') + "\"}";
  EXPECT_EQ(parse(text.c_str()).model_type, "llama");
}

} // namespace
} // namespace sheave
