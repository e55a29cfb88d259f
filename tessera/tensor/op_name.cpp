#include "tessera/tensor/op_name.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"

using namespace tessera;

void tessera::detail::check_op_name(std::string_view function, const std::string& name, Here here) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool is_name =
      !name.empty() && is_letter(name[0]) &&
      std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
  if (!is_name)
    fail(here, cat(function, ": '", printable(shortened(name, 60)),
                   "' is no name: letters, digits and _ are, with a letter or _ first"));
}
