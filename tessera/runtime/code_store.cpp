#include "tessera/runtime/code_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tessera/base/environment.h"
#include "tessera/base/file.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

constexpr std::array<char, 8> magic{'T', 'S', 'R', 'C', 'O', 'D', 'E', '1'};
constexpr std::size_t largest_file = std::size_t{64} << 20;

struct Header {
  std::array<char, 8> magic;
  std::uint64_t key_size, code_size;
  Hash128 check;  ///< of key and code
};

Hash128 check_of(std::span<const std::byte> key, std::span<const std::byte> code) {
  return Hasher().add_bytes(key).add_bytes(code).finish();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Whether nobody else can have written it.
bool is_own(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Makes a folder and those above it, for the user alone.
Result<void> make_folder(const std::string& folder) {
  for (std::size_t at = folder.find('/', 1);; at = folder.find('/', at + 1)) {
    const std::string part = folder.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return Error(ErrorCode::io,
                   cat("cannot make the folder ", printable(part), ": ", std::strerror(errno)));
    if (at == std::string::npos) return {};
  }
}

}  // namespace

std::string CodeStore::default_folder(std::string_view what) {
  const char* cache = environment("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cat(cache, "/tessera/", what);
  const char* home = environment("HOME");
  return home != nullptr && home[0] == '/' ? cat(home, "/.cache/tessera/", what) : std::string();
}

std::string CodeStore::path_of(std::string_view key) const {
  return cat(folder_, "/", hash_text(key).to_hex(), ".bin");
}

bool CodeStore::may_have_code() const { return !folder_.empty() && is_own(folder_); }

std::optional<std::vector<std::byte>> CodeStore::load(std::string_view key) const {
  if (!may_have_code()) return std::nullopt;
  const std::string path = path_of(key);
  if (!is_own(path)) return std::nullopt;
  const auto file = map_file(path);
  if (!file || file->size() < sizeof(Header) || file->size() > largest_file) return std::nullopt;
  const std::span<const std::byte> all(file->data(), file->size());
  Header header;
  std::memcpy(&header, all.data(), sizeof header);
  const auto rest = all.subspan(sizeof header);
  const bool fits = header.magic == magic && header.key_size == key.size() && rest.size() >= key.size() &&
                    header.code_size == rest.size() - key.size();
  if (!fits) return std::nullopt;
  const auto code = rest.subspan(key.size());
  const bool is_right =
      std::memcmp(rest.data(), key.data(), key.size()) == 0 && header.check == check_of(bytes_of(key), code);
  if (!is_right) return std::nullopt;
  return std::vector<std::byte>(code.begin(), code.end());
}

Result<void> CodeStore::save(std::string_view key, std::span<const std::byte> code) const {
  if (folder_.empty()) return Error(ErrorCode::io, "there is no folder for generated code");
  TESSERA_TRY(make_folder(folder_));
  if (!is_own(folder_))
    return Error(ErrorCode::io, cat("the folder ", printable(folder_), " is not the user's own"));
  const Header header{magic, key.size(), code.size(), check_of(bytes_of(key), code)};
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&header, 1)), bytes_of(key), code};
  return write_file(path_of(key), parts, FileUsers::user_alone);
}
