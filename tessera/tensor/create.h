// Making tensors: from numbers, from memory, at random.
#pragma once

#include <array>
#include <string>

#include "tessera/tensor/tensor.h"

namespace tessera {

struct CreateOptions {
  Dtype dtype = Dtype::f32;
  std::string device = {};                      ///< empty: the engine's
  std::shared_ptr<engine::Engine> engine = {};  ///< null: the default engine
};

struct ArangeOptions {
  Number start = 0;
  Number step = 1;
  Dtype dtype = Dtype::i64;
  std::string device = {};
  std::shared_ptr<engine::Engine> engine = {};
};

struct EyeOptions {
  std::int64_t columns = -1;  ///< as many as there are rows, if negative
  std::int64_t diagonal = 0;  ///< column - row of the ones
  Dtype dtype = Dtype::f32;
  std::string device = {};
  std::shared_ptr<engine::Engine> engine = {};
};

Tensor zeros(Shape shape, CreateOptions options = {}, Here here = {});
Tensor ones(Shape shape, CreateOptions options = {}, Here here = {});
/// Every element is `value`, which must fit the dtype; the value is a parameter.
Tensor full(Shape shape, Number value, CreateOptions options = {}, Here here = {});
/// 0, 1, … count-1, each times `step`, plus `start`.
Tensor arange(std::int64_t count, ArangeOptions options = {}, Here here = {});
/// Ones on a diagonal, zeros elsewhere.
Tensor eye(std::int64_t n, EyeOptions options = {}, Here here = {});
/// Uniform in [0, 1). The numbers depend on the engine's seed and on how many were taken before, not on the
/// device.
Tensor rand(Shape shape, CreateOptions options = {}, Here here = {});
/// Normal with mean 0 and standard deviation 1.
Tensor randn(Shape shape, CreateOptions options = {}, Here here = {});

/// Copies the bytes of elements of `options.dtype`.
Tensor from_bytes(std::span<const std::byte> bytes, Shape shape, CreateOptions options = {}, Here here = {});
/// Copies. The dtype is that of the elements.
template <class T>
Tensor from_span(std::span<const T> values, Shape shape, CreateOptions options = {}, Here here = {});
template <class T>
Tensor from_vector(const std::vector<T>& values, Shape shape, CreateOptions options = {}, Here here = {});
inline Tensor tensor(std::initializer_list<float> values, Here here = {}) {
  return from_span(std::span<const float>(values.begin(), values.size()),
                   {static_cast<std::int64_t>(values.size())}, {}, here);
}
/// Memory of the caller, not copied: it stays valid until `release` is called, and nobody writes to it
/// meanwhile. A device with memory of its own copies it, and `release` is called at once. If this throws,
/// `release` is not called: the memory is still the caller's.
Tensor from_memory(void* data, Shape shape, std::function<void()> release, CreateOptions options = {},
                   Here here = {});
/// A number that never changes, of rank 0: unlike a plain number it is no parameter and may be folded.
Tensor constant(Number value, CreateOptions options = {}, Here here = {});

/// The dtype that stores a C++ type.
template <class T>
inline constexpr Dtype dtype_of = [] {
  static_assert(!std::is_same_v<T, T>, "no dtype stores this type");
  return Dtype::f32;
}();
template <>
inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<long long> = Dtype::i64;
template <>
inline constexpr Dtype dtype_of<unsigned long long> = Dtype::u64;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <>
inline constexpr Dtype dtype_of<std::int64_t> = Dtype::i64;
template <>
inline constexpr Dtype dtype_of<std::int32_t> = Dtype::i32;
template <>
inline constexpr Dtype dtype_of<std::int16_t> = Dtype::i16;
template <>
inline constexpr Dtype dtype_of<std::int8_t> = Dtype::i8;
template <>
inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::u8;
template <>
inline constexpr Dtype dtype_of<std::uint16_t> = Dtype::u16;
template <>
inline constexpr Dtype dtype_of<std::uint32_t> = Dtype::u32;
template <>
inline constexpr Dtype dtype_of<std::uint64_t> = Dtype::u64;
template <>
inline constexpr Dtype dtype_of<bool> = Dtype::boolean;

namespace detail {
/// `function` begins messages.
Tensor from_elements(const char* function, std::span<const std::byte> elements, Shape shape,
                     CreateOptions options, Here here);
}  // namespace detail

template <class T>
Tensor from_span(std::span<const T> values, Shape shape, CreateOptions options, Here here) {
  options.dtype = dtype_of<T>;
  return detail::from_elements("from_span", std::as_bytes(values), std::move(shape), std::move(options),
                               here);
}
template <class T>
Tensor from_vector(const std::vector<T>& values, Shape shape, CreateOptions options, Here here) {
  options.dtype = dtype_of<T>;
  return detail::from_elements("from_vector", std::as_bytes(std::span(values)), std::move(shape),
                               std::move(options), here);
}

}  // namespace tessera
