#include <gtest/gtest.h>

#include <limits>

#include "sheave/weights/model_config.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

using Builder = GgufBuilder;

ModelConfig parse(const std::string& file) {
  return config_from_gguf(GgufFile::parse(bytes_of(file), "m.gguf"));
}

/// A small model's metadata under this architecture, without the keys `but`.
Builder base(const std::string& architecture, const std::string& but = "") {
  Builder builder;
  builder.add("general.architecture", architecture);
  const std::vector<std::pair<std::string, uint32_t>> keys = {
      {"block_count", 6},
      {"embedding_length", 64},
      {"feed_forward_length", 128},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"context_length", 2048}};
  for (const auto& [key, value] : keys) {
    if (key != but) {
      builder.add(architecture + "." + key, value);
    }
  }
  const std::string epsilon = "attention.layer_norm_rms_epsilon";
  if (epsilon != but) {
    builder.add(architecture + "." + epsilon, 1e-5F);
  }
  builder.add_tensor("token_embd.weight", {64, 2}, 0, 0);
  return builder;
}

std::string build(const Builder& builder) {
  return builder.build(512);
}

/// What a GGUF file can't say or says in its own way.
ModelConfig comparable(ModelConfig config, const std::string& name) {
  config.rms_norm_offset = 0; // GGUF stores the sum
  config.rope.traditional = false;
  config.rope_local.traditional = false;
  config.bos_token_id.reset(); // the fixtures were made without tokenizer
  config.eos_token_id.clear();
  if (name == "llama_tied") { // there the tensor rope_freqs holds it
    config.rope.type = RopeType::kDefault;
    config.rope.factor = 1;
    config.rope.original_max_position_embeddings =
        config.max_position_embeddings;
    config.rope_local = config.rope;
  }
  return config;
}

TEST(ConfigFromGguf, EqualsConfigJsonOfTheSameModel) {
  for (const std::string name :
       {"llama", "llama_tied", "qwen3", "gemma3_text"}) {
    const auto json_path = weight_fixture("config/" + name + ".json");
    const auto json =
        config_from_json(read_whole(json_path), json_path.string());
    const auto gguf =
        parse(read_whole(weight_fixture("config/" + name + ".gguf")));
    EXPECT_EQ(comparable(gguf, name), comparable(json, name)) << name;
    const bool llama = name.starts_with("llama");
    EXPECT_EQ(gguf.rope.traditional, llama) << name;
    EXPECT_EQ(gguf.rope_local.traditional, llama) << name;
    EXPECT_EQ(gguf.rms_norm_offset, 0) << name;
  }
}

TEST(ConfigFromGguf, TakesMistralPublishedAsLlamaForALlama) {
  const auto config =
      parse(read_whole(weight_fixture("config/mistral_swa.gguf")));
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.rope.traditional);
}

TEST(ConfigFromGguf, KnowsMistral3ByItsOwnName) {
  const auto config = parse(build(base("mistral3")));
  EXPECT_EQ(config.model_type, "mistral");
  EXPECT_TRUE(config.rope.traditional);
  EXPECT_EQ(config.sliding_window, std::nullopt);
}

TEST(ConfigFromGguf, FillsInLlamaCppsDefaults) {
  const auto config = parse(build(base("gemma3", "attention.head_count_kv")));
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.rope.theta, 1e4);
  EXPECT_EQ(config.rope_local.theta, 1e4);
  EXPECT_EQ(config.rope.partial_rotary_factor, 1);
  EXPECT_EQ(config.sliding_window, std::nullopt);
  EXPECT_EQ(config.query_pre_attn_scalar, 16);
  EXPECT_TRUE(config.tie_word_embeddings);
}

TEST(ConfigFromGguf, ReadsGemmasSlidingPatternAsNumberOrFlags) {
  auto builder = base("gemma3");
  builder.add("gemma3.attention.sliding_window", uint32_t{16});
  const auto sixth = parse(build(builder));
  EXPECT_EQ(sixth.layer_types[4], LayerType::kSliding);
  EXPECT_EQ(sixth.layer_types[5], LayerType::kFull);
  const std::string key = "gemma3.attention.sliding_window_pattern";
  auto flags = builder;
  flags.add_list(key, Builder::kBool, 6, std::string("\1\1\0\1\1\0", 6));
  auto number = builder;
  number.add(key, uint32_t{3});
  EXPECT_EQ(parse(build(flags)), parse(build(number)));
  EXPECT_EQ(parse(build(flags)).layer_types[2], LayerType::kFull);
}

