// A call as the rules of a card see it: types of the inputs, attributes with their defaults filled in. Errors
// made here name the op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/op/card.h"

namespace tessera::op {

/// What had to be assumed about symbols to infer a shape: pairs that must be equal when the program runs.
struct Assumptions {
  std::vector<std::pair<Dim, Dim>> equal;
};

class CallInfo {
 public:
  /// `attributes` are complete (complete_attributes). `assumptions` may be null: then what cannot be proven
  /// is an error.
  CallInfo(const Card& card, std::span<const ValueType> inputs, const Attributes& attributes,
           Assumptions* assumptions = nullptr)
      : card_(card), inputs_(inputs), attributes_(attributes), assumptions_(assumptions) {}

  [[nodiscard]] const Card& card() const { return card_; }
  [[nodiscard]] std::span<const ValueType> inputs() const { return inputs_; }
  [[nodiscard]] const ValueType& input(std::size_t i) const { return inputs_[i]; }
  [[nodiscard]] bool has_input(std::size_t i) const { return i < inputs_.size(); }
  [[nodiscard]] const Attributes& attributes() const { return attributes_; }
  /// "'x'", or "'inputs[2]'" for one of a variadic list.
  [[nodiscard]] std::string input_name(std::size_t i) const;

  // Attributes by name. REQUIRES that the card declares them with this kind.
  [[nodiscard]] bool flag(std::string_view name) const { return get<bool>(name); }
  [[nodiscard]] std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  [[nodiscard]] double number(std::string_view name) const { return get<double>(name); }
  [[nodiscard]] const std::string& text(std::string_view name) const { return get<std::string>(name); }
  [[nodiscard]] Dtype dtype(std::string_view name) const { return get<Dtype>(name); }
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  [[nodiscard]] const std::vector<double>& numbers(std::string_view name) const {
    return get<std::vector<double>>(name);
  }
  [[nodiscard]] const Shape& shape(std::string_view name) const { return get<Shape>(name); }
  [[nodiscard]] const Dim& size(std::string_view name) const { return get<Shape>(name)[0]; }
  [[nodiscard]] bool has(std::string_view name) const { return attributes_.find(name) != nullptr; }

  /// "op: message", with code `shape`.
  template <class... Args>
  [[nodiscard]] Error error(const Args&... args) const {
    return make_error(ErrorCode::shape, cat(args...));
  }
  /// The same with code `invalid_argument`: for elements, which only a kernel sees.
  template <class... Args>
  [[nodiscard]] Error element_error(const Args&... args) const {
    return make_error(ErrorCode::invalid_argument, cat(args...));
  }

  /// An axis of `rank` axes, from the end if negative.
  [[nodiscard]] Result<std::size_t> axis(std::int64_t value, std::size_t rank,
                                         std::string_view what = "axis") const;
  /// Several distinct axes, ascending; an empty list means all.
  [[nodiscard]] Result<std::vector<std::size_t>> axes(std::string_view name, std::size_t rank) const;

  /// The one dimension two must be. Fails, saying `what`, if they are provably different, or if nothing can
  /// be assumed.
  [[nodiscard]] Result<Dim> unify(const Dim& a, const Dim& b, std::string_view what) const;
  /// Two shapes by NumPy's broadcasting.
  [[nodiscard]] Result<Shape> broadcast(const Shape& a, const Shape& b, std::string_view a_name,
                                        std::string_view b_name) const;
  /// All inputs that are tensors.
  [[nodiscard]] Result<Shape> broadcast_inputs() const;

 private:
  template <class T>
  const T& get(std::string_view name) const {
    const T* value = attributes_.get<T>(name);
    TESSERA_CHECK(value != nullptr, cat("op '", card_.name, "' has no attribute '", name, "' of this kind"));
    return *value;
  }
  [[nodiscard]] Error make_error(ErrorCode code, std::string message) const;

  const Card& card_;
  std::span<const ValueType> inputs_;
  const Attributes& attributes_;
  Assumptions* assumptions_;
};

/// The attributes of a call, checked against the card and with defaults filled in.
[[nodiscard]] Result<Attributes> complete_attributes(const Card& card, Attributes given);
/// The same with everything that is wrong; what is, is left out.
[[nodiscard]] Attributes complete_attributes(const Card& card, const Attributes& given,
                                             std::vector<Error>& errors);

/// The types of the results. Checks the number of inputs, their dtypes and ranks, then asks the card's rule.
/// `attributes` are complete.
[[nodiscard]] Result<ValueTypes> infer(const Card& card, std::span<const ValueType> inputs,
                                       const Attributes& attributes, Assumptions* assumptions = nullptr);

}  // namespace tessera::op
