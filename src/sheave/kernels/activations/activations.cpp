#include "sheave/kernels/activations/activations.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheave/kernels/cpu_primitive.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

/// Elements per task.
constexpr size_t kTaskElements = 4096;

/// Inputs: gate, up.
class GatePrimitive : public CpuFloatPrimitive {
 public:
  explicit GatePrimitive(GateKind kind) : kind_(kind) {}

  DEFINE_NAME(SheaveGate)

 protected:
  void run(
      const std::vector<mx::array>& inputs,
      float* output,
      const Scratch& /*scratch*/) const override {
    const float* gate = inputs[0].data<float>();
    const float* up = inputs[1].data<float>();
    const size_t size = inputs[0].size();
    const auto tasks =
        static_cast<int>((size + kTaskElements - 1) / kTaskElements);
    const auto apply = kernel_table().gate(kind_);
    thread_pool().run(tasks, [&](int task, int) {
      const size_t begin = static_cast<size_t>(task) * kTaskElements;
      const size_t count = std::min(kTaskElements, size - begin);
      apply(gate + begin, up + begin, static_cast<int>(count), output + begin);
    });
  }

 private:
  GateKind kind_;
};

void check_shapes(const char* op, const mx::array& gate, const mx::array& up) {
  if (gate.shape() != up.shape()) {
    std::ostringstream message;
    message << "[" << op << "] expected one shape, got " << gate.shape()
            << " and " << up.shape();
    throw std::invalid_argument(message.str());
  }
}

mx::array
gate_output(GateKind kind, const mx::array& gate, const mx::array& up) {
  return make_output<GatePrimitive>(
      gate.shape(),
      {contiguous_input(gate), contiguous_input(up)},
      kind);
}

} // namespace

mx::array swiglu(const mx::array& gate, const mx::array& up) {
  check_shapes("swiglu", gate, up);
  if (use_reference()) {
    const mx::array g = mx::astype(gate, mx::float32);
    return g * mx::sigmoid(g) * up;
  }
  return gate_output(GateKind::kSwiglu, gate, up);
}

mx::array geglu_tanh(const mx::array& gate, const mx::array& up) {
  check_shapes("geglu_tanh", gate, up);
  if (use_reference()) {
    const mx::array g = mx::astype(gate, mx::float32);
    const mx::array inner =
        mx::array(0.7978845608F) * (g + mx::array(0.044715F) * g * g * g);
    return mx::array(0.5F) * g * (mx::array(1.0F) + mx::tanh(inner)) * up;
  }
  return gate_output(GateKind::kGegluTanh, gate, up);
}

mx::array gated(GateKind kind, const mx::array& gate, const mx::array& up) {
  return kind == GateKind::kSwiglu ? swiglu(gate, up) : geglu_tanh(gate, up);
}

} // namespace sheave::kernels
