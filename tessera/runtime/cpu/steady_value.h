// What is set for every launch and mostly stays: threads that run a part of the launch have it in their
// caches, and a write that changes nothing would take it from them.
#pragma once

namespace tessera::runtime::cpu {

template <class T>
void set_if_other(T& value, const T& next) {
  if (value != next) value = next;
}

}  // namespace tessera::runtime::cpu
