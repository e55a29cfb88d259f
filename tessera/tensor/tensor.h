// Tensor: a handle to a value that is computed when it is asked for. The type people work with.
//
//   ts::Tensor y = ts::softmax(ts::matmul(x, w) + b, {.axis = -1});  // records three calls, computes nothing
//   float v = y.item<float>({0, 3});                                 // computes
//
// A call infers shape and dtype at once and throws tessera::Exception with the caller's file and line if it
// is wrong. A Tensor is a value: writing to one (fill, assign, update_slice) gives this handle a new version;
// copies of the handle, and everything recorded before, keep the old one. A part of a tensor is a value of
// its own, so writing to one that has no name is not compiled: `b[1] = t` is `b.update_slice({1, 0}, t)`. Nor
// is asking one for its memory: `(x + 1).data<float>()`. Handles may be used by several threads as
// std::shared_ptr may.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/ir/dtype.h"

namespace tessera {

namespace engine {
class Engine;
struct Node;
}  // namespace engine

using ir::Dtype;
using Shape = std::vector<std::int64_t>;

inline constexpr Dtype f64 = Dtype::f64, f32 = Dtype::f32, f16 = Dtype::f16, bf16 = Dtype::bf16;
inline constexpr Dtype i64 = Dtype::i64, i32 = Dtype::i32, i16 = Dtype::i16, i8 = Dtype::i8;
inline constexpr Dtype u8 = Dtype::u8, u16 = Dtype::u16, u32 = Dtype::u32, u64 = Dtype::u64,
                       bool_ = Dtype::boolean;

/// Where the caller stands: the last argument of every function that can fail, never written by hand.
struct Here {
  Here(const char* in_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : file(in_file), line(static_cast<std::uint32_t>(at_line)) {}
  const char* file;
  std::uint32_t line;
};

/// A position, and where the caller stands.
struct Index {
  Index(std::int64_t position, Here caller = {}) : value(position), here(caller) {}
  std::int64_t value;
  Here here;
};

/// Part of an axis: from `start` to before `stop`, every `step`-th. Negative positions count from the end;
/// what is left out runs to the end in the direction of the step.
struct Slice {
  static constexpr std::int64_t open = INT64_MIN;
  std::int64_t start = open;
  std::int64_t stop = open;
  std::int64_t step = 1;
};

class Graph;
class Number;

class Tensor {
 public:
  /// No tensor; every use but assignment and is_empty() is an error.
  Tensor() = default;
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  ~Tensor();
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  /// Would be lost, as in `b[1] = t`: update_slice() writes into a part of a tensor.
  void operator=(Tensor other) && = delete;

  [[nodiscard]] bool is_empty() const { return node_ == nullptr; }
  [[nodiscard]] Dtype dtype(Here here = {}) const;
  [[nodiscard]] Shape shape(Here here = {}) const;
  [[nodiscard]] std::int64_t dim(std::int64_t axis, Here here = {}) const;
  [[nodiscard]] std::int64_t rank(Here here = {}) const;
  /// The number of elements.
  [[nodiscard]] std::int64_t size(Here here = {}) const;

  /// Computes and stores the value. What is stored is never computed again.
  const Tensor& eval(Here here = {}) const&;
  Tensor eval(Here here = {}) &&;
  /// Whether the value is stored.
  [[nodiscard]] bool is_evaluated(Here here = {}) const;
  /// The elements, row by row, valid as long as a handle to this value lives. Computes. T must be what the
  /// dtype stores.
  template <class T>
  [[nodiscard]] std::span<const T> data(Here here = {}) const&;
  /// Nobody would hold the elements: give the tensor a name, or ask for to_vector().
  template <class T>
  std::span<const T> data(Here here = {}) const&& = delete;
  /// The bytes of the elements, row by row.
  [[nodiscard]] std::span<const std::byte> bytes(Here here = {}) const&;
  std::span<const std::byte> bytes(Here here = {}) const&& = delete;
  /// One element, converted to T.
  template <class T>
  [[nodiscard]] T item(std::initializer_list<std::int64_t> index = {}, Here here = {}) const;
  /// All elements, converted to T.
  template <class T>
  [[nodiscard]] std::vector<T> to_vector(Here here = {}) const;
  /// Strides in elements of a stored tensor, and where its elements begin: for looking at views, not for
  /// reading.
  [[nodiscard]] Shape strides(Here here = {}) const;
  [[nodiscard]] const void* storage(Here here = {}) const;

  /// A new version in which every element is `value`, which must fit the dtype.
  void fill(Number value, Here here = {}) &;
  /// A new version with the value of `other`, which has the same shape and dtype.
  void assign(const Tensor& other, Here here = {}) &;
  /// A new version in which the part from `starts` on, every steps-th element, is `update`.
  void update_slice(const Shape& starts, const Tensor& update, const Shape& steps = {}, Here here = {}) &;
  /// The same at positions that are values: integers of rank 0, for the first axes. A negative one counts
  /// from the end, then the part is brought inside its axis, as XLA does.
  void update_slice(std::initializer_list<Tensor> positions, const Tensor& update, const Shape& steps = {},
                    Here here = {}) &;

  /// Shares the storage where that is possible.
  [[nodiscard]] Tensor slice(std::vector<Slice> slices, Here here = {}) const;
  [[nodiscard]] Tensor reshape(Shape shape, Here here = {}) const;
  [[nodiscard]] Tensor transpose(Shape permutation = {}, Here here = {}) const;
  [[nodiscard]] Tensor cast(Dtype dtype, Here here = {}) const;
  /// Index `i` of the first axis.
  [[nodiscard]] Tensor operator[](Index i) const;

