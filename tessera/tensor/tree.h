// Trees: tensors in lists, maps, options, pairs, tuples and structs of those, seen as one value. What is no
// tensor in them (numbers, texts, enumerators) stays as it is.
//
//   struct State {
//     ts::NamedTensors weights;
//     std::vector<ts::Tensor> hidden;
//     int step = 0;
//     static constexpr auto fields() {
//       return std::tuple{ts::field("weights", &State::weights), ts::field("hidden", &State::hidden)};
//     }
//   };
//   State state;
//   ts::eval(state);                       // all its tensors in one go
//   const auto step = ts::compile(train);  // State in, State out
//
// A struct that cannot be changed is listed beside it: `template <> struct tessera::Tree<State> { … };` with
// the same function in it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/reflect.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

/// A field of a tree, by the name that messages say.
template <class Owner, class T>
constexpr Field<Owner, T> field(std::string_view name, T Owner::*member) {
  return usual(name, member);
}

/// The fields of a struct that has tensors in it. To be specialised for structs that do not list them.
template <class T>
struct Tree {};
template <Reflected T>
struct Tree<T> {
  static constexpr auto fields() { return T::fields(); }
};

namespace detail {

/// What stays as it is.
template <class T>
inline constexpr bool is_static_leaf =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_convertible_v<const T&, std::string_view> ||
    std::is_same_v<T, std::monostate> || std::is_same_v<T, std::nullopt_t> ||
    std::is_same_v<T, std::nullptr_t>;

template <class T>
concept TreeList = requires(const T& list) {
  typename T::value_type;
  list.begin() != list.end();
};
template <class T>
concept TreeMap = TreeList<T> && requires {
  typename T::mapped_type;
};
template <class T>
inline constexpr bool is_tree_option = false;
template <class T>
inline constexpr bool is_tree_option<std::optional<T>> = true;
template <class T>
inline constexpr bool is_tree_option<std::unique_ptr<T>> = true;
template <class T>
inline constexpr bool is_tree_option<std::shared_ptr<T>> = true;
template <class T>
concept TreeTuple = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept TreeStruct = requires {
  Tree<T>::fields();
};

template <class T>
constexpr bool is_tree();

template <class Tuple, std::size_t... i>
constexpr bool are_trees(std::index_sequence<i...>) {
  return (is_tree<std::remove_cvref_t<std::tuple_element_t<i, Tuple>>>() && ...);
}
template <class Tuple, std::size_t... i>
constexpr bool are_tree_fields(std::index_sequence<i...>) {
  return (is_tree<typename std::tuple_element_t<i, Tuple>::value_type>() && ...);
}

template <class T>
constexpr bool is_tree() {
  if constexpr (std::is_same_v<T, Tensor> || is_static_leaf<T>) {
    return true;
  } else if constexpr (TreeMap<T>) {
    return is_tree<std::remove_cv_t<typename T::mapped_type>>();
  } else if constexpr (TreeList<T>) {
    return is_tree<std::remove_cv_t<typename T::value_type>>();
  } else if constexpr (is_tree_option<T>) {
    return is_tree<std::remove_cvref_t<decltype(*std::declval<const T&>())>>();
  } else if constexpr (TreeTuple<T>) {
    return are_trees<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (TreeStruct<T>) {
    using Fields = decltype(Tree<T>::fields());
    return are_tree_fields<Fields>(std::make_index_sequence<std::tuple_size_v<Fields>>());
  } else {
    return false;
  }
}

/// Where a tensor is in its tree. Lives on the stack of the walk, so that one without an error allocates
/// nothing.
struct TreePath {
  enum class Kind : std::uint8_t { root, field, key, index };

  const TreePath* above = nullptr;
  Kind kind = Kind::root;
  std::string_view name = {};
  std::size_t index = 0;

  [[nodiscard]] TreePath at_field(std::string_view field) const { return {this, Kind::field, field}; }
  [[nodiscard]] TreePath at_index(std::size_t i) const { return {this, Kind::index, {}, i}; }
  template <class Key>
  [[nodiscard]] TreePath at_key(const Key& key, std::size_t i) const {
    if constexpr (std::is_convertible_v<const Key&, std::string_view>)
      return {this, Kind::key, std::string_view(key)};
    else if constexpr (std::is_integral_v<Key>)
      return at_index(static_cast<std::size_t>(key));
    else
      return at_index(i);
  }
  /// `momentum["w"][2]`; empty at the root.
  [[nodiscard]] std::string text() const;
};

/// Calls `f(tensor, path)` for every tensor, in order.
template <class T, class F>
void walk_tree(T& tree, const TreePath& at, const F& f) {
  using V = std::remove_const_t<T>;
  static_assert(
      is_tree<V>(),
      "this type is no tree of tensors: list the fields of structs by a member `static constexpr auto "
      "fields() { return std::tuple{ts::field(\"w\", &State::w)}; }`, or by a specialisation of "
      "tessera::Tree that has this function");
  if constexpr (std::is_same_v<V, Tensor>) {
    f(tree, at);
  } else if constexpr (is_static_leaf<V>) {
  } else if constexpr (TreeMap<V>) {
    std::size_t i = 0;
    for (auto& [key, item] : tree) walk_tree(item, at.at_key(key, i++), f);
  } else if constexpr (TreeList<V>) {
    if constexpr (!is_static_leaf<typename V::value_type>) {
      std::size_t i = 0;
      for (auto& item : tree) walk_tree(item, at.at_index(i++), f);
    }
  } else if constexpr (is_tree_option<V>) {
    if (tree) walk_tree(*tree, at, f);
  } else if constexpr (TreeTuple<V>) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (walk_tree(std::get<i>(tree), at.at_index(i), f), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<V>>());
  } else if constexpr (TreeStruct<V>) {
    std::apply([&](const auto&... one) { (walk_tree(tree.*one.member, at.at_field(one.name), f), ...); },
               Tree<V>::fields());
  }
}

template <class T, class F>
void walk_tree(T& tree, const F& f) {
  walk_tree(tree, TreePath(), [&](auto& tensor, const TreePath&) { f(tensor); });
}

}  // namespace detail

/// What has tensors in it, nested as it likes, or is one.
template <class T>
concept TensorTree = detail::is_tree<std::remove_cvref_t<T>>();

/// Calls `f` with each tensor in `tree`, in the order of lists, keys and fields.
template <TensorTree T, class F>
void for_each_tensor(T&& tree, const F& f) {
  detail::walk_tree(tree, f);
}

/// Computes and stores the values of all tensors in `tree` in one go.
template <TensorTree T>
requires(!std::is_same_v<T, Tensor> && !detail::is_static_leaf<T> &&
         !std::is_convertible_v<const T&, std::span<const Tensor>>) void eval(const T& tree, Here here = {}) {
  std::vector<Tensor> tensors;
  detail::walk_tree(tree, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  eval(std::span<const Tensor>(tensors), here);
}

}  // namespace tessera
