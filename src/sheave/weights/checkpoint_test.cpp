#include "sheave/weights/checkpoint.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>

#include "sheave/kernels/linear/linear.h"
#include "sheave/weights/mapped_array.h"
#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

constexpr const char* kConfig = R"({"model_type":"llama"})";

/// A tensor's entry of a safetensors header.
std::string entry(
    const std::string& name,
    const std::string& shape,
    size_t begin,
    size_t end,
    const std::string& dtype = "F32") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

bool same(const mx::array& a, const mx::array& b) {
  return a.shape() == b.shape() && mx::array_equal(a, b).item<bool>();
}

/// Whether weight `name` decodes to the floats beside it.
bool decodes_as_expected(
    const Checkpoint& checkpoint,
    const std::string& name,
    int rows,
    int columns) {
  return same(
      kernels::dequantize(checkpoint.weight(name, rows, columns)),
      checkpoint.weight(name + ".expected", rows, columns).data);
}

/// A folder with this config, and these entries over 64 zero bytes.
void write_model(
    const TemporaryFolder& folder,
    const std::string& entries,
    const std::string& data = std::string(64, '\0'),
    const std::string& config = kConfig) {
  folder.write("config.json", config);
  folder.write(
      "model.safetensors",
      safetensors_file("{" + entries + "}", data));
}

TEST(Checkpoint, DecodesEveryGgufTypeAsTheGgufPackageDoes) {
  const auto checkpoint = Checkpoint::open(weight_fixture("types.gguf"));
  EXPECT_EQ(checkpoint.format(), CheckpointFormat::kGguf);
  for (const std::string type :
       {"F32",
        "F16",
        "BF16",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
        "Q4_K",
        "Q5_K",
        "Q6_K"}) {
    const auto weight = checkpoint.weight(type, 4, 512);
    EXPECT_EQ(kernels::weight_format_name(weight.format), type);
    EXPECT_TRUE(decodes_as_expected(checkpoint, type, 4, 512)) << type;
  }
}

TEST(Checkpoint, DecodesMlxQuantizationWithOverrides) {
  const auto checkpoint = Checkpoint::open(weight_fixture("affine"));
  const std::string layer = "model.layers.0.self_attn.";
  const auto q = checkpoint.weight(layer + "q_proj", 8, 128);
  EXPECT_EQ(q.bits, 4);
  EXPECT_EQ(q.group_size, 64);
  const auto k = checkpoint.weight(layer + "k_proj", 8, 128);
  EXPECT_EQ(k.bits, 8);
  EXPECT_EQ(k.group_size, 32);
  const auto v = checkpoint.weight(layer + "v_proj", 8, 128);
  EXPECT_EQ(v.format, kernels::WeightFormat::kBF16);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    EXPECT_TRUE(decodes_as_expected(checkpoint, layer + name, 8, 128)) << name;
  }
}

TEST(Checkpoint, LeavesAlignedTensorsInTheMapping) {
  const auto checkpoint = Checkpoint::open(weight_fixture("types.gguf"));
  const auto weight = checkpoint.weight("Q4_K", 4, 512);
  const auto& tensors = checkpoint.tensors();
  const auto tensor = std::find_if(
      tensors.begin(),
      tensors.end(),
      [](const CheckpointTensor& t) {
        return t.canonical_name == "Q4_K.weight";
      });
  ASSERT_NE(tensor, tensors.end());
  if (!mx::is_available(mx::Device::gpu)) {
    EXPECT_EQ(
        weight.data.data<uint8_t>(),
        tensor->file->bytes().data() + tensor->info.offset);
  }
}

TEST(Checkpoint, IsNeededNoMoreOnceArraysAreTaken) {
  std::optional<mx::array> norm;
  {
    const TemporaryFolder folder;
    write_model(folder, entry("model.norm.weight", "[4]", 0, 16));
    norm = Checkpoint::open(folder.path()).vector("model.norm.weight", 4);
  }
  EXPECT_TRUE(same(*norm, mx::zeros({4})));
}

