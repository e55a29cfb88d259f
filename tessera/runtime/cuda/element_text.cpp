#include "tessera/runtime/cuda/element_text.h"

#include "tessera/base/check.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using ir::Dtype;

namespace {

constexpr std::string_view f16_text = R"(
__device__ inline float widened(unsigned short half) {
  const unsigned sign = (unsigned)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0x1fu) return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0u) return __uint_as_float(sign | (exponent + 112u) << 23 | mantissa << 13);
  return __uint_as_float(__float_as_uint((float)mantissa * __uint_as_float(103u << 23)) | sign);
}
__device__ inline unsigned short narrowed(float value) {
  const unsigned bits = __float_as_uint(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u)
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
)";

constexpr std::string_view bf16_text = R"(
__device__ inline float widened(unsigned short half) { return __uint_as_float((unsigned)half << 16); }
__device__ inline unsigned short narrowed(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((bits >> 16) | 0x40u);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
)";

// Through the float whose last bit remembers what was cut off, so that a half is rounded once.
constexpr std::string_view half_of_double_text = R"(
__device__ inline unsigned short narrowed(double value) {
  const float rounded = (float)value;
  const unsigned bits = __float_as_uint(rounded);
  if ((double)rounded == value || value != value || (bits & 1u) != 0u) return narrowed(rounded);
  const bool away = ((double)rounded < value) == (value > 0.0);
  return narrowed(__uint_as_float(away ? bits + 1u : bits - 1u));
}
)";

constexpr std::string_view float_arithmetic = R"(
__device__ inline W add(W a, W b) { return a + b; }
__device__ inline W mul(W a, W b) { return a * b; }
__device__ inline W maximum(W a, W b) { return a != a || a > b ? a : b; }
__device__ inline W minimum(W a, W b) { return a != a || a < b ? a : b; }
)";

constexpr std::string_view integer_arithmetic = R"(
__device__ inline W add(W a, W b) { return (W)((U)a + (U)b); }
__device__ inline W mul(W a, W b) { return (W)((U)a * (U)b); }
__device__ inline W maximum(W a, W b) { return a > b ? a : b; }
__device__ inline W minimum(W a, W b) { return a < b ? a : b; }
)";

constexpr std::string_view index_status = R"(
struct Status {
  unsigned lock, unused;
  unsigned long long first;
  long long index;
};
__device__ __noinline__ void report(Status* status, long long number, long long index) {
  const unsigned long long mine = (unsigned long long)number + 1u;
  volatile unsigned long long* const first = &status->first;
  for (bool done = false; !done;) {
    if (*first != 0u && *first <= mine) return;
    if (atomicCAS(&status->lock, 0u, 1u) != 0u) continue;
    __threadfence();
    if (*first == 0u || mine < *first) {
      *(volatile long long*)&status->index = index;
      *first = mine;
    }
    __threadfence();
    atomicExch(&status->lock, 0u);
    done = true;
  }
}
)";

std::string typedef_of(std::string_view name, std::string_view type) {
  return cat("typedef ", type, " ", name, ";\n");
}

std::string float_element(Dtype dtype, Precision precision) {
  const bool is_double = precision == Precision::wide || dtype == Dtype::f64;
  std::string out = typedef_of("W", is_double ? "double" : "float");
  if (is_half(dtype)) {
    out += dtype == Dtype::f16 ? f16_text : bf16_text;
    if (is_double) out += half_of_double_text;
    out += "__device__ inline W widen(T x) { return widened(x); }\n";
    out += "__device__ inline T narrow(W x) { return narrowed(x); }\n";
  } else {
    out += "__device__ inline W widen(T x) { return x; }\n__device__ inline T narrow(W x) { return (T)x; }\n";
  }
  return out + std::string(float_arithmetic);
}

