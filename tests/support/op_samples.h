// Calls of every op for tests, from tests/data/op_samples.txt. Sizes are symbols, so that one row gives the
// rule on symbols and the rule on numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::fixture {

struct SampleInput {
  std::string type;  ///< "T", "bool", "index", …
  ir::Shape shape;   ///< over the symbols of the sample
  double low = -2, high = 2;
};

struct Sample {
  const op::Card* card = nullptr;
  std::vector<SampleInput> inputs;
  op::Attributes attributes;
  std::map<std::string, Ref<ir::Var>> symbols;
  std::map<std::string, std::int64_t> sizes;  ///< of the symbols
  std::map<std::string, std::int64_t>
      large;         ///< for the test with 2^20 elements; empty: the first symbol grows
  std::string text;  ///< the row, for messages

  /// A size for each symbol.
  using Sizes = std::map<std::string, std::int64_t>;
  /// The sizes of the symbols in their order.
  [[nodiscard]] std::vector<std::int64_t> size_list() const;
  [[nodiscard]] op::ValueTypes types(ir::Dtype dtype, const Sizes* numbers) const;
  [[nodiscard]] op::Attributes attributes_with(const Sizes* numbers) const;
  /// Random inputs in memory.
  [[nodiscard]] std::vector<op::HostTensor> values(ir::Dtype dtype, const Sizes& numbers,
                                                   std::uint64_t seed) const;
};

/// All rows, in the order of the file. Aborts the test program with a message if a row is wrong.
const std::vector<Sample>& op_samples();

/// The results of the call by the reference.
Result<std::vector<op::HostTensor>> run(const Sample& sample, const std::vector<op::HostTensor>& inputs,
                                        const Sample::Sizes& sizes);

/// The same elements behind other strides, which `layout` tells: every second element of a buffer twice as
/// long, last axis first, the first axis backwards.
op::HostTensor scattered(const op::HostTensor& tensor, op::Layout& layout);

/// The dtypes a card's T can be.
std::vector<ir::Dtype> dtypes_of(const op::Card& card);

}  // namespace tessera::fixture
