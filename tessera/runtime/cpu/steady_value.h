// What is set for every launch and mostly stays: threads that run a part of the launch have it in their
// caches, and a write that changes nothing would take it from them.
#pragma once

#include <cstring>
#include <type_traits>

namespace tessera::runtime::cpu {

/// Numbers and addresses, compared by their bits: 0 and -0 are not the same.
template <class T>
void set_if_other(T& value, const std::type_identity_t<T>& next) {
  static_assert(std::is_arithmetic_v<T> || std::is_pointer_v<T>);
  if (std::memcmp(&value, &next, sizeof(T)) != 0) value = next;
}

}  // namespace tessera::runtime::cpu
