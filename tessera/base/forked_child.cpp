#include "tessera/base/forked_child.h"

#include <pthread.h>

using namespace tessera;

void tessera::note_forks() {
  constinit static std::atomic<bool> is_noted{false};
  if (is_noted.exchange(true)) return;
  // Without memory for it, children are not told.
  static_cast<void>(pthread_atfork(nullptr, nullptr, [] { forked_child_flag.store(true); }));
}

Error tessera::forked_child_error() {
  return Error(
      ErrorCode::unsupported,
      "this process was forked from one that had begun to use Tessera: it may read values that are computed, "
      "exit, and call exec; to compute in it, fork before the first tensor, or start a program anew");
}

void tessera::throw_forked_child_error() { throw Exception(forked_child_error()); }