std::string integer_element(Dtype dtype, Precision precision) {
  const bool is_long = precision == Precision::wide || ir::size_of(dtype) == 8;
  std::string out = typedef_of("U", is_long ? "unsigned long long" : "unsigned");
  if (is_long && dtype != Dtype::u64)
    out += typedef_of("W", "long long");
  else
    out += typedef_of("W", "U");
  if (dtype == Dtype::boolean)
    out +=
        "__device__ inline W widen(T x) { return x != 0 ? 1 : 0; }\n"
        "__device__ inline T narrow(W x) { return x != 0 ? 1 : 0; }\n";
  else
    out +=
        "__device__ inline W widen(T x) { return (W)x; }\n__device__ inline T narrow(W x) { return (T)x; }\n";
  return out + std::string(integer_arithmetic);
}

/// The bits of a float as a number in its order. `sign`, `greatest`, `infinity` are constants of its width.
std::string float_key(std::string_view bits, std::string_view sign, std::string_view greatest,
                      std::string_view infinity) {
  return cat("__device__ inline K key_of(T x) {\n  const K bits = ", bits, ", size = bits & (", sign,
             " - 1u);\n  if (size > ", infinity, ") return ", greatest, ";\n  if (size == 0u) return ", sign,
             ";\n  return (bits & ", sign, ") != 0u ? ", greatest, " - bits : bits | ", sign,
             ";\n}\n__device__ inline K reverse_key_of(T x) {\n  const K key = key_of(x);\n  return key == ",
             greatest, " ? key : ", greatest, " - 1u - key;\n}\n");
}

std::string key_function(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return float_key("(K)__double_as_longlong(x)", "0x8000000000000000ull", "0xffffffffffffffffull",
                       "0x7ff0000000000000ull");
    case Dtype::f32:
      return float_key("__float_as_uint(x)", "0x80000000u", "0xffffffffu", "0x7f800000u");
    case Dtype::f16:
      return float_key("x", "0x8000u", "0xffffu", "0x7c00u");
    case Dtype::bf16:
      return float_key("x", "0x8000u", "0xffffu", "0x7f80u");
    case Dtype::i64:
      return "__device__ inline K key_of(T x) { return (K)x ^ 0x8000000000000000ull; }\n";
    case Dtype::boolean:
      return "__device__ inline K key_of(T x) { return x != 0 ? 1u : 0u; }\n";
    default:
      break;
  }
  if (ir::is_signed_integer(dtype))
    return "__device__ inline K key_of(T x) { return (K)(int)x ^ 0x80000000u; }\n";
  return "__device__ inline K key_of(T x) { return (K)x; }\n";
}

}  // namespace

std::string_view runtime::cuda::stored_type(Dtype dtype) {
  static constexpr std::string_view types[] = {
      "double",       "float",       "unsigned short", "unsigned short", "long long",    "int",
      "short",        "signed char", "unsigned char",  "unsigned short", "unsigned int", "unsigned long long",
      "unsigned char"};
  return types[static_cast<std::size_t>(dtype)];
}

std::string runtime::cuda::element_text(Dtype dtype, Precision precision) {
  return typedef_of("T", stored_type(dtype)) +
         (ir::is_float(dtype) ? float_element(dtype, precision) : integer_element(dtype, precision));
}

std::int64_t runtime::cuda::key_bytes(Dtype dtype) { return ir::size_of(dtype) == 8 ? 8 : 4; }

std::string runtime::cuda::key_text(Dtype dtype) {
  return typedef_of("T", stored_type(dtype)) +
         typedef_of("K", key_bytes(dtype) == 8 ? "unsigned long long" : "unsigned") + key_function(dtype) +
         (ir::is_float(dtype) ? "" : "__device__ inline K reverse_key_of(T x) { return ~key_of(x); }\n");
}

std::string runtime::cuda::unit_text(std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return typedef_of("T", "unsigned char");
    case 2:
      return typedef_of("T", "unsigned short");
    case 4:
      return typedef_of("T", "unsigned");
    case 8:
      return typedef_of("T", "unsigned long long");
    default:
      TESSERA_CHECK(bytes == 16, "what is copied at once has 1, 2, 4, 8 or 16 bytes");
      return typedef_of("T", "uint4");
  }
}

std::string_view runtime::cuda::status_text() { return index_status; }
