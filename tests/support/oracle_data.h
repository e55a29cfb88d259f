// What PyTorch and NumPy say about calls of our ops, from tests/data/oracle (written by tools/dump-oracle,
// which describes the format).
#pragma once

#include <string>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::fixture {

/// A tensor behind any strides.
struct OracleTensor {
  op::HostTensor memory;
  op::Layout layout;

  [[nodiscard]] op::Array array() const { return {memory.dtype(), layout, memory.array().data}; }
};

/// One call with its results, or with the message of the oracle, which rejects it.
struct OracleSample {
  std::string place;  ///< "sum.txt:12"
  const op::Card* card = nullptr;
  std::vector<OracleTensor> inputs;
  op::Attributes attributes;  ///< as given, not completed
  std::vector<op::HostTensor> results;
  std::string error;  ///< empty if the oracle accepts the call

  [[nodiscard]] std::vector<op::Array> arrays() const;
};

/// The calls of one op; empty if there is no file. Aborts the test program with a message if a file is wrong.
std::vector<OracleSample> oracle_samples(const op::Card& card);
/// The calls of `card` in one file of the same format.
std::vector<OracleSample> samples_in(const std::string& path, const op::Card& card);

}  // namespace tessera::fixture