TEST(ConfigFromGguf, ScalesOnlyGemmasFullLayers) {
  auto builder = base("gemma3");
  builder.add("gemma3.rope.freq_base", 1e6F);
  builder.add("gemma3.rope.freq_base_swa", 2e4F);
  builder.add("gemma3.rope.scaling.type", "linear");
  builder.add("gemma3.rope.scaling.factor", 8.0F);
  const auto config = parse(build(builder));
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.type, RopeType::kLinear);
  EXPECT_EQ(config.rope.factor, 8);
  EXPECT_EQ(config.rope_local.theta, 2e4);
  EXPECT_EQ(config.rope_local.type, RopeType::kDefault);
}

TEST(ConfigFromGguf, ScalesLinearlyWhereNoTypeIsGiven) {
  for (const char* key :
       {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    auto builder = base("llama");
    builder.add(key, 4.0F);
    const auto config = parse(build(builder));
    EXPECT_EQ(config.rope.type, RopeType::kLinear) << key;
    EXPECT_EQ(config.rope.factor, 4) << key;
    EXPECT_EQ(config.rope_local, config.rope) << key;
    builder.add("llama.rope.scaling.type", "none");
    EXPECT_EQ(parse(build(builder)).rope.type, RopeType::kDefault) << key;
  }
}

TEST(ConfigFromGguf, ReadsYarn) {
  auto builder = base("llama");
  builder.add("llama.rope.scaling.type", "yarn");
  builder.add("llama.rope.scaling.factor", 4.0F);
  builder.add("llama.rope.scaling.original_context_length", uint32_t{512});
  builder.add("llama.rope.scaling.yarn_beta_fast", 16.0F);
  builder.add("llama.rope.scaling.yarn_log_multiplier", 1.0F);
  const auto rope = parse(build(builder)).rope;
  EXPECT_EQ(rope.type, RopeType::kYarn);
  EXPECT_EQ(rope.original_max_position_embeddings, 512);
  EXPECT_EQ(rope.beta_fast, 16);
  EXPECT_EQ(rope.beta_slow, 1);
  EXPECT_EQ(rope.mscale, 1);
  EXPECT_EQ(rope.mscale_all_dim, 1);
}

TEST(ConfigFromGguf, CutsTheRotaryFractionBackToTheSameDims) {
  for (uint32_t head_dim = 2; head_dim <= 512; head_dim += 14) {
    for (uint32_t dims = 2; dims <= head_dim; dims += 2) {
      auto builder = base("qwen3");
      builder.add("qwen3.attention.key_length", head_dim);
      builder.add("qwen3.attention.value_length", head_dim);
      builder.add("qwen3.rope.dimension_count", dims);
      const auto config = parse(build(builder));
      ASSERT_EQ(
          static_cast<int>(config.head_dim * config.rope.partial_rotary_factor),
          static_cast<int>(dims))
          << head_dim;
    }
  }
}

TEST(ConfigFromGguf, SeesBiasesAndHeadInTheTensors) {
  auto builder = base("llama");
  builder.add_tensor("output.weight", {1}, 0, 512);
  builder.add_tensor("blk.0.attn_q.bias", {1}, 0, 544);
  builder.add_tensor("blk.0.ffn_gate.bias", {1}, 0, 576);
  const auto config = parse(builder.build(600));
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.mlp_bias);
}

TEST(ConfigFromGguf, TellsOnlyTheNameOfAnUnknownFamily) {
  Builder builder;
  builder.add("general.architecture", "mamba");
  EXPECT_EQ(parse(build(builder)).model_type, "mamba");
}

struct Broken {
  std::string file;
  std::string message;
};

