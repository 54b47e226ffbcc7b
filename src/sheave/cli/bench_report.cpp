#include "sheave/cli/bench_report.h"

#include <fmt/format.h>

#include "sheave/cli/command_support.h"

namespace sheave {
namespace {

constexpr const char* kOutside = "outside kernels";

std::string processor_text(const BenchReport& report) {
  std::string features;
  if (report.processor.avx2) {
    features += "AVX2, ";
  }
  if (report.processor.avx512) {
    features += "AVX-512 VNNI, ";
  }
  return fmt::format("{}{} usable cores", features, report.usable_cores);
}

std::string header(const BenchReport& report) {
  return fmt::format(
      "{} ({})\nsheave {}, kernels {}, {} threads, MLX {}, processor: {}\n",
      report.model,
      report.file,
      report.build.version,
      report.build.kernels,
      report.build.threads,
      report.build.mlx_version,
      processor_text(report));
}

std::string result_line(const BenchmarkResult& result) {
  const BenchmarkTest& test = result.test;
  const bool decode = test.kind == BenchmarkKind::kDecode;
  return fmt::format(
      "{:8} {:>7} {:>6} {:>7} {:>10.1f} {:>19}{}\n",
      benchmark_kind_name(test.kind),
      test.tokens,
      test.batch,
      test.depth,
      result.tokens_per_second(),
      fmt::format(
          "{:.1f}..{:.1f}",
          result.tokens_per_second_min(),
          result.tokens_per_second_max()),
      decode ? fmt::format(" {:>9.3f}", result.milliseconds_per_step()) : "");
}

double share(const StepProfile& profile, double microseconds) {
  return profile.microseconds_per_step > 0
             ? microseconds / profile.microseconds_per_step
             : 0;
}

std::string profile_line(
    const StepProfile& profile,
    const std::string& name,
    const std::string& calls,
    double microseconds) {
  return fmt::format(
      "{:20} {:>10} {:>12.1f} {:>6.1f} %\n",
      name,
      calls,
      microseconds,
      share(profile, microseconds) * 100);
}

std::string profile_table(const BenchmarkResult& result) {
  const StepProfile& profile = result.profile;
  std::string text = fmt::format(
      "\n{} {}, batch {}, depth {}: {:.1f} us a step, mean of {} steps\n"
      "{:20} {:>10} {:>12} {:>8}\n",
      benchmark_kind_name(result.test.kind),
      result.test.tokens,
      result.test.batch,
      result.test.depth,
      profile.microseconds_per_step,
      profile.steps,
      "operation",
      "calls/step",
      "us/step",
      "share");
  for (const OperationTime& operation : profile.operations) {
    text += profile_line(
        profile,
        operation.name,
        fmt::format("{:.1f}", operation.calls_per_step),
        operation.microseconds_per_step);
  }
  return text + profile_line(
                    profile,
                    kOutside,
                    "",
                    profile.microseconds_outside_kernels());
}

nlohmann::ordered_json profile_json(const StepProfile& profile) {
  auto operations = nlohmann::ordered_json::array();
  for (const OperationTime& operation : profile.operations) {
    operations.push_back(
        {{"name", operation.name},
         {"calls_per_step", operation.calls_per_step},
         {"microseconds_per_step", operation.microseconds_per_step},
         {"share", share(profile, operation.microseconds_per_step)}});
  }
  const double outside = profile.microseconds_outside_kernels();
  return {
      {"steps", profile.steps},
      {"microseconds_per_step", profile.microseconds_per_step},
      {"operations", std::move(operations)},
      {"outside_kernels",
       {{"microseconds_per_step", outside},
        {"share", share(profile, outside)}}}};
}

nlohmann::ordered_json result_json(const BenchmarkResult& result) {
  nlohmann::ordered_json json = {
      {"test", benchmark_kind_name(result.test.kind)},
      {"tokens", result.test.tokens},
      {"batch", result.test.batch},
      {"depth", result.test.depth},
      {"tokens_per_second", result.tokens_per_second()},
      {"tokens_per_second_min", result.tokens_per_second_min()},
      {"tokens_per_second_max", result.tokens_per_second_max()},
      {"reps", result.seconds.size()}};
  if (result.test.kind == BenchmarkKind::kDecode) {
    json["milliseconds_per_step"] = result.milliseconds_per_step();
  }
  if (result.profile.steps > 0) {
    json["profile"] = profile_json(result.profile);
  }
  return json;
}

} // namespace

std::string bench_table(const BenchReport& report) {
  std::string text = header(report);
  text += fmt::format(
      "\n{:8} {:>7} {:>6} {:>7} {:>10} {:>19} {:>9}\n",
      "test",
      "tokens",
      "batch",
      "depth",
      "tokens/s",
      "min..max",
      "ms/step");
  for (const BenchmarkResult& result : report.results) {
    text += result_line(result);
  }
  text += fmt::format(
      "\npeak memory: {} resident, {} in MLX's allocator\n",
      bytes_text(report.peak_rss_bytes),
      bytes_text(report.peak_mlx_bytes));
  for (const BenchmarkResult& result : report.results) {
    if (result.profile.steps > 0) {
      text += profile_table(result);
    }
  }
  return text;
}

nlohmann::ordered_json bench_json(const BenchReport& report) {
  auto results = nlohmann::ordered_json::array();
  for (const BenchmarkResult& result : report.results) {
    results.push_back(result_json(result));
  }
  return {
      {"model", report.model},
      {"file", report.file},
      {"version", report.build.version},
      {"target", report.build.kernels},
      {"threads", report.build.threads},
      {"mlx_version", report.build.mlx_version},
      {"results", std::move(results)},
      {"memory",
       {{"peak_rss_bytes", report.peak_rss_bytes},
        {"peak_mlx_bytes", report.peak_mlx_bytes}}}};
}

} // namespace sheave
