// Makes the canonical encoding of a trace: depth-first from the results that were asked for, in the order of
// the call, then from the others in an order that follows from structure (sink_order.h). Operands come before
// their users, and an input is numbered when it is first read, so that `a = f(b, c); e = g(a, d)` reads t0 =
// f(in0, in1), t1 = g(t0, in2).
//
// Layout of the skeleton, in words of 32 bits:
//   number of ops, and per op:
//     pattern << 8 | results << 4 | operands, where a field that is all ones is followed by a word with the
//     number; the symbolic sizes of its attributes
//     per operand: number << 2 | kind (result, input met before, input met now, parameter); an input met now
//                  is followed by pattern and symbolic sizes of its type, a parameter's number is its dtype
//     per result:  pattern << 1 | live, symbolic sizes of its type
//   number of values asked for, and each as number << 2 | kind
//   number of patterns, and the length and the bytes of each
//   how many results are freed, with a tag, and their numbers, if there are any
//   the types of the symbols, each as length and bytes
// Patterns, results and inputs are numbered in the order they are met, symbols as symbol_numbers.h says: the
// encoding of a trace with symbols is written twice, first to know that order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/stream/encoding.h"
#include "tessera/stream/sink_order.h"
#include "tessera/stream/symbol_numbers.h"

namespace tessera::stream {

/// Keeps its memory: once the arrays are large enough, encoding does not allocate. Not thread-safe.
class Encoder {
 public:
  explicit Encoder(EncodingHash hash = &hash_encoding) : hash_(hash) {}

  /// The whole trace. The reference stays valid until the next call.
  const Encoding& encode(const Trace& trace);
  /// Some ops of a trace, ascending, with the producers of all they read: a component. Of the values asked
  /// for, those these ops make.
  const Encoding& encode(const Trace& trace, std::span<const OpIndex> ops);

 private:
  enum class Ref : std::uint32_t { result, input, new_input, parameter };
  struct Frame {
    OpIndex op;
    std::uint32_t next;  // operand to look at
    std::uint32_t end;
    OpIndex effect;  // the one before, if it was not looked at yet
  };
  struct Numbered {
    std::uint32_t run = 0;
    std::uint32_t number = 0;
  };

  void write(const Trace& trace, std::span<const OpIndex> ops);
  void begin(const Trace& trace, std::size_t op_count);
  void make_room(const Trace& trace);
  void visit_sinks(std::span<const OpIndex> ops);
  void visit(OpIndex root);
  [[nodiscard]] OpIndex next_before(Frame& frame);
  void emit(OpIndex op);
  void emit_head(PatternId pattern, std::uint32_t operands, std::uint32_t results);
  void emit_operand(Operand operand, std::uint32_t place);
  void emit_input(std::uint32_t input);
  void emit_asked(std::span<const OpIndex> ops);
  void emit_patterns();
  void emit_symbols();
  void emit_freed(std::span<const OpIndex> ops);
  void emit_bytes(std::string_view bytes);
  void put(std::uint32_t word) { *word_++ = word; }
  void put_ref(Ref kind, std::uint32_t number) { put(number << 2 | static_cast<std::uint32_t>(kind)); }
  void put_extras(const Described& described);
  void put_symbolic(std::span<const SymbolicSizeRef> sizes);
  std::uint32_t pattern_number(PatternId pattern) {
    const Numbered& known = pattern_number_[pattern];
    return known.run == run_ ? known.number : new_pattern_number(pattern);
  }
  std::uint32_t new_pattern_number(PatternId pattern);
  [[nodiscard]] bool is_done(OpIndex op) const { return done_[op] == run_; }

  EncodingHash hash_;
  const Trace* trace_ = nullptr;
  Encoding out_;
  // Where the next word and the next size go. There is room for all that the trace can give.
  std::uint32_t* word_ = nullptr;
  std::int64_t* size_ = nullptr;
  OpIndex* op_ = nullptr;
  std::uint32_t run_ = 0;  // marks what this run has set; the rest is left from earlier ones
  std::uint32_t next_result_ = 0;
  std::vector<std::uint32_t> done_;           // by op: the run that emitted it
  std::vector<std::uint32_t> result_number_;  // by result
  std::vector<Numbered> input_number_;        // by input
  std::vector<Numbered> pattern_number_;      // by pattern
  std::vector<PatternId> patterns_;           // in the order they are met
  std::vector<const SymbolicSize*> met_;      // the symbolic sizes of the first writing, in order
  SymbolNumbers numbers_;                     // for the second
  bool are_symbols_numbered_ = false;
  std::vector<Frame> stack_;
  std::vector<OpIndex> all_ops_;
  std::vector<OpIndex> sinks_;
  SinkOrder sink_order_;
};

/// The signature of a whole trace. For one trace now and then; an Encoder serves many.
[[nodiscard]] Hash128 signature(const Trace& trace);

}  // namespace tessera::stream
