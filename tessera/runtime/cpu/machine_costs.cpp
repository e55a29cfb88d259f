#include "tessera/runtime/cpu/machine_costs.h"

#include <sys/stat.h>

#include <cstdio>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/machine_name.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr double most_ns = 1e9;

std::string key_of(unsigned threads) { return cat("costs of ", machine_key(threads)); }

Error wrong(std::string_view line) {
  return Error(ErrorCode::parse, cat("'", printable(shortened(line, 60)), "' is no cost"));
}

/// Calls `f(name, number)` for each field.
template <class Costs, class F>
void for_each_cost(Costs& costs, F&& f) {
  std::apply([&](const auto&... field) { (f(field.name, costs.*field.member), ...); },
             MachineCosts::fields());
}

}  // namespace

std::string tessera::runtime::cpu::to_text(const MachineCosts& costs) {
  std::string out;
  for_each_cost(costs, [&](std::string_view name, double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", number);
    out += cat(name, " ", digits, "\n");
  });
  return out;
}

Result<MachineCosts> tessera::runtime::cpu::parse_costs(std::string_view text) {
  MachineCosts out;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::optional<Error> error;
  for_each_cost(out, [&](std::string_view name, double& number) {
    if (error) return;
    line.clear();
    std::getline(lines, line);
    std::istringstream words(line);
    std::string word, rest;
    words >> word >> number;
    if (word != name || !words || words >> rest || !(number > 0 && number < most_ns)) error = wrong(line);
  });
  if (!error && std::getline(lines, line)) error = wrong(line);
  if (error) return *std::move(error);
  return out;
}

Result<std::optional<MachineCosts>> CostStore::load(unsigned threads) const {
  const auto bytes = store_.load(key_of(threads));
  struct stat info {};
  if (!bytes && stat(path_of(threads).c_str(), &info) == 0)
    return Error(ErrorCode::parse,
                 cat(printable(path_of(threads)), " is damaged, of another machine, or not the user's own"));
  if (!bytes) return std::optional<MachineCosts>();
  const MachineCosts costs =
      TESSERA_TRY(parse_costs({reinterpret_cast<const char*>(bytes->data()), bytes->size()}));
  return std::optional(costs);
}

Result<void> CostStore::save(unsigned threads, const MachineCosts& costs) const {
  const std::string text = to_text(costs);
  return store_.save(key_of(threads), std::as_bytes(std::span(text.data(), text.size())));
}

std::string CostStore::path_of(unsigned threads) const { return store_.path_of(key_of(threads)); }
