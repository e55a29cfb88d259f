// Laws of the IR on random programs: equality is an equivalence, equal implies equal hash, any one field
// changed implies different, printing and parsing are inverse, verify accepts what is well formed.
#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/ir/cse.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"
#include "tessera/ir/to_json.h"
#include "tessera/ir/verify.h"
#include "tessera/ir/walk.h"
#include "tests/support/random_ir.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::ir;
using tessera::fixture::RandomIr;

namespace {

constexpr std::uint64_t programs = fixture::repeats(3000U);

constexpr CompareMode modes[] = {CompareMode::strict, CompareMode::mapping};

/// The same program in new objects. Variables are new too, but free ones only if `new_free`.
NodeRef copy(const NodeRef& root, bool new_free) {
  return rewrite(root, [&](const NodeRef& node) -> NodeRef {
    if (is<ScalarType>(node)) return node;  // so that the free variables, which are scalars, stay as they are
    return visit_node(*node, [&]<class N>(const N& concrete) -> NodeRef {
      auto draft = std::make_unique<N>(concrete);
      if constexpr (std::is_same_v<N, Var>) {
        if (concrete.declared && !new_free) return node;
        draft->id = variable("", concrete.type)->id;
        draft->name = "renamed";
      }
      return seal(std::move(draft));
    });
  });
}

void expect_same(const NodeRef& a, const NodeRef& b, CompareMode mode, std::uint64_t seed) {
  const auto mismatch = first_mismatch(*a, *b, mode);
  ASSERT_FALSE(mismatch) << "seed " << seed << ": " << mismatch->to_text() << "\n" << print(*a);
  ASSERT_TRUE(structural_equal(*a, *b, mode)) << seed;
  ASSERT_TRUE(structural_equal(*b, *a, mode)) << seed;
  ASSERT_EQ(structural_hash(*a, mode), structural_hash(*b, mode)) << seed;
}

TEST(IrLaws, EqualityIsAnEquivalenceAndImpliesEqualHash) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const NodeRef a = RandomIr(seed).node();
    for (CompareMode mode : modes) {
      const NodeRef b = copy(a, mode == CompareMode::mapping), c = copy(b, mode == CompareMode::mapping);
      expect_same(a, a, mode, seed);
      expect_same(a, b, mode, seed);
      expect_same(a, c, mode, seed);
    }
    // Strictly equal implies equal under mapping.
    expect_same(a, copy(a, false), CompareMode::mapping, seed);
  }
}

TEST(IrLaws, DifferentProgramsAreToldApartTheSameWayByBothFunctions) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const NodeRef a = RandomIr(seed).node(), b = RandomIr(seed + 1).node();
    for (CompareMode mode : modes) {
      const bool equal = structural_equal(*a, *b, mode);
      ASSERT_EQ(equal, structural_equal(*b, *a, mode)) << seed;
      ASSERT_EQ(equal, !first_mismatch(*a, *b, mode)) << seed;
      ASSERT_EQ(equal, structural_hash(*a, mode) == structural_hash(*b, mode)) << seed;
    }
  }
}

// ---- one field changed

/// Changes a value so that it is not equal to what it was. False if there is nothing to change.
template <class T>
bool change(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(static_cast<int>(value) == 0 ? 1 : static_cast<int>(value) - 1);
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(value + 1);
  } else if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ 1);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value += "x";
  } else if constexpr (std::is_same_v<T, Bytes>) {
    std::vector<std::byte> data(value.span().begin(), value.span().end());
    if (data.empty()) data.push_back({});
    data[0] ^= std::byte{1};
    value = Bytes::own(std::move(data));
  } else if constexpr (std::is_same_v<T, Range>) {
    value.lower = value.lower ? std::optional<std::int64_t>() : 0;
  } else if constexpr (detail::is_optional<T>) {
    value = value ? T() : T(0);
  } else if constexpr (std::is_same_v<T, Attributes>) {
    if (value.empty() || value.size() % 2 == 0)
      value.set("changed", true);
    else
      return std::visit([](auto& held) { return change(held); }, value.mutable_entries().front().second);
  } else if constexpr (std::is_same_v<T, Dim>) {
    value = value + Dim(1);
  } else if constexpr (detail::is_ref<T>) {
    return false;  // the node below is changed on its own
  } else if constexpr (requires { value.pop_back(); }) {
    if (value.empty()) {
      if constexpr (!detail::is_ref<typename T::value_type>) value.emplace_back();
      return !value.empty();
    }
    value.pop_back();
  } else {
    return false;
  }
  return true;
}

