#include "sheave/weights/tensor_names.h"

#include <gtest/gtest.h>

namespace sheave {
namespace {

TEST(CanonicalName, TakesOffTheMultimodalPrefixes) {
  EXPECT_EQ(canonical_name("model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(
      canonical_name("language_model.model.layers.0.mlp.up_proj.weight"),
      "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(
      canonical_name("model.language_model.embed_tokens.weight"),
      "model.embed_tokens.weight");
  EXPECT_EQ(canonical_name("language_model.lm_head.weight"), "lm_head.weight");
}

TEST(CanonicalGgufName, MapsEveryTensorOfALlama) {
  const auto name = [](const char* stored) {
    return canonical_gguf_name(stored, "llama");
  };
  EXPECT_EQ(name("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(name("output_norm.weight"), "model.norm.weight");
  EXPECT_EQ(name("output.weight"), "lm_head.weight");
  EXPECT_EQ(name("rope_freqs.weight"), "rope_freqs.weight");
  const std::string layer = "model.layers.11.";
  EXPECT_EQ(name("blk.11.attn_q.weight"), layer + "self_attn.q_proj.weight");
  EXPECT_EQ(name("blk.11.attn_k.bias"), layer + "self_attn.k_proj.bias");
  EXPECT_EQ(name("blk.11.attn_v.weight"), layer + "self_attn.v_proj.weight");
  EXPECT_EQ(
      name("blk.11.attn_output.weight"),
      layer + "self_attn.o_proj.weight");
  EXPECT_EQ(name("blk.11.attn_norm.weight"), layer + "input_layernorm.weight");
  EXPECT_EQ(
      name("blk.11.ffn_norm.weight"),
      layer + "post_attention_layernorm.weight");
  EXPECT_EQ(name("blk.11.ffn_gate.weight"), layer + "mlp.gate_proj.weight");
  EXPECT_EQ(name("blk.11.ffn_up.weight"), layer + "mlp.up_proj.weight");
  EXPECT_EQ(name("blk.11.ffn_down.weight"), layer + "mlp.down_proj.weight");
}

TEST(CanonicalGgufName, KnowsTheNormsOfEachFamily) {
  EXPECT_EQ(
      canonical_gguf_name("blk.0.attn_q_norm.weight", "qwen3"),
      "model.layers.0.self_attn.q_norm.weight");
  const auto gemma = [](const char* stored) {
    return canonical_gguf_name(stored, "gemma3_text");
  };
  EXPECT_EQ(
      gemma("blk.0.ffn_norm.weight"),
      "model.layers.0.pre_feedforward_layernorm.weight");
  EXPECT_EQ(
      gemma("blk.0.post_attention_norm.weight"),
      "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(
      gemma("blk.0.post_ffw_norm.weight"),
      "model.layers.0.post_feedforward_layernorm.weight");
  EXPECT_EQ(
      gemma("blk.0.attn_k_norm.weight"),
      "model.layers.0.self_attn.k_norm.weight");
}

TEST(CanonicalGgufName, LeavesUnknownNamesAsTheyAre) {
  for (const char* name :
       {"blk.0.ssm_a.weight",
        "blk.0",
        "blk..",
        ".",
        "",
        "blk.weight",
        "mm.0"}) {
    EXPECT_EQ(canonical_gguf_name(name, "llama"), name);
  }
}

} // namespace
} // namespace sheave