TEST(Checkpoint, IsNeverWrittenToByMlx) {
  const TemporaryFolder folder;
  write_model(folder, entry("norm.weight", "[4]", 0, 16));
  const auto checkpoint = Checkpoint::open(folder.path());
  // The only handle goes into the sum: MLX would reuse memory of its own.
  mx::array sum = mx::add(checkpoint.vector("norm.weight", 4), mx::array(1.0F));
  EXPECT_TRUE(same(sum, mx::ones({4})));
  EXPECT_TRUE(same(checkpoint.vector("norm.weight", 4), mx::zeros({4})));
}

TEST(Checkpoint, CopiesTensorsThatLieMisaligned) {
  for (size_t shift = 0; shift < 4; ++shift) {
    const TemporaryFolder folder;
    const float values[] = {1, -2, 3, 0.5F};
    const std::string data =
        std::string(shift, 'x') +
        std::string(reinterpret_cast<const char*>(values), sizeof(values));
    write_model(folder, entry("n", "[4]", shift, shift + 16), data);
    const auto norm = Checkpoint::open(folder.path()).vector("n", 4);
    EXPECT_TRUE(same(norm, mx::array({1.0F, -2.0F, 3.0F, 0.5F}))) << shift;
  }
}

TEST(Checkpoint, ConvertsHalfVectorsToFloat) {
  const TemporaryFolder folder;
  write_model(
      folder,
      entry("f", "[1]", 0, 2, "F16") + "," + entry("b", "[1]", 2, 4, "BF16"),
      std::string("\x00\x3E\xC0\x3F", 4));
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_TRUE(same(checkpoint.vector("f", 1), mx::array({1.5F})));
  EXPECT_TRUE(same(checkpoint.vector("b", 1), mx::array({1.5F})));
}

TEST(Checkpoint, ReadsTheTextFilesThatAreThere) {
  const TemporaryFolder folder;
  write_model(folder, entry("a", "[4]", 0, 16));
  EXPECT_FALSE(Checkpoint::open(folder.path()).text_assets().has_tokenizer());
  folder.write("tokenizer.json", "{}");
  folder.write("tokenizer_config.json", "{\"t\":1}");
  folder.write("chat_template.jinja", "{{ x }}");
  folder.write("generation_config.json", "{\"g\":1}");
  const auto assets = Checkpoint::open(folder.path()).text_assets();
  EXPECT_EQ(assets.tokenizer_json, "{}");
  EXPECT_EQ(assets.tokenizer_config_json, "{\"t\":1}");
  EXPECT_EQ(assets.chat_template_jinja, "{{ x }}");
  EXPECT_EQ(assets.generation_config_json, "{\"g\":1}");
  EXPECT_EQ(assets.config_json, kConfig);
}

TEST(Checkpoint, ReportsProgressInBytes) {
  const TemporaryFolder folder;
  write_model(
      folder,
      entry("a", "[4]", 0, 16) + "," + entry("b.weight", "[4,3]", 16, 64));
  std::vector<uint64_t> seen;
  const auto checkpoint =
      Checkpoint::open(folder.path(), [&](uint64_t done, uint64_t total) {
        EXPECT_EQ(total, 64U);
        seen.push_back(done);
      });
  (void)checkpoint.vector("a", 4);
  (void)checkpoint.weight("b", 4, 3);
  (void)checkpoint.vector("a", 4); // no more than the total
  EXPECT_EQ(seen, (std::vector<uint64_t>{16, 64, 64}));
}

TEST(Checkpoint, ReadsShards) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  const std::string data(16, '\0');
  folder.write(
      "m-1",
      safetensors_file("{" + entry("a", "[4]", 0, 16) + "}", data));
  folder.write(
      "m-2",
      safetensors_file("{" + entry("b", "[4]", 0, 16) + "}", data));
  folder.write(
      "model.safetensors.index.json",
      R"({"weight_map":{"a":"m-1","b":"m-2"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.tensors().size(), 2U);
  EXPECT_TRUE(checkpoint.has("b"));
}