  /// From now on what is recorded with this handle leads back to it: backward() leaves a gradient here.
  /// Values it is assigned later require gradients too.
  Tensor& requires_grad(Here here = {}) &;
  [[nodiscard]] Tensor requires_grad(Here here = {}) &&;
  /// Whether it depends on a tensor whose gradient is asked for.
  [[nodiscard]] bool is_tracked() const;
  /// Adds the gradients of sum(this * dy) to those of all tensors that require one; `dy` may be left out if
  /// this has one element.
  void backward(Here here = {}) const;
  void backward(const Tensor& dy, Here here = {}) const;
  /// What backward() found so far: zeros at first.
  [[nodiscard]] Tensor grad(Here here = {}) const;
  void zero_grad() &;

  /// What was recorded for this value. While the graph lives, evaluation does not forget it.
  [[nodiscard]] Graph graph(Here here = {}) const;
  [[nodiscard]] std::shared_ptr<engine::Engine> engine(Here here = {}) const;

  /// As text; long axes are shortened. Computes.
  [[nodiscard]] std::string to_text(Here here = {}) const;

  // For the other files of this room and for those above.
  /// Takes over one reference.
  static Tensor adopt(engine::Node* node) { return Tensor(node); }
  [[nodiscard]] engine::Node* node() const { return node_; }

 private:
  void become(Tensor next, Here here);

  explicit Tensor(engine::Node* node) : node_(node) {}

  engine::Node* node_ = nullptr;
};

namespace detail {
/// Whether an unsigned number is larger than every i64: it is used as a real one.
template <class T>
constexpr bool is_beyond_i64(T value) {
  if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, unsigned long long>)
    return value > INT64_MAX;
  return false;
}
}  // namespace detail

/// What is written as a number: one of C++'s arithmetic types, or an enumerator that converts to one.
template <class T>
concept PlainNumber = std::is_arithmetic_v<T> ||(std::is_enum_v<T>&& std::is_convertible_v<T, std::int64_t>);

/// A number as it is written: an integer keeps all its digits.
class Number {
 public:
  template <PlainNumber T>
  Number(T value) : is_real_(std::is_floating_point_v<T> || detail::is_beyond_i64(value)) {
    if (is_real_)
      real_ = static_cast<double>(value);
    else
      integer_ = static_cast<std::int64_t>(value);
  }

  [[nodiscard]] bool is_real() const { return is_real_; }
  [[nodiscard]] double real() const { return real_; }
  [[nodiscard]] std::int64_t integer() const { return integer_; }

 private:
  bool is_real_;
  union {
    double real_;
    std::int64_t integer_;
  };
};

/// What an op takes: a tensor, a number, or nothing; and where the caller stands. For parameters: the tensor
/// is not held.
class Operand {
 public:
  enum class Kind : std::uint8_t { none, tensor, real, integer };

  Operand(Here here = {}) : here_(here) {}
  Operand(const Tensor& tensor, Here here = {}) : kind_(Kind::tensor), tensor_(&tensor), here_(here) {}
  template <PlainNumber T>
  Operand(T value, Here here = {}) : Operand(Number(value), here) {}
  Operand(Number value, Here here) : here_(here) {
    if (value.is_real()) {
      kind_ = Kind::real;
      real_ = value.real();
    } else {
      kind_ = Kind::integer;
      integer_ = value.integer();
    }
  }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const Tensor& tensor() const { return *tensor_; }
  [[nodiscard]] double real() const { return real_; }
  [[nodiscard]] std::int64_t integer() const { return integer_; }
  [[nodiscard]] Here here() const { return here_; }

 private:
  Kind kind_ = Kind::none;
  union {
    const Tensor* tensor_ = nullptr;
    double real_;
    std::int64_t integer_;
  };
  Here here_;
};

/// Any number of tensors: `ts::concat({a, b}, {.axis = 0})`.
class OperandList {
 public:
  OperandList(std::initializer_list<Tensor> tensors, Here here = {}) : tensors_(tensors), here_(here) {}
  OperandList(std::span<const Tensor> tensors, Here here = {})
      : tensors_(tensors.begin(), tensors.end()), here_(here) {}
  OperandList(const std::vector<Tensor>& tensors, Here here = {}) : tensors_(tensors), here_(here) {}

  [[nodiscard]] std::span<const Tensor> tensors() const& { return tensors_; }
  std::span<const Tensor> tensors() const&& = delete;
  [[nodiscard]] Here here() const { return here_; }

 private:
  std::vector<Tensor> tensors_;
  Here here_;
};

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator%(const Operand& a, const Operand& b);
Tensor operator-(const Operand& x);
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& x);

/// The part of these sizes at positions that are values: integers of rank 0, for the first axes. A negative
/// one counts from the end, then the part is brought inside its axis, as XLA does.
[[nodiscard]] Tensor slice_at(const Tensor& x, std::initializer_list<Tensor> positions, const Shape& sizes,
                              Here here = {});

/// Computes and stores the values of all of them in one go.
void eval(std::span<const Tensor> tensors, Here here = {});
inline void eval(std::initializer_list<Tensor> tensors, Here here = {}) {
  eval(std::span(tensors.begin(), tensors.size()), here);
}
inline void eval(const Tensor& tensor, Here here = {}) { tensor.eval(here); }

/// An evaluation that goes on in the background.
class Pending {
 public:
  /// Waits, and throws what the evaluation threw. The second time returns at once.
  void wait();
  [[nodiscard]] bool is_done() const;

 private:
  friend Pending eval_async(std::vector<Tensor> tensors, Here here);
  struct State;
  std::shared_ptr<State> state_;
};
Pending eval_async(std::vector<Tensor> tensors, Here here = {});

}  // namespace tessera
