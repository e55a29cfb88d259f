#include "tessera/describe/kernels.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "tessera/base/text.h"
#include "tessera/describe/diagnostic.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

[[noreturn]] void refuse(std::string message) {
  throw Exception(Error(ErrorCode::invalid_argument, std::move(message)));
}

/// "'a', 'b' and 3 more": the keys of a map.
std::string listed_names(const auto& entries) {
  constexpr std::size_t most_names = 10;
  std::vector<std::string> out;
  for (const auto& [name, entry] : entries) {
    if (out.size() == most_names) break;
    out.push_back(shown(name));
  }
  if (out.empty()) return "none";
  const std::size_t left_out = entries.size() - out.size();
  return cat(join(out, ", "), left_out != 0 ? cat(" and ", left_out, " more") : "");
}

}  // namespace

AppendedRows AppendCounter::reserve(std::uint64_t rows, std::uint64_t capacity) {
  std::uint64_t first = asked_;
  while (!asked_.compare_exchange_weak(first, first > most - rows ? most : first + rows)) {
  }
  if (first >= capacity) return {capacity, 0};
  return {first, std::min(rows, capacity - first)};
}

const Argument& Arguments::argument(std::size_t i) const {
  if (i >= arguments_.size()) refuse(cat("there is no parameter ", i, ", there are ", arguments_.size()));
  return arguments_[i];
}

std::size_t Arguments::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].name == name) return i;
  refuse(cat("there is no parameter ", shown(name)));
}

const Argument& Arguments::pin_of(std::size_t i, std::size_t element_size) const {
  const Argument& pin = argument(i);
  if (pin.is_scalar) refuse(cat("parameter ", shown(pin.name), " is a number, not a buffer"));
  if (pin.data == nullptr) refuse(cat("parameter ", shown(pin.name), " has no buffer"));
  if (ir::size_of(pin.dtype) != element_size)
    refuse(cat("parameter ", shown(pin.name), " has dtype ", to_string(pin.dtype), ", read as elements of ",
               element_size, " bytes"));
  return pin;
}

double Arguments::number(std::size_t i) const {
  const Argument& scalar = argument(i);
  if (!scalar.is_scalar) refuse(cat("parameter ", shown(scalar.name), " is a buffer, not a number"));
  return std::visit([](auto value) { return static_cast<double>(value); }, scalar.scalar);
}

std::int64_t Arguments::integer(std::size_t i) const {
  const Argument& scalar = argument(i);
  const auto* value = std::get_if<std::int64_t>(&scalar.scalar);
  if (!scalar.is_scalar || value == nullptr)
    refuse(cat("parameter ", shown(scalar.name), " is not an integer"));
  return *value;
}

const double* Arguments::device_number(std::size_t i) const {
  const Argument& scalar = argument(i);
  if (scalar.device_value == nullptr)
    refuse(cat("parameter ", shown(scalar.name), " is not in device memory"));
  return scalar.device_value;
}

std::uint64_t Arguments::count(std::size_t i) const {
  const Argument& pin = argument(i);
  if (pin.counter == nullptr) refuse(cat("parameter ", shown(pin.name), " is not of an append buffer"));
  return std::min(pin.counter->asked(), static_cast<std::uint64_t>(pin.shape[0]));
}

AppendedRows Arguments::reserve(std::size_t i, std::uint64_t rows) const {
  const Argument& pin = argument(i);
  if (pin.access != Access::append || pin.counter == nullptr)
    refuse(cat("parameter ", shown(pin.name), " does not append"));
  return pin.counter->reserve(rows, static_cast<std::uint64_t>(pin.shape[0]));
}

struct KernelTable::Entry {
  KernelLoader loader;
  DeviceCodeRef code;  // in place of a loader
  std::mutex mutex;
  std::shared_ptr<const KernelFunction> loaded;
};

KernelTable& KernelTable::add(std::string name, KernelFunction kernel) {
  return add_loader(std::move(name),
                    [kernel = std::move(kernel)]() -> Result<KernelFunction> { return kernel; });
}

KernelTable& KernelTable::add_loader(std::string name, KernelLoader loader) {
  auto entry = std::make_shared<Entry>();
  entry->loader = std::move(loader);
  entries_.insert_or_assign(std::move(name), std::move(entry));
  return *this;
}

KernelTable& KernelTable::add_device_kernel(std::string name, DeviceCode code) {
  auto entry = std::make_shared<Entry>();
  entry->code = std::make_shared<const DeviceCode>(std::move(code));
  entries_.insert_or_assign(std::move(name), std::move(entry));
  return *this;
}

KernelTable& KernelTable::add_capture(std::string name, CaptureFunction capture) {
  captures_.insert_or_assign(std::move(name),
                             Capture{std::make_shared<const CaptureFunction>(std::move(capture)), nullptr});
  return *this;
}

KernelTable& KernelTable::add_device_capture(std::string name, DeviceCode code) {
  captures_.insert_or_assign(std::move(name),
                             Capture{nullptr, std::make_shared<const DeviceCode>(std::move(code))});
  return *this;
}

KernelTable& KernelTable::declare(NodeKind kind, std::string name, std::vector<Parameter> parameters) {
  declared_.insert_or_assign({kind, std::move(name)}, std::move(parameters));
  return *this;
}

const std::vector<Parameter>* KernelTable::declared(NodeKind kind, const std::string& name) const {
  const auto found = declared_.find({kind, name});
  return found == declared_.end() ? nullptr : &found->second;
}

const CaptureFunction* KernelTable::find_capture(std::string_view name) const {
  const auto found = captures_.find(name);
  return found == captures_.end() ? nullptr : found->second.function.get();
}

DeviceCodeRef KernelTable::device_kernel(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second->code;
}

DeviceCodeRef KernelTable::device_capture(std::string_view name) const {
  const auto found = captures_.find(name);
  return found == captures_.end() ? nullptr : found->second.code;
}

Result<void> KernelTable::check(std::string_view name) const {
  const DeviceCodeRef code = device_kernel(name);
  if (code == nullptr) {
    TESSERA_TRY(load(name));
  } else if (code->call.code == nullptr) {
    return Error(ErrorCode::invalid_argument, cat("kernel ", shown(name), " has no code"));
  } else {
    TESSERA_TRY(code->call.code->current());
  }
  return {};
}

Result<std::shared_ptr<const KernelFunction>> KernelTable::load(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return Error(ErrorCode::not_found, cat("there is no kernel ", shown(name), ", registered are ", names()));
  Entry& entry = *found->second;
  if (entry.code != nullptr)
    return Error(ErrorCode::unsupported, cat("kernel ", shown(name), " is for a device, the graph has none"));
  const std::lock_guard lock(entry.mutex);
  if (entry.loaded != nullptr) return entry.loaded;
  try {
    KernelFunction kernel = TESSERA_TRY(entry.loader());
    if (!kernel) return Error(ErrorCode::device, cat("kernel ", shown(name), " is empty"));
    entry.loaded = std::make_shared<const KernelFunction>(std::move(kernel));
  } catch (const std::exception& e) {
    return Error(ErrorCode::device, e.what());
  } catch (...) {
    return Error(ErrorCode::device, "the loader threw something that is no std::exception");
  }
  return entry.loaded;
}

std::string KernelTable::names() const { return listed_names(entries_); }
std::string KernelTable::capture_names() const { return listed_names(captures_); }
