#include "tessera/engine/size_rules.h"

#include <algorithm>
#include <map>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

using Column = std::vector<std::int64_t>;

/// `factor * symbol + number` through the first two values that differ, if it holds for all of them and both
/// are whole and not negative.
std::optional<SizeRule> line_through(const Column& symbol, const Column& size, std::uint32_t index) {
  const auto differs =
      std::find_if(symbol.begin(), symbol.end(), [&](std::int64_t s) { return s != symbol[0]; });
  const std::int64_t run = *differs - symbol[0];
  const std::int64_t rise = size[static_cast<std::size_t>(differs - symbol.begin())] - size[0];
  if (rise % run != 0 || rise / run <= 0) return std::nullopt;
  const std::int64_t factor = rise / run;
  std::int64_t product = 0, number = 0;
  if (__builtin_mul_overflow(factor, symbol[0], &product) ||
      __builtin_sub_overflow(size[0], product, &number))
    return std::nullopt;
  for (std::size_t i = 0; i < size.size(); ++i)
    if (__builtin_mul_overflow(factor, symbol[i], &product) || size[i] - number != product)
      return std::nullopt;
  return SizeRule{index, factor, number};
}

}  // namespace

std::optional<SizeRules> SizeRules::learn(std::span<const std::vector<std::int64_t>> instances,
                                          std::size_t positions) {
  SizeRules out;
  std::vector<Column> symbols;
  std::map<Column, SizeRule> known;
  const auto is_constant = [](const Column& column) {
    return std::all_of(column.begin(), column.end(), [&](std::int64_t v) { return v == column[0]; });
  };
  const auto rule_for = [&](const Column& column, std::uint32_t position) -> SizeRule {
    if (is_constant(column)) return {SizeRule::no_symbol, 0, column[0]};
    if (const auto found = known.find(column); found != known.end()) return found->second;
    // What is in proportion goes before what is only on a line.
    std::optional<SizeRule> best;
    for (std::uint32_t s = 0; s < symbols.size(); ++s)
      if (const auto line = line_through(symbols[s], column, s); line && (!best || line->number == 0)) {
        best = line;
        if (line->number == 0) break;
      }
    if (!best) {
      best = SizeRule{static_cast<std::uint32_t>(symbols.size()), 1, 0};
      symbols.push_back(column);
      out.defined_at_.push_back(position);
    }
    return known[column] = *best;
  };
  const auto rule_for_position = [&](const Column& column) -> SizeRule {
    if (is_constant(column)) return {SizeRule::no_symbol, 0, column[0]};
    for (std::uint32_t s = 0; s < symbols.size(); ++s)
      if (const auto line = line_through(symbols[s], column, s); line && line->number == 0) return *line;
    return {SizeRule::moves, 0, 0};
  };
  Column column(instances.size());
  for (std::size_t i = 0; i < instances[0].size(); ++i) {
    for (std::size_t k = 0; k < instances.size(); ++k) column[k] = instances[k][i];
    const bool is_position = i + positions >= instances[0].size();
    out.rules_.push_back(is_position ? rule_for_position(column)
                                     : rule_for(column, static_cast<std::uint32_t>(i)));
  }
  for (const Column& values : symbols)
    if (*std::min_element(values.begin(), values.end()) < least) return std::nullopt;
  return out;
}

bool SizeRules::match(std::span<const std::int64_t> sizes, std::vector<std::int64_t>& symbols) const {
  symbols.resize(defined_at_.size());
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    symbols[s] = sizes[defined_at_[s]];
    if (symbols[s] < least) return false;
  }
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const SizeRule& rule = rules_[i];
    if (rule.is_moving()) continue;
    std::int64_t expected = rule.number, product = 0;
    if (!rule.is_constant() && (__builtin_mul_overflow(rule.factor, symbols[rule.symbol], &product) ||
                                __builtin_add_overflow(product, rule.number, &expected)))
      return false;
    if (sizes[i] != expected) return false;
  }
  return true;
}

std::vector<std::int64_t> SizeRules::expected(std::span<const std::int64_t> sizes) const {
  std::vector<std::int64_t> out(sizes.begin(), sizes.end());
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const SizeRule& rule = rules_[i];
    std::int64_t product = 0;
    if (rule.is_constant())
      out[i] = rule.number;
    else if (!rule.is_moving() &&
             (__builtin_mul_overflow(rule.factor, sizes[defined_at_[rule.symbol]], &product) ||
              __builtin_add_overflow(product, rule.number, &out[i])))
      out[i] = sizes[i];
  }
  return out;
}

std::string tessera::engine::to_text(const SizeRule& rule) {
  if (rule.is_constant()) return cat(rule.number);
  if (rule.is_moving()) return "moves";
  std::string out = rule.factor == 1 ? cat("d", rule.symbol) : cat(rule.factor, "*d", rule.symbol);
  if (rule.number != 0) out += cat(rule.number > 0 ? "+" : "", rule.number);
  return out;
}
