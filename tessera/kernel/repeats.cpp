#include "tessera/kernel/repeats.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::kernel;

namespace {

constexpr std::size_t longest_period = 8, fewest_times = 4;
constexpr std::size_t nowhere = ~std::size_t{0};

class RepeatFinder {
 public:
  RepeatFinder(const Kernel& kernel, std::span<const ValueId> values, std::size_t least)
      : kernel_(kernel), values_(values), least_(least), place_(kernel.body.size(), nowhere) {
    for (std::size_t i = 0; i < values.size(); ++i) place_[values[i]] = i;
    count_uses();
  }

  std::vector<Repeat> find() {
    std::vector<Repeat> out;
    for (std::size_t begin = 1; begin < values_.size();) {
      const Repeat found = longest_at(begin);
      if (found.times != 0) out.push_back(found);
      begin = found.times != 0 ? found.end() : begin + 1;
    }
    return out;
  }

 private:
  [[nodiscard]] const Instruction& at(std::size_t place) const { return kernel_.body[values_[place]]; }
  [[nodiscard]] std::span<const ValueId> operands(const Instruction& instruction) const {
    return std::span(instruction.operands).first(operand_count(instruction));
  }

  void count_uses() {
    uses_.assign(kernel_.body.size(), 0);
    for (const Instruction& instruction : kernel_.body)
      for (const ValueId operand : operands(instruction)) ++uses_[operand];
    for (const Store& store : kernel_.stores) ++uses_[store.value];
  }

  /// The shortest period counts: a longer one is several of it.
  [[nodiscard]] Repeat longest_at(std::size_t begin) const {
    for (std::size_t period = 1; period <= longest_period && begin + period <= values_.size(); ++period) {
      Repeat found{begin, period, 1};
      while (goes_on(found)) ++found.times;
      found = without_other_uses(found);
      if (found.times >= fewest_times && found.times * period >= least_) return found;
    }
    return {};
  }

  /// Whether what follows the stretch is the same once more.
  [[nodiscard]] bool goes_on(const Repeat& so_far) const {
    for (std::size_t i = 0; i < so_far.period; ++i)
      if (so_far.end() + i >= values_.size() || !is_again(so_far, so_far.end() + i)) return false;
    return true;
  }

  /// Whether the value at a place is the one a period before it, computed from what came after that.
  [[nodiscard]] bool is_again(const Repeat& of, std::size_t place) const {
    const Instruction &now = at(place), &before = at(place - of.period);
    const bool is_same = now.kind == InstructionKind::operation && before.kind == now.kind &&
                         now.opcode == before.opcode && now.dtype == before.dtype;
    if (!is_same) return false;
    const std::size_t in_time = (place - of.begin) % of.period;
    for (std::size_t i = 0; i < operands(now).size(); ++i) {
      const std::size_t from = place_[now.operands[i]];
      const bool is_outside = from == nowhere || from + 1 < of.begin;
      if (is_outside && now.operands[i] == before.operands[i]) continue;
      // The last value of the time before is as far away as the distance to the begin of this one, and one.
      const std::size_t was = place_[before.operands[i]];
      const bool moves_along = from != nowhere && was != nowhere && was + of.period == from;
      if (!moves_along || place - from > in_time + 1) return false;
    }
    return true;
  }

  /// Up to the first value that others read, too.
  [[nodiscard]] Repeat without_other_uses(Repeat of) const {
    std::size_t end = of.begin;
    while (end < of.end() && uses_in(of, end) == uses_[values_[end]]) ++end;
    if (end < of.end()) of.times = (end + 1 - of.begin) / of.period;
    return of;
  }
  [[nodiscard]] std::size_t uses_in(const Repeat& of, std::size_t place) const {
    std::size_t out = 0;
    for (std::size_t p = place + 1; p < std::min(of.end(), place + 2 * of.period); ++p)
      out += static_cast<std::size_t>(std::ranges::count(operands(at(p)), values_[place]));
    return out;
  }

  const Kernel& kernel_;
  const std::span<const ValueId> values_;
  const std::size_t least_;
  std::vector<std::size_t> place_;  ///< by value: its place among the values
  std::vector<std::size_t> uses_;   ///< by value
};

}  // namespace

std::vector<Repeat> tessera::kernel::find_repeats(const Kernel& kernel, std::span<const ValueId> values,
                                                  std::size_t least) {
  if (values.size() < least) return {};
  return RepeatFinder(kernel, values, least).find();
}