TEST(Checkpoint, NamesTheShardThatIsWrong) {
  const TemporaryFolder folder;
  folder.write("config.json", kConfig);
  const std::string data(16, '\0');
  folder.write(
      "m-1",
      safetensors_file("{" + entry("a", "[4]", 0, 16) + "}", data));
  folder.write(
      "m-2",
      safetensors_file("{" + entry("b", "[4]", 0, 16) + "}", data));
  const auto error = [&](const std::string& map) {
    folder.write(
        "model.safetensors.index.json",
        "{\"weight_map\":" + map + "}");
    return file_error_of([&] { Checkpoint::open(folder.path()); });
  };
  EXPECT_TRUE(
      contains(error(R"({"a":"m-3"})"), "/m-3: can't be opened: No such"));
  EXPECT_TRUE(contains(
      error(R"({"a":"m-2","b":"m-2"})"),
      "/m-2: tensor a is missing, expected it here"));
  EXPECT_TRUE(
      contains(error(R"({"a":"m-2","b":"m-1"})"), "tensor a is missing"));
  std::filesystem::create_directory(folder.path() / "m-4");
  EXPECT_TRUE(contains(error(R"({"a":"m-4"})"), "/m-4: is not a regular file"));
  folder.write(
      "m-5",
      safetensors_file("{" + entry("a", "[4]", 0, 16) + "}", data));
  folder.write(
      "m-5b",
      safetensors_file(
          "{" + entry("c", "[4]", 0, 16) + "," + entry("a", "[1]", 16, 20) +
              "}",
          std::string(20, '\0')));
  EXPECT_TRUE(
      contains(error(R"({"a":"m-5","c":"m-5b"})"), "tensor a stands for a"));
}

TEST(Checkpoint, NamesThePathThatIsNoModel) {
  const TemporaryFolder folder;
  const auto error = [](const std::filesystem::path& path) {
    return file_error_of([&] { Checkpoint::open(path); });
  };
  EXPECT_TRUE(contains(
      error(folder.path() / "none"),
      "none: no such file or folder, expected a model's folder"));
  EXPECT_TRUE(contains(error(folder.path()), "/config.json: no such file"));
  EXPECT_TRUE(
      contains(error(folder.write("text", "hello")), "is not a GGUF file"));
  folder.write("config.json", kConfig);
  EXPECT_TRUE(contains(
      error(folder.path()),
      "/model.safetensors: can't be opened: No such file"));
}

struct Broken {
  std::string entries;
  std::string message;
};

/// The message of asking for the matrix "w" as [2, 32] and the vector "n".
std::string error_of(const std::string& entries, const std::string& config) {
  const TemporaryFolder folder;
  write_model(folder, entries, std::string(600, '\0'), config);
  return file_error_of([&] {
    const auto checkpoint = Checkpoint::open(folder.path());
    (void)checkpoint.vector("n", 4);
    (void)checkpoint.weight("w", 2, 32);
  });
}

TEST(Checkpoint, NamesFileAndTensorThatDoNotFit) {
  const std::string n = entry("n", "[4]", 0, 16) + ",";
  const std::vector<Broken> cases = {
      {entry("x", "[4]", 0, 16), "tensor n is missing"},
      {entry("n", "[5]", 0, 20), "tensor n is [5], expected [4]"},
      {entry("n", "[4,1]", 0, 16), "tensor n is [4, 1], expected [4]"},
      {entry("n", "[4]", 0, 16, "I32"),
       "tensor n has type I32, expected F32, F16 or BF16"},
      {n + entry("x", "[1]", 16, 20), "tensor w.weight is missing"},
      {n + entry("w.weight", "[32,2]", 16, 272),
       "tensor w.weight is [32, 2], expected [2, 32]"},
      {n + entry("w.weight", "[2,32]", 16, 80, "F8_E4M3"),
       "tensor w.weight has type F8_E4M3, expected one of F32 F16"},
      {n + entry("language_model.n", "[4]", 16, 32), "stands for n"},
  };
  for (const Broken& c : cases) {
    const std::string message = error_of(c.entries, kConfig);
    EXPECT_TRUE(begins_with(message, "/")) << c.entries;
    EXPECT_TRUE(contains(message, ": tensor ")) << c.entries;
    EXPECT_TRUE(contains(message, c.message)) << c.entries;
  }
}

