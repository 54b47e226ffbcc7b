#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/engine/model_path.h"
#include "sheave/engine/model_summary.h"

namespace sheave {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string model;
  bool json = false;
  bool tensors = false;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Json tensors_json(const ModelSummary& model) {
  Json list = Json::array();
  for (const TensorSummary& tensor : model.tensors) {
    list.push_back(
        {{"name", tensor.name},
         {"stored_name", tensor.stored_name},
         {"type", tensor.type},
         {"shape", tensor.shape},
         {"bytes", tensor.bytes}});
  }
  return list;
}

Json layers_json(const ModelSummary& model) {
  Json list = Json::array();
  for (const LayerSummary& layer : model.layers) {
    list.push_back({{"attention", layer.attention}, {"cache", layer.cache}});
  }
  return list;
}

Json summary_json(const ModelSummary& model) {
  Json json = {
      {"path", model.path.string()},
      {"format", model.format},
      {"architecture", model.architecture},
      {"supported", model.supported},
      {"parameters", model.parameters},
      {"bytes", model.bytes},
      {"quantization", model.quantization},
      {"context", model.context_tokens},
      {"vocab_size", model.vocab_size},
      {"hidden_size", model.hidden_size},
      {"intermediate_size", model.intermediate_size},
      {"num_attention_heads", model.num_attention_heads},
      {"num_key_value_heads", model.num_key_value_heads},
      {"head_dim", model.head_dim},
      {"sliding_window", nullptr},
      {"tied_head", model.tied_head},
      {"tokenizer", model.has_tokenizer},
      {"chat_template", model.has_chat_template},
      {"layers", layers_json(model)},
      {"tensors", tensors_json(model)}};
  if (model.sliding_window) {
    json["sliding_window"] = *model.sliding_window;
  }
  return json;
}

/// Runs of equal layers: "0-4: sliding, rotating window=512 plain float16".
std::string layers_text(const ModelSummary& model) {
  std::string text;
  for (size_t begin = 0; begin < model.layers.size();) {
    size_t end = begin + 1;
    const LayerSummary& layer = model.layers[begin];
    while (end < model.layers.size() &&
           model.layers[end].cache == layer.cache) {
      ++end;
    }
    const std::string range = end - begin == 1
                                  ? std::to_string(begin)
                                  : fmt::format("{}-{}", begin, end - 1);
    text += fmt::format(
        "  {:>7}  {:8} cache: {}\n",
        range,
        layer.attention,
        layer.cache);
    begin = end;
  }
  return text;
}

std::string tensors_text(const ModelSummary& model) {
  size_t width = 0;
  for (const TensorSummary& tensor : model.tensors) {
    width = std::max(width, tensor.name.size());
  }
  std::string text;
  for (const TensorSummary& tensor : model.tensors) {
    text += fmt::format(
        "  {:{}}  {:6} {:>10}  {}\n",
        tensor.name,
        width,
        tensor.type,
        bytes_text(tensor.bytes),
        shape_text(tensor.shape));
  }
  return text;
}

std::string summary_text(const ModelSummary& model, bool tensors) {
  std::string text = fmt::format(
      "model          {}\n"
      "format         {}\n"
      "architecture   {}{}\n"
      "parameters     {:.1f} M in {} tensors, {}\n"
      "quantization   {}\n",
      model.path.string(),
      model.format,
      model.architecture,
      model.supported ? "" : " (not supported)",
      static_cast<double>(model.parameters) / 1e6,
      model.tensors.size(),
      bytes_text(model.bytes),
      model.quantization);
  if (model.supported) {
    text += fmt::format(
        "context        {} tokens\n"
        "window         {}\n"
        "heads          {} query, {} key/value, dim {}\n"
        "hidden         {}, feed-forward {}\n"
        "vocabulary     {}, head {}\n",
        model.context_tokens,
        model.sliding_window ? fmt::format("{} tokens", *model.sliding_window)
                             : "none",
        model.num_attention_heads,
        model.num_key_value_heads,
        model.head_dim,
        model.hidden_size,
        model.intermediate_size,
        model.vocab_size,
        model.tied_head ? "tied to the embedding" : "of its own");
  }
  text += fmt::format(
      "tokenizer      {}\nchat template  {}\n",
      model.has_tokenizer ? "yes" : "no",
      model.has_chat_template ? "yes" : "no");
  if (model.supported) {
    text += "layers\n" + layers_text(model);
  }
  return tensors ? text + "tensors\n" + tensors_text(model) : text;
}

void inspect(const InspectOptions& options) {
  const ModelSummary model =
      summarize_model(value_or_throw(find_model(options.model)));
  write_stdout(
      options.json ? summary_json(model).dump() + "\n"
                   : summary_text(model, options.tensors));
}

} // namespace

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Describe a model: layers, caches, quantization, tensors");
  command->add_option("MODEL", options->model, kModelHelp)->required();
  command->add_flag("--tensors", options->tensors, "list every tensor");
  command->add_flag("--json", options->json, "everything, as one JSON object");
  command->footer("  sheave inspect smollm2 --tensors");
  command->callback([options] { inspect(*options); });
}

} // namespace sheave
