#include "tessera/stream/sink_order.h"

#include <algorithm>

#include "tessera/stream/mix.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

/// Vertices looked at before ties are left as they were recorded: some 50 ms.
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
    const std::uint64_t type = hash_label(trace.patterns(), trace.result_type(result));
    hash = mix(hash, type + (trace.is_live(result) ? 1 : 0) + (trace.is_freed(result) ? 2 : 0));
  }
  return hash;
}

/// Ops without readers that have the same operands: swapping them changes nothing.
bool are_twins(const Trace& trace, OpIndex a, OpIndex b) {
  const auto x = trace.operands(a), y = trace.operands(b);
  const auto has_symbols = [&](OpIndex op) {
    bool any = !trace.op_label(op).symbolic.empty();
    for (std::uint32_t i = 0; i < trace.result_count(op); ++i)
      any = any || !trace.result_type(trace.first_result(op) + i).symbolic.empty();
    return any;
  };
  return std::equal(x.begin(), x.end(), y.begin(), y.end()) && !trace.has_effect(a) && !has_symbols(a) &&
         !has_symbols(b);
}

}  // namespace

void SinkOrder::sort(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun,
                     std::vector<OpIndex>& sinks) {
  if (sinks.size() < 2) return;
  trace_ = &trace;
  ops_ = ops;
  hash_down(begun);
  sort_by_colour(sinks);
  if (has_ties(sinks)) break_ties(sinks);
}

