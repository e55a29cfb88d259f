#include "tessera/kernel/slow_loops.h"

#include <bit>
#include <cmath>

#include "tessera/ir/half.h"
#include "tessera/op/formula.h"

using namespace tessera;
using namespace tessera::kernel;
using ir::Dtype;
using ir::ScalarOpcode;

namespace {

namespace f = tessera::op::formula;

constexpr std::size_t f32 = 0, f64 = 1, i64 = 2, u64 = 3;

/// What the reference computes a stored T in.
template <class T>
using Reference =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, op::SignedWide, op::UnsignedWide>>;

template <class T>
T stored(Reference<T> value) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value);
  else
    return value.v;
}

template <auto function, class T>
void one(const void* a, const void*, const void*, void* out, std::size_t count) {
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(out);
  for (std::size_t i = 0; i < count; ++i) y[i] = stored<T>(function(Reference<T>(x[i])));
}

template <auto function, class T, LoopForm form>
void two(const void* a, const void* b, const void*, void* out, std::size_t count) {
  const T *x = static_cast<const T*>(a), *z = static_cast<const T*>(b);
  T* y = static_cast<T*>(out);
  for (std::size_t i = 0; i < count; ++i)
    y[i] = stored<T>(function(Reference<T>(x[form == LoopForm::scalar_first ? 0 : i]),
                              Reference<T>(z[form == LoopForm::scalar_second ? 0 : i])));
}

class Filler {
 public:
  explicit Filler(LoopTable& table) : table_(table) {}

  template <auto function>
  void floats_one(ScalarOpcode opcode) {
    set(opcode, f32, 0, &one<function, float>);
    set(opcode, f64, 0, &one<function, double>);
  }
  template <auto function, class T>
  void set_two(ScalarOpcode opcode, std::size_t wide) {
    set(opcode, wide, 0, &two<function, T, LoopForm::vectors>);
    set(opcode, wide, 1, &two<function, T, LoopForm::scalar_second>);
    set(opcode, wide, 2, &two<function, T, LoopForm::scalar_first>);
  }
  template <auto function>
  void numbers_two(ScalarOpcode opcode) {
    set_two<function, float>(opcode, f32);
    set_two<function, double>(opcode, f64);
    set_two<function, std::int64_t>(opcode, i64);
    set_two<function, std::uint64_t>(opcode, u64);
  }

 private:
  void set(ScalarOpcode opcode, std::size_t wide, std::size_t form, LoopTable::Operation loop) {
    auto& entry = table_.operation[static_cast<std::size_t>(opcode)][wide][form];
    if (entry == nullptr) entry = loop;
  }

  LoopTable& table_;
};

template <class T>
void round_to_f16(const void* a, const void*, const void*, void* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<float*>(out)[i] =
        ir::f16_to_float(ir::double_to_f16(static_cast<double>(static_cast<const T*>(a)[i])));
}
template <class T>
void round_to_bf16(const void* a, const void*, const void*, void* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<float*>(out)[i] =
        ir::bf16_to_float(ir::double_to_bf16(static_cast<double>(static_cast<const T*>(a)[i])));
}

template <class T>
void add_half_casts(LoopTable& table, std::size_t from) {
  table.cast[from][static_cast<std::size_t>(Dtype::f16)] = &round_to_f16<T>;
  table.cast[from][static_cast<std::size_t>(Dtype::bf16)] = &round_to_bf16<T>;
}

template <class T>
void count_bits(const void* a, const void*, const void*, void* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<T*>(out)[i] =
        static_cast<T>(std::popcount(static_cast<std::uint64_t>(static_cast<const T*>(a)[i])));
}

constexpr auto gelu_of = [](double x) { return 0.5 * x * std::erfc(x * -0.70710678118654752440); };

constexpr auto divided = [](auto a, auto b) { return a / b; };
constexpr auto floor_divided = [](auto a, auto b) { return f::floor_div(a, b); };
constexpr auto floor_remainder = [](auto a, auto b) { return f::floor_mod(a, b); };
constexpr auto remainder_of = [](auto a, auto b) { return f::fmod(a, b); };
constexpr auto power = [](auto a, auto b) { return f::pow(a, b); };
constexpr auto angle = [](double a, double b) { return f::atan2(a, b); };

}  // namespace

void tessera::kernel::add_slow_loops(LoopTable& table) {
  using enum ScalarOpcode;
  Filler filler(table);
#define TESSERA_SLOW(name) filler.floats_one<[](double x) { return f::name(x); }>(name)
  TESSERA_SLOW(exp);
  TESSERA_SLOW(exp2);
  TESSERA_SLOW(expm1);
  TESSERA_SLOW(log);
  TESSERA_SLOW(log2);
  TESSERA_SLOW(log1p);
  TESSERA_SLOW(sin);
  TESSERA_SLOW(cos);
  TESSERA_SLOW(tan);
  TESSERA_SLOW(asin);
  TESSERA_SLOW(acos);
  TESSERA_SLOW(atan);
  TESSERA_SLOW(sinh);
  TESSERA_SLOW(cosh);
  TESSERA_SLOW(tanh);
  TESSERA_SLOW(asinh);
  TESSERA_SLOW(acosh);
  TESSERA_SLOW(atanh);
  TESSERA_SLOW(erf);
  TESSERA_SLOW(erfc);
#undef TESSERA_SLOW
  filler.numbers_two<divided>(div);
  filler.numbers_two<floor_divided>(floor_div);
  filler.numbers_two<floor_remainder>(floor_mod);
  filler.numbers_two<remainder_of>(fmod);
  filler.numbers_two<power>(pow);
  filler.set_two<angle, float>(atan2, f32);
  filler.set_two<angle, double>(atan2, f64);
  table.precise_tanh = &one<[](double x) { return f::tanh(x); }, float>;
  table.precise_erf = &one<[](double x) { return f::erf(x); }, float>;
  table.precise_erfc = &one<[](double x) { return f::erfc(x); }, float>;
  table.precise_gelu = &one<gelu_of, float>;
  if (table.gelu == nullptr) table.gelu = table.precise_gelu;
  add_half_casts<double>(table, f64);
  add_half_casts<std::int64_t>(table, i64);
  add_half_casts<std::uint64_t>(table, u64);
  table.operation[static_cast<std::size_t>(popcount)][i64][0] = &count_bits<std::int64_t>;
  table.operation[static_cast<std::size_t>(popcount)][u64][0] = &count_bits<std::uint64_t>;
}
