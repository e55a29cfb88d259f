#include "cli/run_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <filesystem>
#include <set>
#include <variant>
#include <vector>

#include "tessera/base/json.h"
#include "tessera/base/text.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

/// Elements as they are written: no digit of an integer is lost.
using Elements = std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>,
                              std::vector<bool>>;

template <class T>
std::vector<T> converted(const op::HostTensor& tensor, Dtype dtype) {
  const auto wide = value_or_throw(op::HostTensor::allocate(dtype, tensor.shape()));
  op::copy_elements(tensor.array(), wide.array());
  const auto values = wide.values<T>();
  return {values.begin(), values.end()};
}

Elements elements_of(const op::HostTensor& tensor) {
  if (ir::is_float(tensor.dtype())) return converted<double>(tensor, Dtype::f64);
  if (tensor.dtype() == Dtype::u64) return converted<std::uint64_t>(tensor, Dtype::u64);
  const auto integers = converted<std::int64_t>(tensor, Dtype::i64);
  if (tensor.dtype() != Dtype::boolean) return integers;
  return std::vector<bool>(integers.begin(), integers.end());
}

std::string text_of(double number) { return std::isnan(number) ? "nan" : cat(number); }
std::string text_of(bool truth) { return truth ? "true" : "false"; }
template <std::integral T>
requires(!std::same_as<T, bool>) std::string text_of(T number) { return cat(number); }

std::string type_text(const op::HostTensor& tensor) {
  return cat(tensor.dtype(), "[", join(tensor.shape(), ", "), "]");
}

void print_text(const NamedOutput& output) {
  constexpr std::size_t most = 8;
  std::string out = cat(printable(output.name), ":");
  if (output.kind == NamedOutput::Kind::none) out += " nothing";
  if (output.kind == NamedOutput::Kind::sequence) out += cat(" sequence of ", output.tensors.size());
  for (const op::HostTensor& tensor : output.tensors) {
    std::vector<std::string> texts;
    const bool is_long = tensor.size() > static_cast<std::int64_t>(most);
    std::visit(
        [&](const auto& elements) {
          for (std::size_t i = 0; i < std::min(elements.size(), most); ++i)
            texts.push_back(
                text_of(static_cast<typename std::decay_t<decltype(elements)>::value_type>(elements[i])));
        },
        elements_of(tensor));
    out += cat(" ", type_text(tensor), " [", join(texts, ", "), is_long ? ", …]" : "]");
  }
  std::printf("%s\n", out.c_str());
}

void print_times(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%zu runs: fastest %.3f ms, median %.3f ms\n", seconds.size(), 1e3 * seconds[0],
              1e3 * seconds[seconds.size() / 2]);
}

void print_json(const RunOutcome& outcome) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("outputs").begin_array();
  for (const NamedOutput& output : outcome.outputs) {
    json.begin_object().member("name", output.name).key("tensors").begin_array();
    for (const op::HostTensor& tensor : output.tensors) {
      json.begin_object().member("dtype", ir::to_string(tensor.dtype())).member("shape", tensor.shape());
      json.key("elements").begin_array();
      std::visit(
          [&](const auto& elements) {
            for (const auto element : elements)
              json.value(static_cast<typename std::decay_t<decltype(elements)>::value_type>(element));
          },
          elements_of(tensor));
      json.end_array().end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().member("seconds", outcome.seconds).end_object();
  std::printf("%s\n", json.text().c_str());
}

/// A name from a file as the name of a file: letters, digits and a few marks, not used before.
std::string file_name(std::string name, std::set<std::string>& used) {
  for (char& c : name) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (!is_plain) c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  name = name.substr(0, 200);
  std::string out = name;
  for (int i = 1; !used.insert(out).second; ++i) out = cat(name, "_", i);
  return out + ".npy";
}

void save_tensor(const op::HostTensor& elements, const std::string& path) {
  const auto& shape = elements.shape();
  save_npy(path, from_bytes({elements.array().data, elements.byte_size()}, {shape.begin(), shape.end()},
                            {.dtype = elements.dtype()}));
}

Result<void> save(const RunOutcome& outcome, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(ErrorCode::io, cat("cannot be made: ", error.message()), {printable(folder), 0, 0});
  std::set<std::string> used;
  for (const NamedOutput& output : outcome.outputs)
    for (std::size_t k = 0; k < output.tensors.size(); ++k) {
      const bool is_sequence = output.kind == NamedOutput::Kind::sequence;
      const auto path = std::filesystem::path(folder) /
                        file_name(is_sequence ? cat(output.name, "_", k) : output.name, used);
      save_tensor(output.tensors[k], path.string());
    }
  return {};
}

}  // namespace

Result<void> tessera::cli::check_can_make(const std::string& folder) {
  std::filesystem::path there = std::filesystem::absolute(folder).lexically_normal();
  std::error_code error;
  while (!std::filesystem::exists(there, error) && there.has_parent_path() && there != there.parent_path())
    there = there.parent_path();
  error = {};
  if (!std::filesystem::is_directory(there, error))
    error = std::make_error_code(std::errc::not_a_directory);
  else if (::access(there.c_str(), W_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  if (error) return Error(ErrorCode::io, cat("cannot be made: ", error.message()), {printable(folder), 0, 0});
  return {};
}

Result<void> tessera::cli::show(const RunOutcome& outcome, const RunOutputOptions& options) {
  if (!options.folder.empty()) TESSERA_TRY(save(outcome, options.folder));
  if (options.json)
    print_json(outcome);
  else if (!options.quiet)
    for (const NamedOutput& output : outcome.outputs) print_text(output);
  if (outcome.seconds.size() > 1 && !options.json) print_times(outcome.seconds);
  return {};
}