/// `root` with field `wanted` (counted over all nodes and comparable fields) changed; null when there are no
/// more.
NodeRef with_field_changed(const NodeRef& root, std::size_t wanted, std::string& what) {
  std::size_t count = 0;
  bool done = false;
  for (const Node* node : post_order(*root)) {
    NodeRef changed;
    visit_node(*node, [&]<class N>(const N& concrete) {
      bool has_changed = false;
      auto draft = std::make_unique<N>(concrete);
      for_each_field(*draft, [&](const auto& field, auto& member) {
        if (done || field.kind == FieldKind::ignore || count++ != wanted) return;
        done = true;
        what = cat(to_string(node->kind()), ".", field.name);
        has_changed = change(member);
      });
      if (has_changed) changed = seal(std::move(draft));
    });
    if (!done) continue;
    if (changed == nullptr) return root;
    return rewrite(root, [&](const NodeRef& at) { return at.get() == node ? changed : at; });
  }
  return nullptr;
}

TEST(IrLaws, AnyOneFieldChangedMakesADifference) {
  std::size_t tried = 0;
  for (std::uint64_t seed = 0; seed < programs / 10; ++seed) {
    const NodeRef root = RandomIr(seed).node();
    std::string what;
    // Of a large program some, others for each: each change is a walk over all of it.
    const std::size_t step = fixture::is_sanitized ? 5 : 2;
    for (std::size_t field = seed % step; field < 400; field += step) {
      const NodeRef other = with_field_changed(root, field, what);
      if (other == nullptr) break;
      if (other == root) continue;
      ++tried;
      for (CompareMode mode : modes) {
        ASSERT_FALSE(structural_equal(*root, *other, mode)) << "seed " << seed << " " << what << "\n"
                                                            << print(*root);
        ASSERT_FALSE(structural_equal(*other, *root, mode)) << "seed " << seed << " " << what;
        ASSERT_NE(structural_hash(*root, mode), structural_hash(*other, mode))
            << "seed " << seed << " " << what;
      }
    }
  }
  EXPECT_GT(tried, 1000u);
}

// ---- text

TEST(IrLaws, PrintAndParseAreInverse) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const NodeRef a = RandomIr(seed).node();
    const std::string text = print(*a);
    const auto b = parse(text);
    ASSERT_TRUE(b) << "seed " << seed << ": " << b.error().to_text() << "\n" << text;
    const auto mismatch = first_mismatch(*a, **b, CompareMode::mapping);
    ASSERT_FALSE(mismatch) << "seed " << seed << ": " << mismatch->to_text() << "\n" << text;
    ASSERT_EQ(print(**b), text) << seed;
  }
}

TEST(IrLaws, ClosedFunctionsReadBackStrictlyEqual) {
  for (std::uint64_t seed = 0; seed < programs / 3; ++seed) {
    const FunctionRef a = RandomIr(seed, {.free_variables = false}).function();
    const auto b = parse(print(*a));
    ASSERT_TRUE(b) << seed;
    const auto mismatch = first_mismatch(*a, **b, CompareMode::strict);
    ASSERT_FALSE(mismatch) << "seed " << seed << ": " << mismatch->to_text() << "\n" << print(*a);
  }
}

TEST(IrLaws, BrokenTextsEndInAMessage) {
  std::mt19937_64 random(1);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    std::string text = print(*RandomIr(seed).node());
    for (int edits = 0; edits < 3; ++edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(random() % 256));
          break;
        default:
          text[at] = "()[]{},.:=+-*/<>!$#\"`0aN "[random() % 26];
      }
      if (text.empty()) text = " ";
    }
    const auto result = parse(text);
    if (!result) {
      ASSERT_EQ(result.error().code(), ErrorCode::parse) << text;
      ASSERT_NE(result.error().span().line, 0u) << text;
    }
  }
}

TEST(IrLaws, RandomProgramsAreWellFormed) {
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const NodeRef a = RandomIr(seed).node();
    const auto errors = verify_all(*a);
    ASSERT_TRUE(errors.empty()) << "seed " << seed << ": " << errors[0].to_text() << "\n" << print(*a);
  }
}

TEST(IrLaws, JsonIsValid) {
  for (std::uint64_t seed = 0; seed < programs / 10; ++seed) {
    JsonWriter json;
    write_graph_json(json, *RandomIr(seed).node());
    const auto parsed = JsonDocument::parse("json", json.text());
    ASSERT_TRUE(parsed) << seed << parsed.error().to_text();
  }
}

TEST(IrLaws, CseIsIdempotentAndKeepsCodeWellFormed) {
  const auto always = [](const Expr&) { return true; };
  for (std::uint64_t seed = 0; seed < programs / 3; ++seed) {
    const FunctionRef f = RandomIr(seed).function();
    const FunctionRef once = eliminate_common_subexpressions(f, always);
    ASSERT_EQ(eliminate_common_subexpressions(once, always), once) << seed;
    const auto result = verify(*once);
    ASSERT_TRUE(result) << seed << result.error().to_text() << "\n" << print(*f) << print(*once);
  }
}

}  // namespace