std::string with(const std::string& key, uint32_t type, std::string value) {
  return build(base("llama").add(key, type, std::move(value)));
}

TEST(ConfigFromGguf, NamesTheKeyAndWhatWasExpected) {
  const auto u32 = [](uint32_t value) { return raw(value); };
  const std::string nan = raw(std::numeric_limits<float>::quiet_NaN());
  std::vector<Broken> cases = {
      {build(Builder()), "key general.architecture is \"\", expected"},
      {build(Builder().add("general.architecture", "a\nb")), "is \"a?b\""},
      {build(Builder().add("general.architecture", uint32_t{1})),
       "key general.architecture is an integer, expected a string"},
      {build(base("llama", "attention.layer_norm_rms_epsilon")),
       "key llama.attention.layer_norm_rms_epsilon is missing, expected a"},
      {with("llama.attention.key_length", 4, u32(100000)),
       "key llama.attention.key_length is 100000, expected an integer from 2"},
      {with("llama.attention.value_length", 4, u32(8)),
       "key llama.attention.value_length is 8, expected key_length, 16"},
      {with("llama.rope.dimension_count", 4, u32(32)),
       "key llama.rope.dimension_count is 32, expected an integer from 2 to "
       "16"},
      {with("llama.rope.dimension_count", 4, u32(15)), "rotates 15 of 16 dims"},
      {with("llama.rope.freq_base", 6, nan), "key llama.rope.freq_base is nan"},
      {with("llama.rope.freq_base", 6, raw(-1.0F)), "freq_base is -1"},
      {with("llama.rope.scaling.type", 8, Builder::text("longrope")),
       "key llama.rope.scaling.type is longrope, expected none, linear"},
      {with("llama.rope.scaling.attn_factor", 6, raw(2.0F)),
       "key llama.rope.scaling.attn_factor is 2, expected 1"},
      {with("llama.expert_count", 4, u32(8)),
       "key llama.expert_count is 8, expected 0 (not supported)"},
      {with("split.count", 4, u32(3)), "key split.count is 3, expected 1"},
      {with("tokenizer.ggml.bos_token_id", 5, raw(-1)),
       "key tokenizer.ggml.bos_token_id is -1, expected an integer from 0"},
      {build(
           base("mistral3").add("mistral3.attention.temperature_scale", 0.1F)),
       "key mistral3.attention.temperature_scale is 0.1, expected 0"},
      {build(base("gemma3")
                 .add_list(
                     "gemma3.attention.sliding_window_pattern",
                     Builder::kBool,
                     1,
                     "x")
                 .add("gemma3.attention.sliding_window", uint32_t{16})),
       "sliding_window_pattern is a list of 1, expected one flag for each of "
       "6"},
      {build(base("gemma3").add("gemma3.attention.sliding_window", 0U)),
       "key gemma3.attention.sliding_window is 0, expected an integer from 1"},
      {build(Builder()
                 .add("general.architecture", "llama")
                 .add_tensor("x", {1}, 0, 0)),
       "tensor token_embd.weight is missing"},
      {build(Builder()
                 .add("general.architecture", "llama")
                 .add_tensor("token_embd.weight", {1}, 0, 0)),
       "tensor token_embd.weight is [1], expected [vocabulary, hidden]"},
  };
  for (const char* key :
       {"block_count",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "context_length"}) {
    const std::string name = std::string("key llama.") + key;
    cases.push_back({build(base("llama", key)), name + " is missing"});
    for (const uint32_t value : {0U, UINT32_MAX}) {
      const auto& file =
          build(base("llama", key).add(std::string("llama.") + key, value));
      cases.push_back({file, name + " is " + std::to_string(value)});
    }
    const auto& list = build(
        base("llama", key)
            .add_list(std::string("llama.") + key, Builder::kU32, 1, u32(4)));
    cases.push_back({list, name + " is a list of integers"});
  }
  for (const Broken& c : cases) {
    const std::string message = file_error_of([&] { parse(c.file); });
    EXPECT_TRUE(begins_with(message, "m.gguf: "));
    EXPECT_TRUE(contains(message, c.message));
  }
}

} // namespace
} // namespace sheave
