// The canonical encoding of a trace or of one of its components: the key of a plan.
//
// It has two parts: the skeleton (ops, attributes, slots, which inputs are the same value, dtypes, ranks,
// symbols, live results, effects) and the sizes in the order they are met. Names, the order in which
// independent ops were recorded, and the values of parameters are not in it. Equality is that of the words;
// the hash only finds.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/hash.h"
#include "tessera/stream/buffer.h"
#include "tessera/stream/trace.h"

namespace tessera::stream {

/// The two parts of an encoding, wherever they are kept.
struct EncodingView {
  std::span<const std::uint32_t> skeleton;
  std::span<const std::int64_t> sizes;

  bool operator==(const EncodingView& other) const;
  [[nodiscard]] bool same_skeleton(const EncodingView& other) const;
  [[nodiscard]] std::size_t bytes() const { return skeleton.size_bytes() + sizes.size_bytes(); }
};

/// Makes the 128-bit hash of a view. Tests pass one that collides.
using EncodingHash = Hash128 (*)(const EncodingView&);

/// The hash of both parts, the same in every process and on every machine.
[[nodiscard]] Hash128 hash_encoding(const EncodingView& encoding);
/// The hash of the skeleton alone: instances that differ only in sizes share it.
[[nodiscard]] Hash128 hash_skeleton(const EncodingView& encoding);

/// What Encoder makes. The lists say what the numbers in the words stand for in the trace that was encoded,
/// so that a plan made for one trace can be bound to another with the same encoding.
struct Encoding {
  Buffer<std::uint32_t> skeleton;
  Buffer<std::int64_t> sizes;
  Buffer<OpIndex> ops;               ///< in canonical order: operands first
  Buffer<std::uint32_t> inputs;      ///< inputs of the trace, in the order they are first read
  Buffer<std::uint32_t> parameters;  ///< places in the operands of the trace, in the order they are read
  Buffer<SymbolId> symbols;          ///< in the order of their numbers
  Hash128 signature;

  [[nodiscard]] EncodingView view() const { return {skeleton, sizes}; }
};

}  // namespace tessera::stream
