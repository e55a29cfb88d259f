#include "tessera/tensor/tree.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::detail;

std::string TreePath::text() const {
  const std::string before = above == nullptr ? "" : above->text();
  switch (kind) {
    case Kind::root:
      return "";
    case Kind::field:
      return cat(before, before.empty() ? "" : ".", name);
    case Kind::key:
      return cat(before, "[", quote(name), "]");
    case Kind::index:
      return cat(before, "[", index, "]");
  }
  return before;
}
