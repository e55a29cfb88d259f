#include "tessera/stream/encoder.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::uint32_t freed_tag = 1U << 31;  // no length, with which other parts begin, is as large

}  // namespace

const Encoding& Encoder::encode(const Trace& trace) {
  for (auto op = static_cast<OpIndex>(all_ops_.size()); op < trace.op_count(); ++op) all_ops_.push_back(op);
  return encode(trace, std::span(all_ops_).first(trace.op_count()));
}

const Encoding& Encoder::encode(const Trace& trace, std::span<const OpIndex> ops) {
  are_symbols_numbered_ = false;
  met_.clear();
  write(trace, ops);
  if (!met_.empty()) {  // the order of the ops is known now, and with it the numbers of the symbols
    numbers_.assign(met_);
    are_symbols_numbered_ = true;
    write(trace, ops);
    for (const ir::Var* symbol : numbers_.symbols()) out_.symbols.push(symbol->id);
    emit_symbols();
  }
  out_.signature = hash_(out_.view());
  return out_;
}

void Encoder::write(const Trace& trace, std::span<const OpIndex> ops) {
  begin(trace, ops.size());
  const bool is_whole = ops.size() == trace.op_count();
  for (const Operand value : trace.asked()) {
    if (!value.is_result()) continue;
    const OpIndex producer = trace.producer(value.index());
    if (is_whole || std::binary_search(ops.begin(), ops.end(), producer)) visit(producer);
  }
  out_.ops.end_at(op_);
  if (out_.ops.size() < ops.size()) visit_sinks(ops);
  emit_asked(ops);
  out_.skeleton.end_at(word_);
  out_.sizes.end_at(size_);
  emit_patterns();
  if (trace.has_freed()) emit_freed(ops);
}

void Encoder::begin(const Trace& trace, std::size_t op_count) {
  trace_ = &trace;
  if (++run_ == 0) {  // after 2^32 runs the marks of the first ones would be taken for ours
    done_.clear();
    input_number_.clear();
    pattern_number_.clear();
    run_ = 1;
  }
  next_result_ = 0;
  if (done_.size() < trace.op_count()) {
    done_.resize(trace.op_count());
    stack_.resize(trace.op_count());
  }
  if (result_number_.size() < trace.result_count()) result_number_.resize(trace.result_count());
  if (input_number_.size() < trace.input_count()) input_number_.resize(trace.input_count());
  if (pattern_number_.size() < trace.patterns().size()) pattern_number_.resize(trace.patterns().size());
  patterns_.clear();
  out_.inputs.clear();
  out_.parameters.clear();
  out_.symbols.clear();
  make_room(trace);
  put(static_cast<std::uint32_t>(op_count));
}

namespace {

std::size_t symbolic_words(const Trace& trace) {
  std::size_t words = 0;
  for (const SymbolicSizeRef& size : trace.symbolic_sizes()) words += 2 * size->word_count();
  return words;
}

}  // namespace

/// Room for everything but the patterns and the symbols, so that no write has to look.
void Encoder::make_room(const Trace& trace) {
  out_.skeleton.clear();
  out_.sizes.clear();
  out_.ops.clear();
  const std::size_t per_op = 4;
  const std::size_t words = 2 + per_op * trace.op_count() + 2 * std::size_t{trace.operand_count()} +
                            trace.result_count() + 2 * trace.asked().size() + symbolic_words(trace);
  word_ = out_.skeleton.make_room(words);
  size_ = out_.sizes.make_room(trace.size_count());
  op_ = out_.ops.make_room(trace.op_count());
}

void Encoder::visit_sinks(std::span<const OpIndex> ops) {
  sinks_.clear();
  for (const OpIndex op : ops)
    if (!trace_->is_needed(op) && !is_done(op)) sinks_.push_back(op);
  sink_order_.sort(*trace_, ops, out_, sinks_);
  for (const OpIndex sink : sinks_) visit(sink);
  out_.ops.end_at(op_);
}

/// The next op that must come before this one, or no_op if there is none left.
inline OpIndex Encoder::next_before(Frame& frame) {
  if (const OpIndex before = frame.effect; before != no_op) {
    frame.effect = no_op;
    if (!is_done(before)) return before;
  }
  while (frame.next < frame.end) {
    const Operand operand = trace_->operand(frame.next++);
    if (!operand.is_result()) continue;
    if (const OpIndex producer = trace_->producer(operand.index()); !is_done(producer)) return producer;
  }
  return no_op;
}

void Encoder::visit(OpIndex root) {
  if (is_done(root)) return;
  // An op is on the stack once at most: there is room for all of them.
  Frame* top = stack_.data();
  const auto enter = [&](OpIndex op) {
    *top++ = {op, trace_->first_operand(op), trace_->first_operand(op + 1), trace_->previous_effect(op)};
  };
  enter(root);
  while (top != stack_.data()) {
    const OpIndex before = next_before(top[-1]);
    if (before != no_op)
      enter(before);
    else
      emit((--top)->op);
  }
}

