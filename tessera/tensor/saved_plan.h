// Plans in files, called with tensors.
//
//   const auto step = ts::compile([&](const ts::Tensor& x) { return ts::relu(ts::matmul(x, w)); });
//   ts::save_plan("step.plan", step, x);                     // for the dtypes and shapes of these arguments
//   const ts::SavedPlan again = ts::load_plan("step.plan");  // in another process
//   ts::Tensor y = again({x})[0];
//
// `tessera compile -o` writes such files, too, and `tessera run` runs them.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/tensor/compiled.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

struct LoadPlanOptions {
  std::shared_ptr<engine::Engine> engine = {};  ///< whose device runs it; null: the default engine
};

/// An input or an output of a plan.
struct PlanValue {
  std::string name;
  Dtype dtype = f32;
  std::vector<std::int64_t> shape;  ///< -1: any size, or one that depends on others
};

/// A program from a file. Copies share it. Thread-safe: several threads may call it at once; calls of a plan
/// with states run one after another.
class SavedPlan {
 public:
  /// Computes at once: the inputs are evaluated and read where they lie, the outputs are stored tensors on
  /// the device of the engine. An input of another engine is copied. Sizes that the plan has as symbols may
  /// differ from call to call. `parameters` are the numbers of the program by slot, those of integers towards
  /// zero; those left out are what they were when it was written. No gradient flows through it.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs, std::span<const double> parameters = {},
                                 Here here = {}) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs,
                                 std::span<const double> parameters = {}, Here here = {}) const {
    return (*this)(std::span(inputs.begin(), inputs.size()), parameters, here);
  }

  [[nodiscard]] const std::vector<PlanValue>& inputs() const;
  [[nodiscard]] const std::vector<PlanValue>& outputs() const;

 private:
  friend SavedPlan load_plan(const std::string&, LoadPlanOptions, Here);
  struct State;
  explicit SavedPlan(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// Throws Exception if the file is no plan of this version, saying why.
[[nodiscard]] SavedPlan load_plan(const std::string& path, LoadPlanOptions options = {}, Here here = {});

/// The name of a file, and where the caller stands.
struct PlanPath {
  PlanPath(std::string path, Here caller = {}) : value(std::move(path)), here(caller) {}
  PlanPath(const char* path, Here caller = {}) : value(path), here(caller) {}
  std::string value;
  Here here;
};

/// Writes the plan of a compiled function for arguments of these dtypes and shapes, with the tensors it
/// captured, and what is no tensor in the arguments, as constants. Inputs are the tensors of the arguments
/// and the numbers that the function takes as tensors, outputs the tensors of the result, in the order of the
/// tree. Throws Exception if it cannot be saved: it asks for values or random numbers, or calls a function of
/// this process, as ts::custom makes them.
template <class F, class... A>
void save_plan(const PlanPath& path, const Compiled<F>& function, const A&... arguments) {
  function.save(path.value, path.here, arguments...);
}

}  // namespace tessera
