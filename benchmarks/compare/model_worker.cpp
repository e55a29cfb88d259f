// Tessera's side of the comparison of ONNX models, on the cpu device, called as every program calls them.
//
//   tessera_compare_models                     takes commands (worker.h); the kind is `model`, its words are
//                                              the file and INPUT=DTYPE:SIZExSIZE[:VALUE]…
//   tessera_compare_models first FILE INPUT…   prints the milliseconds from the file to the first result of a
//                                              fresh process, and the MiB that it took at most
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>

#include "benchmarks/compare/worker.h"
#include "tessera/engine/devices.h"
#include "tessera/model/onnx_model.h"
#include "tessera/model/tensor_target.h"
#include "tessera/tessera.h"

using namespace tessera;
using compare::Workload;

namespace {

using Words = std::span<const std::string>;

/// An input as it is written on the line.
struct InputText {
  std::string name, dtype;
  op::Extents shape;
  std::int64_t value = 0;  ///< of all elements of an input of integers
};

InputText parse_input(const std::string& word) {
  const auto equals = word.rfind('=');
  const auto first = word.find(':', equals), second = word.find(':', first + 1);
  if (equals == std::string::npos || first == std::string::npos)
    throw std::runtime_error("not an input: " + word);
  InputText out{word.substr(0, equals), word.substr(equals + 1, first - equals - 1), {}, 0};
  std::vector<std::string> sizes;
  for (std::size_t at = first + 1, end = std::min(second, word.size()); at < end;) {
    const auto next = std::min(word.find('x', at), end);
    sizes.push_back(word.substr(at, next - at));
    at = next + 1;
  }
  for (const std::int64_t size : compare::sizes_of(sizes)) out.shape.push_back(size);
  if (second != std::string::npos) out.value = std::stoll(word.substr(second + 1));
  return out;
}

op::HostTensor filled(const InputText& text, std::uint32_t seed) {
  const auto dtype = ir::parse_dtype(text.dtype);
  if (dtype != Dtype::f32 && dtype != Dtype::i64 && dtype != Dtype::boolean)
    throw std::runtime_error("not a dtype of inputs: " + text.dtype);
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(*dtype, text.shape));
  if (dtype == Dtype::f32) std::ranges::copy(compare::numbers(out.size(), seed), out.values<float>().begin());
  if (dtype == Dtype::i64) std::ranges::fill(out.values<std::int64_t>(), text.value);
  if (dtype == Dtype::boolean) std::ranges::fill(out.values<std::uint8_t>(), text.value != 0);
  return out;
}

/// By name, each with numbers of its own.
std::map<std::string, op::HostTensor> inputs_of(Words words) {
  std::map<std::string, op::HostTensor> out;
  for (const std::string& word : words) {
    const InputText text = parse_input(word);
    out.emplace(text.name, filled(text, static_cast<std::uint32_t>(out.size() + 1)));
  }
  return out;
}

/// The first output of a run, if it is one of floats.
using Runner = std::function<std::vector<float>()>;

std::vector<float> floats_of(const Tensor& tensor) {
  return tensor.dtype() == f32 ? tensor.to_vector<float>() : std::vector<float>();
}

Runner runner(Words words) {
  const auto engine =
      Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cpu"))});
  const OnnxModel model = load_onnx(words[0], {.limits = {}, .engine = engine});
  NamedTensors given;
  for (const auto& [name, value] : inputs_of(words.subspan(1))) given.emplace(name, tensor_of(value, engine));
  std::vector<Tensor> ordered;
  for (const OnnxValue& input : model.inputs()) ordered.push_back(given.at(input.name));
  return [model, ordered] {
    const auto outputs = model(ordered);
    eval(outputs);
    return floats_of(outputs.at(0));
  };
}

Workload prepare(const std::string& kind, Words words) {
  if (kind != "model" || words.empty()) throw std::runtime_error("models alone are run here");
  const Runner run = runner(words);
  Workload out{.run = [run] { (void)run(); }, .first = run()};
  for (int i = 0; i < 10; ++i) out.run();
  return out;
}

/// A line of /proc/self/status, in MiB.
double memory_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::stod(line.substr(name.size() + 1)) / 1024;
  return 0;
}

int time_first(Words words) {
  const double before = memory_line("VmRSS");
  const auto begin = std::chrono::steady_clock::now();
  (void)runner(words)();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.3f %.1f\n", took.count(), memory_line("VmHWM") - before);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return compare::serve(prepare);
  const std::vector<std::string> words(argv + 2, argv + argc);
  if (std::string(argv[1]) == "first" && !words.empty()) return time_first(words);
  std::fprintf(stderr, "usage: %s [first FILE INPUT…]\n", argv[0]);
  return 2;
}