void SinkOrder::hash_down(const Encoding& begun) {
  const std::uint32_t op_count = trace_->op_count();
  colour_.resize(op_count + trace_->input_count());
  for (const OpIndex op : ops_)
    for (const Operand operand : trace_->operands(op))
      if (operand.is_input())
        colour_[op_count + operand.index()] =
            mix(seed_input, hash_label(trace_->patterns(), trace_->input_type(operand.index())));
  for (std::uint32_t i = 0; i < begun.inputs.size(); ++i)
    colour_[op_count + begun.inputs[i]] = mix(seed_done_input, i);
  for (const OpIndex op : ops_) {
    std::uint64_t hash = hash_op(*trace_, op);
    if (const OpIndex before = trace_->previous_effect(op); before != no_op)
      hash = mix(hash, colour_[before]);
    for (const Operand operand : trace_->operands(op)) {
      if (operand.is_result()) {
        const OpIndex producer = trace_->producer(operand.index());
        hash = mix(hash, colour_[producer] + (operand.index() - trace_->first_result(producer)));
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

void SinkOrder::sort_by_colour(std::vector<OpIndex>& sinks) const {
  std::sort(sinks.begin(), sinks.end(),
            [&](OpIndex a, OpIndex b) { return colour_[a] != colour_[b] ? colour_[a] < colour_[b] : a < b; });
}

void SinkOrder::add_symbols(std::span<const SymbolicSizeRef> sizes) {
  for (const SymbolicSizeRef& size : sizes)
    for (const ir::Var* symbol : size->symbols()) {
      const auto vertex = static_cast<Vertex>(colour_.size());
      if (!symbol_vertex_.try_emplace(symbol->id, vertex).second) continue;
      symbols_.push_back(vertex);
      colour_.push_back(seed_symbol);
    }
}

/// Inputs and symbols of the ops.
void SinkOrder::collect_vertices() {
  const std::uint32_t op_count = trace_->op_count();
  inputs_.clear();
  symbols_.clear();
  symbol_vertex_.clear();
  for (const OpIndex op : ops_) {
    for (const Operand operand : trace_->operands(op))
      if (operand.is_input()) inputs_.push_back(op_count + operand.index());
    add_symbols(trace_->op_label(op).symbolic);
    for (std::uint32_t i = 0; i < trace_->result_count(op); ++i)
      add_symbols(trace_->result_type(trace_->first_result(op) + i).symbolic);
  }
  std::sort(inputs_.begin(), inputs_.end());
  inputs_.erase(std::unique(inputs_.begin(), inputs_.end()), inputs_.end());
  for (const Vertex input : inputs_) add_symbols(sizes_of_input(input));
  around_.resize(colour_.size());
  parent_.resize(colour_.size());
}

std::span<const SymbolicSizeRef> SinkOrder::sizes_of_input(Vertex input) const {
  return trace_->input_type(input - trace_->op_count()).symbolic;
}

/// The symbolic sizes in the labels of an op, each with the place it has there.
template <class F>
void SinkOrder::for_each_size(OpIndex op, F&& f) const {
  std::uint64_t place = place_op_symbol;
  for (const SymbolicSizeRef& size : trace_->op_label(op).symbolic) f(*size, place++);
  for (std::uint32_t i = 0; i < trace_->result_count(op); ++i) {
    place = place_result_symbol + (std::uint64_t{i} << 16);
    for (const SymbolicSizeRef& size : trace_->result_type(trace_->first_result(op) + i).symbolic)
      f(*size, place++);
  }
}

std::span<const Hash128> SinkOrder::colours_of(const SymbolicSize& size) {
  symbol_colours_.clear();
  for (const ir::Var* symbol : size.symbols()) {
    const std::uint64_t colour = colour_[symbol_vertex_.at(symbol->id)];
    symbol_colours_.push_back({colour, mix(colour, seed_symbol)});
  }
  return symbol_colours_;
}

void SinkOrder::take_in(Vertex vertex, const SymbolicSize& size, std::uint64_t place) {
  colour_[vertex] = mix(colour_[vertex], size.hash(colours_of(size)).low + place);
}

/// Each symbol takes in where it stands in a size, and whose size that is.
void SinkOrder::pass_to_symbols(Vertex vertex, const SymbolicSize& size, std::uint64_t place) {
  if (!size.form) return;
  const std::vector<Hash128> contexts = size.form->contexts(colours_of(size));
  for (std::size_t i = 0; i < contexts.size(); ++i)
    around_[symbol_vertex_.at(size.symbols()[i]->id)] += mix(colour_[vertex], contexts[i].low + place);
}

/// What an op uses, each with the place it has there.
template <class F>
void SinkOrder::for_each_neighbour(OpIndex op, F&& f) const {
  std::uint64_t place = place_operand;
  for (const Operand operand : trace_->operands(op)) {
    place += 1ULL << 16;
    if (operand.is_result()) {
      const OpIndex producer = trace_->producer(operand.index());
      f(producer, place + (operand.index() - trace_->first_result(producer)));
    } else if (operand.is_input()) {
      f(trace_->op_count() + operand.index(), place);
    }
  }
  if (const OpIndex before = trace_->previous_effect(op); before != no_op) f(before, place_effect);
}

/// Each op takes in what it uses. Operands come first, so one pass reaches the whole depth.
void SinkOrder::pass_down() {
  for (const Vertex input : inputs_) {
    std::uint64_t place = place_input_symbol;
    for (const SymbolicSizeRef& size : sizes_of_input(input)) take_in(input, *size, place++);
  }
  for (const OpIndex op : ops_) {
    for_each_neighbour(
        op, [&](Vertex used, std::uint64_t place) { colour_[op] = mix(colour_[op], colour_[used] + place); });
    for_each_size(op, [&](const SymbolicSize& size, std::uint64_t place) { take_in(op, size, place); });
  }
}

/// Each vertex takes in its users, in no order.
void SinkOrder::pass_up() {
  for (const OpIndex op : ops_) around_[op] = 0;
  for (const Vertex input : inputs_) around_[input] = 0;
  for (const Vertex symbol : symbols_) around_[symbol] = 0;
  for (std::size_t i = ops_.size(); i-- > 0;) {
    const OpIndex op = ops_[i];
    colour_[op] = mix(colour_[op], around_[op]);
    for_each_neighbour(op,
                       [&](Vertex used, std::uint64_t place) { around_[used] += mix(colour_[op], place); });
    for_each_size(op,
                  [&](const SymbolicSize& size, std::uint64_t place) { pass_to_symbols(op, size, place); });
  }
  for (const Vertex input : inputs_) {
    colour_[input] = mix(colour_[input], around_[input]);
    std::uint64_t place = place_input_symbol;
    for (const SymbolicSizeRef& size : sizes_of_input(input)) pass_to_symbols(input, *size, place++);
  }
  for (const Vertex symbol : symbols_) colour_[symbol] = mix(colour_[symbol], around_[symbol]);
}

std::size_t SinkOrder::count_colours() {
  sorted_.clear();
  for (const OpIndex op : ops_) sorted_.push_back(colour_[op]);
  for (const Vertex input : inputs_) sorted_.push_back(colour_[input]);
  for (const Vertex symbol : symbols_) sorted_.push_back(colour_[symbol]);
  std::sort(sorted_.begin(), sorted_.end());
  std::size_t count = sorted_.empty() ? 0 : 1;
  for (std::size_t i = 1; i < sorted_.size(); ++i) count += sorted_[i - 1] != sorted_[i] ? 1 : 0;
  return count;
}

/// Refines until a round tells no more vertices apart.
void SinkOrder::refine() {
  std::size_t count = 0;
  for (;;) {
    pass_up();
    pass_down();
    const std::size_t refined = count_colours();
    budget_ -= std::min<std::uint64_t>(budget_, sorted_.size());
    if (refined <= count || refined == sorted_.size() || budget_ == 0) return;
    count = refined;
  }
}

bool SinkOrder::is_unique(Vertex vertex) const {
  const auto [first, last] = std::equal_range(sorted_.begin(), sorted_.end(), colour_[vertex]);
  return last - first == 1;
}

SinkOrder::Vertex SinkOrder::piece_of(Vertex vertex) {
  while (parent_[vertex] != vertex) vertex = parent_[vertex] = parent_[parent_[vertex]];
  return vertex;
}

/// What is left when the vertices with colours of their own are taken away.
void SinkOrder::find_pieces() {
  for (const OpIndex op : ops_) parent_[op] = op;
  for (const Vertex input : inputs_) parent_[input] = input;
  for (const Vertex symbol : symbols_) parent_[symbol] = symbol;
  const auto join = [&](Vertex a, Vertex b) {
    if (!is_unique(b)) parent_[piece_of(a)] = piece_of(b);
  };
  const auto join_symbols = [&](Vertex vertex, const SymbolicSize& size) {
    for (const ir::Var* symbol : size.symbols()) join(vertex, symbol_vertex_.at(symbol->id));
  };
  for (const OpIndex op : ops_) {
    if (is_unique(op)) continue;
    for_each_neighbour(op, [&](Vertex used, std::uint64_t) { join(op, used); });
    for_each_size(op, [&](const SymbolicSize& size, std::uint64_t) { join_symbols(op, size); });
  }
  for (const Vertex input : inputs_)
    if (!is_unique(input))
      for (const SymbolicSizeRef& size : sizes_of_input(input)) join_symbols(input, *size);
}

/// Piece by piece, in the order of the least colour of their sinks; within a piece by colour.
void SinkOrder::sort_by_piece(std::vector<OpIndex>& sinks) {
  struct Key {
    std::uint64_t least = 0;
    Vertex piece = 0;
    OpIndex sink = 0;
  };
  sort_by_colour(sinks);
  std::unordered_map<Vertex, Key> keys;
  std::vector<Key> order;
  for (const OpIndex sink : sinks) {
    const Key& key = keys.try_emplace(piece_of(sink), Key{colour_[sink], static_cast<Vertex>(keys.size()), 0})
                         .first->second;
    order.push_back({key.least, key.piece, sink});
  }
  std::stable_sort(order.begin(), order.end(), [](const Key& a, const Key& b) {
    return a.least != b.least ? a.least < b.least : a.piece < b.piece;
  });
  for (std::size_t i = 0; i < sinks.size(); ++i) sinks[i] = order[i].sink;
}

/// In every piece that has tied sinks which are not twins, gives the first of them a colour of its own.
/// REQUIRES sinks sorted by piece. False if there was none.
bool SinkOrder::single_out(std::span<const OpIndex> sinks, std::uint64_t number) {
  bool found = false;
  for (std::size_t i = 0; i < sinks.size();) {
    std::size_t end = i + 1;
    while (end < sinks.size() && piece_of(sinks[end]) == piece_of(sinks[i])) ++end;
    for (std::size_t k = i; k + 1 < end; ++k) {
      const OpIndex a = sinks[k], b = sinks[k + 1];
      if (colour_[a] != colour_[b] || are_twins(*trace_, a, b)) continue;
      colour_[a] = mix(seed_single, number);
      found = true;
      break;
    }
    i = end;
  }
  return found;
}

void SinkOrder::break_ties(std::vector<OpIndex>& sinks) {
  collect_vertices();
  budget_ = tie_budget;
  for (std::uint64_t number = 0;; ++number) {
    refine();
    find_pieces();
    sort_by_piece(sinks);
    if (budget_ == 0 || !single_out(sinks, number)) return;
  }
}
