// What the writer, the reader and the schema of archives agree on: which kinds of types a field may have.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "tessera/ir/visit.h"
#include "tessera/kernel/kernel.h"
#include "tessera/op/card.h"
#include "tessera/plan/program.h"

namespace tessera::plan::archive {

using CardPointer = const op::Card*;
using KernelRef = std::shared_ptr<const kernel::Kernel>;

using ir::detail::is_optional;
using ir::detail::is_ref;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;

/// How many enumerators there are; what is read must be below.
template <class E>
inline constexpr std::size_t enumerators = 0;
template <>
inline constexpr std::size_t enumerators<ir::Dtype> = static_cast<std::size_t>(ir::Dtype::boolean) + 1;
template <>
inline constexpr std::size_t enumerators<ir::ScalarOpcode> = ir::scalar_opcode_count;
template <>
inline constexpr std::size_t enumerators<ValueKind> = static_cast<std::size_t>(ValueKind::computed) + 1;
template <>
inline constexpr std::size_t enumerators<StepKind> = static_cast<std::size_t>(StepKind::library) + 1;
template <>
inline constexpr std::size_t enumerators<kernel::InstructionKind> =
    static_cast<std::size_t>(kernel::InstructionKind::reduction) + 1;

/// Stands for a value of any type when the members of an aggregate are counted.
struct AnyValue {
  template <class T>
  operator T() const;
};

/// How many members an aggregate has.
template <class T, class... Values>
consteval std::size_t member_count() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; })
    return member_count<T, Values..., AnyValue>();
  else
    return sizeof...(Values);
}

/// Whether the list of a plain struct has all its members: one that is missing would be lost on the way.
template <class T>
inline constexpr bool lists_all_members =
    !std::is_aggregate_v<T> || std::tuple_size_v<decltype(T::fields())> == member_count<T>();

static_assert(lists_all_members<kernel::Instruction> && lists_all_members<kernel::Start> &&
              lists_all_members<kernel::Term> && lists_all_members<kernel::Operand> &&
              lists_all_members<kernel::Store> && lists_all_members<kernel::Kernel>);
static_assert(lists_all_members<Value> && lists_all_members<InPlace> && lists_all_members<Step> &&
              lists_all_members<Plan> && lists_all_members<Source> && lists_all_members<LearnedSize> &&
              lists_all_members<Program>);

}  // namespace tessera::plan::archive