inline void Encoder::put_extras(const Described& described) {
  for (const std::int64_t size : trace_->sizes(described)) *size_++ = size;
  if (described.symbolic_count > 0) [[unlikely]]
    put_symbolic(trace_->symbolic(described));
}

inline void Encoder::emit_input(std::uint32_t input) {
  Numbered& known = input_number_[input];
  if (known.run == run_) return put_ref(Ref::input, known.number);
  known = {run_, static_cast<std::uint32_t>(out_.inputs.size())};
  out_.inputs.push(input);
  put_ref(Ref::new_input, known.number);
  const Described& type = trace_->described_input(input);
  put(pattern_number(type.pattern));
  put_extras(type);
}

inline void Encoder::emit_operand(Operand operand, std::uint32_t place) {
  switch (operand.kind()) {
    case Operand::Kind::result:
      return put_ref(Ref::result, result_number_[operand.index()]);
    case Operand::Kind::input:
      return emit_input(operand.index());
    case Operand::Kind::parameter:
      out_.parameters.push(place);
      return put_ref(Ref::parameter, operand.index());
  }
}

inline void Encoder::emit_head(PatternId pattern, std::uint32_t operands, std::uint32_t results) {
  const std::uint32_t number = pattern_number(pattern);
  constexpr std::uint32_t most_patterns = 0xffffff, most = 0xf;
  put(std::min(number, most_patterns) << 8 | std::min(results, most) << 4 | std::min(operands, most));
  if (number >= most_patterns) put(number);
  if (results >= most) put(results);
  if (operands >= most) put(operands);
}

void Encoder::emit(OpIndex op) {
  done_[op] = run_;
  *op_++ = op;
  const auto operands = trace_->operands(op);
  const std::uint32_t first_result = trace_->first_result(op);
  const std::uint32_t end_result = trace_->first_result(op + 1);
  const Described& described = trace_->described_op(op);
  emit_head(described.pattern, static_cast<std::uint32_t>(operands.size()), end_result - first_result);
  put_extras(described);
  std::uint32_t place = trace_->first_operand(op);
  for (const Operand operand : operands) emit_operand(operand, place++);
  for (std::uint32_t result = first_result; result < end_result; ++result) {
    const Described& type = trace_->described_result(result);
    result_number_[result] = next_result_++;
    put(pattern_number(type.pattern) << 1 | (trace_->is_live(result) ? 1U : 0U));
    put_extras(type);
  }
}

void Encoder::put_symbolic(std::span<const SymbolicSizeRef> sizes) {
  for (const SymbolicSizeRef& size : sizes) {
    if (!are_symbols_numbered_) {
      met_.push_back(size.get());
      continue;
    }
    for (const std::uint64_t word : numbers_.words(*size)) {
      put(static_cast<std::uint32_t>(word));
      put(static_cast<std::uint32_t>(word >> 32));
    }
  }
}

std::uint32_t Encoder::new_pattern_number(PatternId pattern) {
  const auto number = static_cast<std::uint32_t>(patterns_.size());
  pattern_number_[pattern] = {run_, number};
  patterns_.push_back(pattern);
  return number;
}

void Encoder::emit_asked(std::span<const OpIndex> ops) {
  const bool is_whole = ops.size() == trace_->op_count();
  std::uint32_t* const count = word_;
  put(0);
  for (const Operand value : trace_->asked()) {
    const bool is_here = value.is_result() ? is_done(trace_->producer(value.index())) : is_whole;
    if (!is_here) continue;
    ++*count;
    emit_operand(value, 0);
  }
}

void Encoder::emit_bytes(std::string_view bytes) {
  out_.skeleton.push(static_cast<std::uint32_t>(bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t j = i; j < std::min(i + 4, bytes.size()); ++j)
      word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[j])) << (8 * (j - i));
    out_.skeleton.push(word);
  }
}

void Encoder::emit_patterns() {
  out_.skeleton.push(static_cast<std::uint32_t>(patterns_.size()));
  for (const PatternId pattern : patterns_) emit_bytes(trace_->patterns().bytes(pattern));
}

/// Behind everything else and only where there are some, so that a stream that does not say what dies has the
/// signature it has by its ops alone.
void Encoder::emit_freed(std::span<const OpIndex> ops) {
  std::vector<std::uint32_t> freed;
  for (const OpIndex op : ops)
    for (std::uint32_t result = trace_->first_result(op); result < trace_->first_result(op + 1); ++result)
      if (trace_->is_freed(result)) freed.push_back(result_number_[result]);
  std::sort(freed.begin(), freed.end());
  if (!freed.empty()) out_.skeleton.push(static_cast<std::uint32_t>(freed.size()) | freed_tag);
  for (const std::uint32_t number : freed) out_.skeleton.push(number);
}

void Encoder::emit_symbols() {
  Pattern type;
  for (const ir::Var* symbol : numbers_.symbols()) {
    type.clear();
    append_type(type, symbol->type.get());
    emit_bytes(type.bytes);
  }
}

Hash128 tessera::stream::signature(const Trace& trace) { return Encoder().encode(trace).signature; }
