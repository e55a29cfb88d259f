// The card of an op: everything there is to know about it, in one place.
//
// The catalogue (catalogue.h) is the list of all cards, split by family (families/*.cpp). Everything else is
// derived from it: dispatch, checks of calls, folding, documentation, import tables, the named functions of
// C++ and C, tests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/ir/attribute.h"
#include "tessera/op/array.h"
#include "tessera/op/value_type.h"

namespace tessera::ir {
class Scalar;
}

namespace tessera::op {

using ir::Attributes;
using ir::AttributeValue;

class CallInfo;
class GradientCall;
class Builder;
struct Value;
struct PointwiseBody;
struct ReductionBody;
struct Place;

/// What an input may be.
enum class InputKind : std::uint8_t {
  tensor,
  scalar,    ///< a parameter: one number, of rank 0, that may change from run to run without a new plan
  optional,  ///< a tensor that may be left out (from the end)
  variadic,  ///< any number of tensors, at least one; the last input
};

struct Input {
  std::string_view name;
  /// "T", "U": all inputs of one letter have one dtype, from the card's set for it. "bool", "index" (i64 or
  /// i32), "i64", "any".
  std::string_view type = "T";
  InputKind kind = InputKind::tensor;
  double otherwise = 0;  ///< scalar: the value if it is not given
};

/// `size` is one dimension, a number or symbolic; it is kept as a shape of one.
enum class AttributeKind : std::uint8_t {
  boolean,
  integer,
  number,
  text,
  dtype,
  integers,
  numbers,
  shape,
  size,
};

/// A static attribute: part of the identity of a call.
struct AttributeSpec {
  std::string_view name;
  AttributeKind kind = AttributeKind::integer;
  bool required = false;
  /// The default of one that is not required: `integer` also for booleans, dtypes and sizes, empty lists for
  /// lists.
  std::int64_t integer = 0;
  double number = 0;
  std::string_view text = {};
  /// No default either: the attribute may be absent, which is not the same as any value.
  bool may_be_absent = false;
};

struct Traits {
  bool elementwise =
      false;  ///< each result element depends on the elements of the inputs at the same (broadcast) place
  bool indexed = false;      ///< as `elementwise`, and on where the element is (`indexed` says how)
  bool commutative = false;  ///< its two inputs may be swapped
  bool associative = false;
  bool view = false;            ///< its result can share the storage of its first input (`view` says how)
  bool broadcast = false;       ///< repeats its input along some axes
  bool reduction = false;       ///< runs over its first input, gives less
  bool activation = false;      ///< element-wise, and usual behind a product, which may compute it at its end
  bool costly = false;          ///< worth storing rather than computing again: matmul, convolution, sort, …
  bool composite = false;       ///< has a decomposition into primitives
  bool random = false;          ///< equal calls are not one call
  bool data_dependent = false;  ///< the size of a result depends on data
  /// Its result is its first input with some elements changed: computed in the memory of that input, if
  /// nobody else reads it, the elements that stay need not be copied.
  bool in_place = false;
};

struct NamedTrait {
  std::string_view name;
  bool Traits::*flag;
};
inline constexpr NamedTrait named_traits[] = {{"elementwise", &Traits::elementwise},
                                              {"indexed", &Traits::indexed},
                                              {"commutative", &Traits::commutative},
                                              {"associative", &Traits::associative},
                                              {"view", &Traits::view},
                                              {"broadcast", &Traits::broadcast},
                                              {"reduction", &Traits::reduction},
                                              {"activation", &Traits::activation},
                                              {"costly", &Traits::costly},
                                              {"composite", &Traits::composite},
                                              {"random", &Traits::random},
                                              {"data_dependent", &Traits::data_dependent},
                                              {"in_place", &Traits::in_place}};

/// An ONNX operator with the same meaning: input for input, attribute for attribute where the importer knows
/// no better.
struct OnnxName {
  std::string_view type;
};

using Values = std::vector<Value>;

/// Results from types and attributes alone, on numbers and on symbols. Inputs, attributes and dtypes are
/// checked already.
using InferRule = Result<ValueTypes> (*)(const CallInfo& call);
/// Computes the results into arrays of the right dtype and shape. Inputs may have any strides.
using ReferenceKernel = Result<void> (*)(const CallInfo& call, std::span<const Array> inputs,
                                         std::span<const Array> results);
/// The gradients of the inputs, one per input; an empty Value where none flows.
using GradientRule = Values (*)(GradientCall& call);
/// The same results by simpler ops.
using DecomposeRule = Values (*)(Builder& b, const CallInfo& call, std::span<const Value> inputs);
/// The layout of the result within the storage of the first input, if there is one.
using ViewRule = std::optional<Layout> (*)(const CallInfo& call, const Layout& input);

/// The element of the result at a place (body.h), from the place and from the elements of the inputs there,
/// broadcast; of any dtype, to be cast to that of the result. For ops whose elements depend on where they
/// are.
using IndexedBody = ir::Scalar (*)(const CallInfo& call, const Place& at, std::span<const ir::Scalar> inputs);

/// How many multiply-adds a call takes, about; an estimate that does not overflow. Shapes are numbers.
using WorkRule = double (*)(const CallInfo& call, const ValueTypes& results);

/// The dtype of the results, for cards without a rule of their own.
enum class ResultDtype : std::uint8_t { same, boolean, i64 };

struct Card {
  std::string_view name;
  std::string_view summary;  ///< one line of documentation
  std::span<const Input> inputs = {};
  std::span<const AttributeSpec> attributes = {};
  /// Names, for ops with several results; empty: one, called "y". "parts[]" stands for a list.
  std::span<const std::string_view> results = {};
  DtypeSet T = float_dtypes;
  DtypeSet U = all_dtypes;
  ResultDtype result = ResultDtype::same;
  Traits traits = {};
  OnnxName onnx = {};
  std::string_view spellings = {};  ///< what else it is called: names with spaces between them (op_facts.h)
  /// Who says what is right: "torch:add", "numpy:sort", or "none: why".
  std::string_view oracle = {};

  InferRule infer = nullptr;  ///< null: element-wise broadcasting
  ReferenceKernel reference = nullptr;
  GradientRule gradient = nullptr;
  std::string_view no_gradient = {};  ///< why there is none
  DecomposeRule decompose = nullptr;
  ViewRule view = nullptr;
  const PointwiseBody* pointwise = nullptr;
  const ReductionBody* reduction = nullptr;
  IndexedBody indexed = nullptr;
  WorkRule work = nullptr;  ///< null: about as much as there are elements in inputs and results
};

}  // namespace tessera::op
