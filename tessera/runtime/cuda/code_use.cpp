#include "tessera/runtime/cuda/code_use.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cuda;

bool tessera::runtime::cuda::is_same_code(const SourceRef& a, const SourceRef& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->entry == b->entry && a->user->code == b->user->code &&
         a->user->parameter_bytes == b->user->parameter_bytes;
}

void tessera::runtime::cuda::add_use(std::vector<CodeUse>& uses, const SourceRef& source,
                                     std::uint32_t launch) {
  auto use = std::find_if(uses.begin(), uses.end(),
                          [&](const CodeUse& known) { return is_same_code(known.source, source); });
  if (use == uses.end()) use = uses.insert(uses.end(), CodeUse{.source = source, .launches = {}});
  use->launches.push_back(launch);
}

bool tessera::runtime::cuda::may_have_changed(const CodeUse& use) {
  // What cannot be read is said with the function.
  const auto code = use.source->user->code->current();
  return !code || *code != use.seen;
}
