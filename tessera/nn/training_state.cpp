#include "tessera/nn/training_state.h"

#include <charconv>

#include "tessera/base/text.h"
#include "tessera/engine/engine.h"

using namespace tessera;
using engine::Engine;
using nn::TrainingState;
using Metadata = std::map<std::string, std::string>;

namespace {

constexpr std::string_view format = "tessera training 1";
constexpr std::string_view parameter_prefix = "parameter/", slot_prefix = "optimizer/",
                           progress_prefix = "progress/";

const std::shared_ptr<Engine>& given_or_default(const std::shared_ptr<Engine>& engine) {
  return engine != nullptr ? engine : Engine::default_engine();
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The file that is read, and who reads it.
struct File {
  const std::string& path;
  Here here;

  [[noreturn]] void fail(std::string_view message) const {
    throw Exception(
        Error(ErrorCode::parse, cat(printable(path), ": ", message), SourceSpan{here.file, here.line, 0}));
  }
};

template <class T>
T number(const File& file, const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) file.fail(cat("a saved training says its '", key, "', this file does not"));
  const std::string& text = found->second;
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size())
    file.fail(cat("'", printable(key), "' is '", printable(text), "', expected a whole number"));
  return out;
}

TrainingState without_prefixes(const File& file, NamedTensors tensors) {
  TrainingState out;
  for (auto& [name, value] : tensors) {
    if (starts_with(name, parameter_prefix))
      out.parameters[name.substr(parameter_prefix.size())] = std::move(value);
    else if (starts_with(name, slot_prefix))
      out.optimizer.slots[name.substr(slot_prefix.size())] = std::move(value);
    else
      file.fail(cat("the tensor '", printable(name), "' is no part of a training"));
  }
  return out;
}

}  // namespace

void tessera::nn::save_training(const std::string& path, const TrainingState& state,
                                const std::shared_ptr<Engine>& engine, Here here) {
  NamedTensors tensors;
  for (const auto& [name, value] : state.parameters) tensors[cat(parameter_prefix, name)] = value;
  for (const auto& [name, value] : state.optimizer.slots) tensors[cat(slot_prefix, name)] = value;
  const auto random = given_or_default(engine)->random_state();
  Metadata metadata{{"format", std::string(format)},
                    {"steps", cat(state.optimizer.steps)},
                    {"random_seed", cat(random.seed)},
                    {"random_offset", cat(random.offset)}};
  for (const auto& [name, value] : state.progress) metadata[cat(progress_prefix, name)] = cat(value);
  save_safetensors(path, tensors, metadata, here);
}

TrainingState tessera::nn::load_training(const std::string& path, const std::shared_ptr<Engine>& engine,
                                         Here here) {
  const File file{path, here};
  Metadata metadata;
  auto tensors = load_safetensors(path, {.engine = engine}, &metadata, here);
  if (metadata["format"] != format) file.fail("this is no saved training");
  TrainingState out = without_prefixes(file, std::move(tensors));
  out.optimizer.steps = number<std::int64_t>(file, metadata, "steps");
  for (const auto& [key, text] : metadata)
    if (starts_with(key, progress_prefix))
      out.progress[key.substr(progress_prefix.size())] = number<std::int64_t>(file, metadata, key);
  const auto seed = number<std::uint64_t>(file, metadata, "random_seed");
  const auto offset = number<std::uint64_t>(file, metadata, "random_offset");
  given_or_default(engine)->set_random_state({seed, offset});
  return out;
}
