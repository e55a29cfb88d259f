#include "tessera/stream/sink_order.h"

#include <algorithm>

#include "tessera/stream/mix.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

/// Edges looked at before ties are left as they were recorded: some 20 ms.
constexpr std::uint64_t tie_budget = 1 << 22;

enum Place : std::uint64_t {
  place_operand = 1ULL << 40,
  place_effect = 2ULL << 40,
  place_op_symbol = 3ULL << 40,
  place_result_symbol = 4ULL << 40,
  place_input_symbol = 5ULL << 40,
};
enum Seed : std::uint64_t {
  seed_parameter = 0xa0,
  seed_input,
  seed_done_op,
  seed_done_input,
  seed_symbol,
  seed_single
};

std::uint64_t hash_label(const PatternTable& patterns, const Label& label) {
  std::uint64_t hash = patterns.hash(label.pattern);
  for (const std::int64_t size : label.sizes) hash = mix(hash, static_cast<std::uint64_t>(size));
  return hash;
}

std::uint64_t hash_op(const Trace& trace, OpIndex op) {
  std::uint64_t hash = hash_label(trace.patterns(), trace.op_label(op));
  for (std::uint32_t i = 0; i < trace.result_count(op); ++i) {
    const std::uint32_t result = trace.first_result(op) + i;
    hash =
        mix(hash, hash_label(trace.patterns(), trace.result_type(result)) + (trace.is_live(result) ? 1 : 0));
  }
  return hash;
}

/// Ops without readers that have the same operands: swapping them changes nothing.
bool are_twins(const Trace& trace, OpIndex a, OpIndex b) {
  const auto x = trace.operands(a), y = trace.operands(b);
  const auto has_symbols = [&](OpIndex op) {
    bool any = !trace.op_label(op).symbols.empty();
    for (std::uint32_t i = 0; i < trace.result_count(op); ++i)
      any = any || !trace.result_type(trace.first_result(op) + i).symbols.empty();
    return any;
  };
  return std::equal(x.begin(), x.end(), y.begin(), y.end()) && !trace.has_effect(a) && !has_symbols(a) &&
         !has_symbols(b);
}

}  // namespace

void SinkOrder::sort(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun,
                     std::vector<OpIndex>& sinks) {
  if (sinks.size() < 2) return;
  hash_down(trace, ops, begun);
  sort_by_colour(sinks);
  if (has_ties(sinks)) break_ties(trace, ops, begun, sinks);
}

void SinkOrder::hash_down(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun) {
  const std::uint32_t op_count = trace.op_count();
  colour_.resize(op_count + trace.input_count());
  for (const OpIndex op : ops)
    for (const Operand operand : trace.operands(op))
      if (operand.is_input())
        colour_[op_count + operand.index()] =
            mix(seed_input, hash_label(trace.patterns(), trace.input_type(operand.index())));
  for (std::uint32_t i = 0; i < begun.inputs.size(); ++i)
    colour_[op_count + begun.inputs[i]] = mix(seed_done_input, i);
  for (const OpIndex op : ops) {
    std::uint64_t hash = hash_op(trace, op);
    if (const OpIndex before = trace.previous_effect(op); before != no_op) hash = mix(hash, colour_[before]);
    for (const Operand operand : trace.operands(op)) {
      if (operand.is_result()) {
        const OpIndex producer = trace.producer(operand.index());
        hash = mix(hash, colour_[producer] + (operand.index() - trace.first_result(producer)));
      } else {
        hash = mix(hash, operand.is_input() ? colour_[op_count + operand.index()]
                                            : seed_parameter + operand.index());
      }
    }
    colour_[op] = hash;
  }
  for (std::uint32_t i = 0; i < begun.ops.size(); ++i) colour_[begun.ops[i]] = mix(seed_done_op, i);
}

bool SinkOrder::has_ties(std::span<const OpIndex> sinks) const {
  for (std::size_t i = 1; i < sinks.size(); ++i)
    if (colour_[sinks[i - 1]] == colour_[sinks[i]]) return true;
  return false;
}

