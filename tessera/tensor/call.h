// How the functions of this room record a call: operands to nodes, errors to exceptions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/engine/record.h"
#include "tessera/tensor/tensor.h"

namespace tessera {
struct CreateOptions;
}

namespace tessera::detail {

/// The operands of a call, in the order of the card, and where the caller stands.
class CallOperands {
 public:
  CallOperands& add(const Operand& operand);
  CallOperands& add(const OperandList& list);
  [[nodiscard]] std::span<const engine::Operand> operands() const { return operands_; }
  [[nodiscard]] engine::Caller caller() const { return caller_; }
  /// Throws if a tensor among them is empty.
  void expect_no_empty(const op::Card& card) const {
    if (empty_) fail_empty(card);
  }

 private:
  void add(const Tensor& tensor, Here here);
  [[noreturn]] void fail_empty(const op::Card& card) const;

  SmallVector<engine::Operand, 4> operands_;
  engine::Caller caller_;
  bool skipped_ = false;                               ///< an input was left out
  std::optional<std::pair<std::size_t, Here>> empty_;  ///< the first empty tensor
};

inline engine::Caller caller_of(Here here) { return {here.file, here.line}; }
inline SourceSpan span_of(Here here) { return {here.file, here.line, 0}; }

/// Throws an error at the caller's line.
[[noreturn]] void fail(Here here, ErrorCode code, std::string message);
[[noreturn]] inline void fail(Here here, std::string message) {
  fail(here, ErrorCode::invalid_argument, std::move(message));
}
/// The value, or the error as an exception: at its own place if it has one, else at the caller's line.
template <class T>
T value_at(Here here, Result<T> result) {
  if (!result) throw Exception(std::move(result).error().at(span_of(here)));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
/// The node of a tensor that must not be empty. `use` begins the message: "shape".
engine::Node& node_of(const Tensor& tensor, std::string_view use, Here here);
/// Without a copy of either shape. REQUIRES that neither is empty.
[[nodiscard]] bool have_same_shape(const Tensor& a, const Tensor& b);
/// Fails unless a tensor can be saved under this name: it is not empty, and the name is UTF-8.
void check_name(std::string_view function, const std::string& name, const Tensor& tensor, Here here);

/// What full() gives; `function` begins messages.
Tensor filled(std::string_view function, const Shape& shape, Number value, const CreateOptions& options,
              Here here);

/// The attributes of a call, in the memory that those of the last call have left.
class KeptAttributes {
 public:
  template <class T>
  void set(std::string_view name, const T& value) {
    for (auto& [known, kept] : attributes_.mutable_entries()) {
      if (known != name) continue;
      T* const same = std::get_if<T>(&kept);
      same != nullptr ? void(*same = value) : void(kept = value);
      return;
    }
    attributes_.set(std::string(name), value);
  }
  [[nodiscard]] const op::Attributes& get() const { return attributes_; }

 private:
  op::Attributes attributes_;
};

/// Records; throws Exception. `dtype` is that of the numbers where no tensor says it.
std::vector<Tensor> call_all(const op::Card& card, const CallOperands& operands, op::Attributes attributes,
                             const std::shared_ptr<engine::Engine>& engine = nullptr);
Tensor call(const op::Card& card, const CallOperands& operands, const op::Attributes& attributes = {},
            const std::shared_ptr<engine::Engine>& engine = nullptr, std::optional<Dtype> dtype = {});
Tensor unary(const op::Card& card, const Operand& x);
Tensor binary(const op::Card& card, const Operand& a, const Operand& b);

/// The card of an op that must exist.
const op::Card& card(std::string_view name);

}  // namespace tessera::detail
