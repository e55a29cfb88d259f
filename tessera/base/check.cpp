#include "tessera/base/check.h"

void tessera::check_failed(const char* condition, std::string_view message, const char* file, int line) {
  std::string text = "internal: ";
  text += message;
  text += " (";
  text += condition;
  text += " does not hold)";
  throw Exception(Error(ErrorCode::internal, std::move(text), {file, static_cast<std::uint32_t>(line), 0}));
}