void SinkOrder::sort_by_colour(std::vector<OpIndex>& sinks) {
  std::sort(sinks.begin(), sinks.end(),
            [&](OpIndex a, OpIndex b) { return colour_[a] != colour_[b] ? colour_[a] < colour_[b] : a < b; });
}

void SinkOrder::add_symbols(std::uint32_t user, std::uint64_t place, std::span<const SymbolId> symbols) {
  for (const SymbolId symbol : symbols) {
    const auto [at, is_new] = symbol_vertex_.try_emplace(symbol, static_cast<std::uint32_t>(colour_.size()));
    if (is_new) colour_.push_back(seed_symbol);
    edges_.push_back({user, at->second, place++});
  }
}

void SinkOrder::collect_edges(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun) {
  const std::uint32_t op_count = trace.op_count();
  edges_.clear();
  symbol_vertex_.clear();
  for (const OpIndex op : ops) {
    std::uint64_t place = place_operand;
    for (const Operand operand : trace.operands(op)) {
      place += 1ULL << 16;
      if (operand.is_result()) {
        const OpIndex producer = trace.producer(operand.index());
        edges_.push_back({op, producer, place + (operand.index() - trace.first_result(producer))});
      } else if (operand.is_input()) {
        edges_.push_back({op, op_count + operand.index(), place});
        add_symbols(op_count + operand.index(), place_input_symbol,
                    trace.input_type(operand.index()).symbols);
      }
    }
    if (const OpIndex before = trace.previous_effect(op); before != no_op)
      edges_.push_back({op, before, place_effect});
    add_symbols(op, place_op_symbol, trace.op_label(op).symbols);
    for (std::uint32_t i = 0; i < trace.result_count(op); ++i)
      add_symbols(op, place_result_symbol + (static_cast<std::uint64_t>(i) << 16),
                  trace.result_type(trace.first_result(op) + i).symbols);
  }
  for (std::uint32_t i = 0; i < begun.symbols.size(); ++i)
    if (const auto at = symbol_vertex_.find(begun.symbols[i]); at != symbol_vertex_.end())
      colour_[at->second] = mix(seed_symbol, i);
}

std::size_t SinkOrder::count_colours() {
  sorted_ = colour_;
  std::sort(sorted_.begin(), sorted_.end());
  return static_cast<std::size_t>(std::unique(sorted_.begin(), sorted_.end()) - sorted_.begin());
}

/// Rounds of refinement until one tells no more vertices apart.
void SinkOrder::refine() {
  std::size_t count = count_colours();
  while (budget_ > 0) {
    budget_ -= std::min<std::uint64_t>(budget_, edges_.size() + colour_.size());
    around_.assign(colour_.size(), 0);
    for (const Edge& edge : edges_) {
      around_[edge.user] += mix(colour_[edge.used], 2 * edge.place + 1);
      around_[edge.used] += mix(colour_[edge.user], 2 * edge.place);
    }
    for (std::size_t i = 0; i < colour_.size(); ++i) colour_[i] = mix(colour_[i], around_[i]);
    const std::size_t refined = count_colours();
    if (refined <= count) return;
    count = refined;
  }
}

void SinkOrder::break_ties(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun,
                           std::vector<OpIndex>& sinks) {
  collect_edges(trace, ops, begun);
  budget_ = tie_budget;
  refine();
  std::uint64_t singled_out = 0;
  for (;;) {
    sort_by_colour(sinks);
    // The first class whose members are not all twins of each other.
    auto tied = sinks.end();
    for (auto at = sinks.begin(); at + 1 < sinks.end() && tied == sinks.end(); ++at)
      if (colour_[*at] == colour_[*(at + 1)] && !are_twins(trace, *at, *(at + 1))) tied = at;
    if (tied == sinks.end() || budget_ == 0) return;
    colour_[*tied] = mix(seed_single, singled_out++);
    refine();
  }
}