TEST(Checkpoint, NamesTheTensorWhoseQuantizationDoesNotFit) {
  const std::string config = R"({"model_type":"llama","quantization":
      {"bits":4,"group_size":32,"off":false}})";
  const std::string n = entry("n", "[4]", 0, 16) + ",";
  const std::string w = entry("w.weight", "[2,4]", 16, 48, "U32") + ",";
  const std::string scales = entry("w.scales", "[2,1]", 48, 56) + ",";
  const std::string biases = entry("w.biases", "[2,1]", 56, 64);
  EXPECT_EQ(error_of(n + w + scales + biases, config), "");
  EXPECT_TRUE(contains(
      error_of(n + w + scales + biases, kConfig),
      "tensor w.weight has scales, expected a key quantization"));
  EXPECT_TRUE(contains(
      error_of(n + w + scales + entry("x", "[1]", 64, 68), config),
      "tensor w.biases is missing"));
  EXPECT_TRUE(contains(
      error_of(n + w + entry("w.scales", "[2,2]", 48, 64), config),
      "tensor w.scales is [2, 2], expected [2, 1]"));
  EXPECT_TRUE(contains(
      error_of(
          n + w + entry("w.scales", "[2,1]", 48, 52, "F16") + "," + biases,
          config),
      "tensor w.weight has scales and biases of two types"));
  EXPECT_TRUE(contains(
      error_of(
          n + entry("w.weight", "[2,8]", 64, 128, "U32") + "," + scales +
              biases,
          config),
      "tensor w.weight is [2, 8], expected [2, 4]"));
  EXPECT_TRUE(contains(
      error_of(
          n + entry("w.weight", "[2,4]", 16, 48, "I32") + "," + scales + biases,
          config),
      "tensor w.weight has type I32 beside scales, expected U32"));
  std::string wide = config;
  wide.replace(wide.find("32,"), 2, "64");
  EXPECT_TRUE(contains(
      error_of(n + w + scales + biases, wide),
      "rows of 32 elements, expected whole groups of 64"));
  std::string off = config;
  off.replace(off.find("off"), 3, "w");
  EXPECT_TRUE(contains(
      error_of(n + w + scales + biases, off),
      "tensor w.weight has scales, expected none"));
}

TEST(Checkpoint, RefusesNumbersThatAreNotFinite) {
  const TemporaryFolder folder;
  std::string data(64, '\0');
  data.replace(20, 4, std::string("\0\0\xC0\x7F", 4)); // of "w"
  write_model(
      folder,
      entry("n", "[4]", 0, 16) + "," + entry("w.weight", "[4,3]", 16, 64),
      data);
  const auto checkpoint = Checkpoint::open(folder.path());
  (void)checkpoint.vector("n", 4);
  EXPECT_TRUE(contains(
      file_error_of([&] { (void)checkpoint.weight("w", 4, 3); }),
      "model.safetensors: tensor w.weight holds a NaN or infinity "
      "in element 1, expected finite numbers"));
}

TEST(Checkpoint, RefusesBlocksWhoseScalesAreNotFinite) {
  const TemporaryFolder folder;
  GgufBuilder builder;
  builder.add("general.architecture", "none");
  builder.add_tensor("w.weight", {32, 2}, 2, 0);
  std::string file = builder.build(36);
  file[file.size() - 18] = '\0';
  file[file.size() - 17] = '\x7C';
  const auto checkpoint = Checkpoint::open(folder.write("m.gguf", file));
  EXPECT_TRUE(contains(
      file_error_of([&] { (void)checkpoint.weight("w", 2, 32); }),
      "m.gguf: tensor w.weight holds a NaN or infinity in the scales "
      "of block 1"));
}

TEST(Checkpoint, NamesATensorTypeThatCannotBeComputedWith) {
  const TemporaryFolder folder;
  GgufBuilder builder;
  builder.add("general.architecture", "none");
  builder.add_tensor("w.weight", {256, 2}, 17, 0);
  const auto checkpoint =
      Checkpoint::open(folder.write("m.gguf", builder.build(148)));
  EXPECT_EQ(checkpoint.tensors()[0].info.type, "IQ2_XS");
  EXPECT_TRUE(contains(
      file_error_of([&] { (void)checkpoint.weight("w", 2, 256); }),
      "m.gguf: tensor w.weight has type IQ2_XS, expected one of F32 "
      "F16 BF16 Q4_0"));
}

} // namespace
} // namespace sheave
