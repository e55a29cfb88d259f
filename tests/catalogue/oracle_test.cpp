// Every op against an oracle that nobody here wrote: PyTorch 1.13 and NumPy, on the calls in
// tests/data/oracle.
//
// What they compute we compute, and what they reject we reject with a message that names the op. Where we
// differ on purpose, a table below says why.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tests/support/compare.h"
#include "tests/support/oracle_data.h"

using namespace tessera;
using namespace tessera::op;
using tessera::fixture::oracle_samples;
using tessera::fixture::OracleSample;

namespace {

/// A deliberate difference: calls of `op` ("*": any) where the message of the side that rejects contains
/// `message`.
struct Difference {
  std::string_view op;
  std::string_view message;
  std::string_view why;
  mutable int used = 0;

  [[nodiscard]] bool covers(const OracleSample& sample, std::string_view said) const {
    const bool hit = (op == "*" || op == sample.card->name) && said.find(message) != std::string_view::npos;
    used += hit ? 1 : 0;
    return hit;
  }
};

/// Calls that the oracle accepts and we reject; the message is ours.
const Difference we_reject[] = {
    {"*", "for a tensor of rank 0", "a tensor of rank 0 has no axis; torch lets 0 and -1 stand for none"},
};

/// Calls whose results differ; the message is what `difference_at` says.
const Difference we_compute[] = {
    {"sign", "is nan, the oracle says 0", "summary: NaN of NaN, as in NumPy; torch says 0"},
};

/// Calls that the oracle rejects and we accept; the message is the oracle's.
const Difference we_accept[] = {
    {"div", "ZeroDivisionError", "summary: integers by zero give 0; nothing traps"},
    {"floor_div", "ZeroDivisionError", "summary: integers by zero give 0"},
    {"fmod", "ZeroDivisionError", "summary: integers by zero give a"},
    {"gather_elements", "Expected dtype int64 for index", "indices may be of i32 as well"},
    {"mod", "ZeroDivisionError", "summary: integers by zero give a"},
    {"pow", "negative integer powers", "summary: negative exponents truncate"},
    {"scatter_elements", "Expected dtype int64 for index", "indices may be of i32 as well"},
    {"prelu", "scalar or 1D tensor", "summary: a slope per element, by broadcasting"},
};

bool is_deliberate(std::span<const Difference> table, const OracleSample& sample, std::string_view said) {
  return std::any_of(table.begin(), table.end(), [&](const Difference& d) { return d.covers(sample, said); });
}

void expect_all_used(std::span<const Difference> table) {
  for (const Difference& difference : table)
    EXPECT_GT(difference.used, 0) << difference.op << ": no sample shows that " << difference.why;
}

Result<std::vector<HostTensor>> run(const OracleSample& sample) {
  const Attributes attributes = TESSERA_TRY(complete_attributes(*sample.card, sample.attributes));
  return run_reference(*sample.card, sample.arrays(), attributes);
}

/// What two right answers may differ by, relative to their size, and around 0. The oracle's floats are
/// computed in f64 and rounded once, as ours are: one unit in the last place, where the f64 results fall on
/// two sides of the middle between two numbers. In f64 itself, sums in another order and other approximations
/// of functions; the files have 15 digits.
struct Tolerance {
  double relative = 0, absolute = 0;
};
Tolerance tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return {1e-12, 1e-13};
    case Dtype::f32:
      return {0x1p-23, 1e-12};
    case Dtype::f16:
      return {0x1p-10, 0x1p-24};  // the smallest number of f16
    case Dtype::bf16:
      return {0x1p-7, 1e-12};
    default:
      return {};
  }
}

std::string difference_at(const HostTensor& ours, const HostTensor& theirs) {
  const Tolerance tolerance = tolerance_of(theirs.dtype());
  for (std::int64_t i = 0; i < theirs.size(); ++i) {
    const ScalarValue a = fixture::element(ours.array(), i), b = fixture::element(theirs.array(), i);
    const bool same = ir::is_float(theirs.dtype())
                          ? a.number == b.number || (std::isnan(a.number) && std::isnan(b.number)) ||
                                std::abs(a.number - b.number) <=
                                    tolerance.relative * std::abs(b.number) + tolerance.absolute
                          : a.integer == b.integer;
    if (!same && ir::is_float(theirs.dtype()))
      return cat("element ", i, " is ", a.number, ", the oracle says ", b.number);
    if (!same) return cat("element ", i, " is ", a.integer, ", the oracle says ", b.integer);
  }
  return {};
}

void compare(const OracleSample& sample, const std::vector<HostTensor>& results) {
  ASSERT_EQ(results.size(), sample.results.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    const HostTensor &ours = results[k], &theirs = sample.results[k];
    ASSERT_EQ(ours.dtype(), theirs.dtype()) << "result " << k;
    ASSERT_EQ(ours.shape(), theirs.shape()) << "result " << k;
    const std::string difference = difference_at(ours, theirs);
    EXPECT_TRUE(difference.empty() || is_deliberate(we_compute, sample, difference))
        << "result " << k << ": " << difference;
  }
}

TEST(Oracle, ComputesWhatWeCompute) {
  for (const Card* card : all_cards())
    for (const OracleSample& sample : oracle_samples(*card)) {
      if (!sample.error.empty()) continue;
      SCOPED_TRACE(sample.place);
      const auto results = run(sample);
      if (results)
        compare(sample, *results);
      else
        EXPECT_TRUE(is_deliberate(we_reject, sample, results.error().message())) << results.error().to_text();
    }
  expect_all_used(we_reject);
  expect_all_used(we_compute);
}

TEST(Oracle, RejectsWhatWeReject) {
  for (const Card* card : all_cards())
    for (const OracleSample& sample : oracle_samples(*card)) {
      if (sample.error.empty()) continue;
      SCOPED_TRACE(sample.place);
      const auto results = run(sample);
      if (results)
        EXPECT_TRUE(is_deliberate(we_accept, sample, sample.error)) << "the oracle says: " << sample.error;
      else
        EXPECT_EQ(results.error().message().substr(0, card->name.size() + 2), cat(card->name, ": "));
    }
  expect_all_used(we_accept);
}

TEST(Oracle, HasSamplesForEveryOpThatNamesIt) {
  for (const Card* card : all_cards()) {
    const bool has_oracle = card->oracle.substr(0, 5) != "none:";
    EXPECT_EQ(has_oracle, !oracle_samples(*card).empty())
        << card->name << " says " << card->oracle << "; run tools/dump-oracle";
  }
}

}  // namespace
