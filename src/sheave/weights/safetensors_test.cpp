#include "sheave/weights/safetensors.h"

#include <gtest/gtest.h>

#include "sheave/weights/weights_test_support.h"

namespace sheave {
namespace {

std::vector<TensorInfo> parse(const std::string& file) {
  return parse_safetensors(bytes_of(file), "m.safetensors");
}

std::string error_of(const std::string& header, size_t data_bytes) {
  return file_error_of(
      [&] { parse(safetensors_file(header, std::string(data_bytes, '\0'))); });
}

std::string entry(
    const std::string& dtype,
    const std::string& shape,
    const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, ListsTensorsInTheOrderOfTheirOffsets) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"a":)" +
                             entry("F32", "[2,3]", "[8,32]") + R"(,"b":)" +
                             entry("BF16", "[4]", "[0,8]") + R"(,"none":)" +
                             entry("F16", "[0,5]", "[32,32]") +
                             R"(,"scalar":)" + entry("U8", "[]", "[32,33]") +
                             "}";
  const auto tensors = parse(safetensors_file(header, std::string(33, 'x')));
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_EQ(tensors[0].type, "BF16");
  EXPECT_EQ(tensors[0].offset, 8 + header.size());
  EXPECT_EQ(tensors[1].name, "a");
  EXPECT_EQ(tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors[1].bytes, 24U);
}

struct Broken {
  const char* what;
  std::string header;
  std::string message;
};

TEST(Safetensors, NamesFileAndTensorOfABrokenHeader) {
  const std::string good = entry("F32", "[2]", "[0,8]");
  const std::vector<Broken> cases = {
      {"no JSON", "nonsense", "is not valid JSON at byte"},
      {"no object", "[1]", "is a list of 1, expected a JSON object"},
      {"NaN", R"({"a":NaN})", "is not valid JSON"},
      {"huge number", R"({"a":1e999})", "out of range"},
      {"not UTF-8", "{\"\xff\":1}", "is not valid JSON"},
      {"nesting", std::string(99, '['), "nests deeper than 64 levels"},
      {"repeated",
       R"({"a":)" + good + R"(,"a":)" + good + "}",
       "has the key a twice"},
      {"no entry", R"({"a":3})", "tensor a is 3, expected an object"},
      {"no dtype",
       R"({"a":{"shape":[],"data_offsets":[0,0]}})",
       "tensor a has no dtype"},
      {"dtype",
       R"({"a":)" + entry("F99", "[2]", "[0,8]") + "}",
       R"(tensor a has dtype "F99")"},
      {"shape",
       R"({"a":)" + entry("F32", "2", "[0,8]") + "}",
       "tensor a has shape 2, expected a list of sizes"},
      {"negative",
       R"({"a":)" + entry("F32", "[-2]", "[0,8]") + "}",
       "tensor a has shape a list of 1, expected a list of sizes"},
      {"fraction",
       R"({"a":)" + entry("F32", "[2.5]", "[0,8]") + "}",
       "tensor a has shape"},
      {"offsets",
       R"({"a":)" + entry("F32", "[2]", "[0]") + "}",
       "tensor a has data_offsets [0]"},
      {"backwards",
       R"({"a":)" + entry("F32", "[2]", "[8,0]") + "}",
       "tensor a has data_offsets [8, 0]"},
      {"beyond the file",
       R"({"a":)" + entry("F32", "[8]", "[0,32]") + "}",
       "within the data's 16 bytes (is the file cut short?)"},
      {"huge offset",
       R"({"a":)" + entry("F32", "[2]", "[0,18446744073709551615]") + "}",
       "tensor a has data_offsets"},
      {"size",
       R"({"a":)" + entry("F32", "[3]", "[0,8]") + "}",
       "tensor a takes 8 bytes, expected 12 for F32 [3]"},
      {"overflow",
       R"({"a":)" + entry("F32", "[4294967296,4294967296,2]", "[0,0]") + "}",
       "tensor a takes 0 bytes, expected fewer elements"},
      {"overflow of bits",
       R"({"a":)" + entry("F64", "[1152921504606846976]", "[0,0]") + "}",
       "tensor a takes 0 bytes"},
      {"overlap",
       R"({"a":)" + good + R"(,"b":)" + entry("F32", "[2]", "[4,12]") + "}",
       "tensors a and b overlap"},
      {"new line",
       R"({"a\nb":)" + entry("F32", "[3]", "[0,8]") + "}",
       "tensor a?b takes"},
  };
  for (const Broken& c : cases) {
    const std::string message = error_of(c.header, 16);
    EXPECT_TRUE(begins_with(message, "m.safetensors: ")) << c.what;
    EXPECT_TRUE(contains(message, c.message)) << c.what;
  }
}

TEST(Safetensors, RefusesAFileCutShortAnywhere) {
  const std::string whole = safetensors_file(
      R"({"a":)" + entry("F32", "[2]", "[0,8]") + "}",
      "12345678");
  EXPECT_EQ(parse(whole).size(), 1U);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(begins_with(
        file_error_of([&] { parse(whole.substr(0, size)); }),
        "m.safetensors: "))
        << size;
  }
}

TEST(Safetensors, DoesNotBelieveAHugeHeaderSize) {
  for (const uint64_t size : {UINT64_MAX, uint64_t{1} << 63, uint64_t{99}}) {
    EXPECT_TRUE(contains(
        file_error_of([&] { parse(raw(size) + "{}"); }),
        "has a header of " + std::to_string(size) + " bytes"));
  }
}

TEST(ShardIndex, MapsTensorsToFiles) {
  const auto shards = parse_shard_index(
      R"({"metadata":{},"weight_map":{"a":"m-1.safetensors","b":"m-2"}})",
      "index");
  EXPECT_EQ(shards.at("a"), "m-1.safetensors");
  EXPECT_EQ(shards.size(), 2U);
}

TEST(ShardIndex, NamesFileAndTensorOfABrokenMap) {
  const auto error = [](const std::string& text) {
    return file_error_of([&] { parse_shard_index(text, "index.json"); });
  };
  EXPECT_TRUE(contains(error("{}"), "index.json: key weight_map is missing"));
  EXPECT_TRUE(contains(error(R"({"weight_map":[]})"), "weight_map is a list"));
  EXPECT_TRUE(contains(error(R"({"weight_map":{}})"), "weight_map is an obj"));
  EXPECT_TRUE(contains(error(R"({"weight_map":{"a":1}})"), "a is in 1"));
  EXPECT_TRUE(
      contains(error(R"({"weight_map":{"a":"x","a":"y"}})"), "key a twice"));
  for (const char* path :
       {"../x", "/etc/passwd", "..", ".", "", "a/b", "a\\\\b", "a\\u0000"}) {
    const std::string text =
        std::string(R"({"weight_map":{"t":")") + path + "\"}}";
    EXPECT_TRUE(
        contains(error(text), "index.json: key weight_map: tensor t is in \""))
        << path;
  }
}

} // namespace
} // namespace sheave
