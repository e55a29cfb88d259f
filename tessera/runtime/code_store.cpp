#include "tessera/runtime/code_store.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include "tessera/base/environment.h"
#include "tessera/base/hash.h"
#include "tessera/base/private_folder.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cache_options.h"

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

std::string file_name(std::string_view key) { return cat(hash_text(key).to_hex(), ".bin"); }

Hash128 check_of(std::span<const std::byte> key, std::span<const std::byte> code) {
  return Hasher().add_bytes(key).add_bytes(code).finish();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

constexpr std::uint64_t default_bytes = std::uint64_t{256} << 20;
/// What is left when files are removed, and what a process may add before it looks again what there is.
constexpr std::uint64_t kept_of_8 = 7, added_of = 16;

/// Of the process; never destroyed.
struct Caches {
  std::mutex mutex;
  CacheOptions options;
  std::set<std::string> warned;
  std::map<std::string, std::uint64_t> until_look;  ///< by folder: bytes that may be saved before

  static Caches& all() {
    static auto& only = *new Caches;
    return only;
  }
  void warn_once(const std::string& message) {
    const std::lock_guard lock(mutex);
    if (warned.insert(message).second) std::fprintf(stderr, "tessera: %s\n", message.c_str());
  }
  CacheOptions said() {
    const std::lock_guard lock(mutex);
    return options;
  }
};

bool is_folder_name(const char* name) { return name != nullptr && name[0] == '/'; }

/// A home that is there; empty if there is none.
std::string home_folder() {
  const char* home = environment("HOME");
  return is_folder_name(home) ? home : "";
}

/// Where all kinds of files are; empty: nowhere.
std::string cache_folder() {
  if (const auto said = Caches::all().said().folder) return *said;
  if (const char* cache = environment("TESSERA_CACHE"); cache != nullptr && cache[0] != '\0') {
    if (std::string_view(cache) == "off") return "";
    if (is_folder_name(cache)) return cache;
    Caches::all().warn_once(
        cat("TESSERA_CACHE: '", printable(cache), "' is no cache, expected an absolute folder or off"));
    return "";
  }
  if (const char* cache = environment("XDG_CACHE_HOME"); is_folder_name(cache)) return cat(cache, "/tessera");
  const std::string home = home_folder();
  return home.empty() ? "" : cat(home, "/.cache/tessera");
}

std::uint64_t max_bytes() {
  if (const auto said = Caches::all().said().max_bytes) return *said;
  const char* text = environment("TESSERA_CACHE_MB");
  if (text == nullptr) return default_bytes;
  std::uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error == std::errc() && stop == end && number <= (std::uint64_t{1} << 40)) return number << 20;
  Caches::all().warn_once(cat("TESSERA_CACHE_MB: '", printable(text), "' is no number of MiB; 256 are used"));
  return default_bytes;
}

/// A folder that is there and not to be believed is told once.
template <class T>
Result<T> warned(Result<T> folder) {
  if (!folder && folder.error().code() == ErrorCode::unsupported)
    Caches::all().warn_once(folder.error().message());
  return folder;
}

/// A home that is not there is not made.
std::string never_made(const std::string& folder) {
  const std::string home = home_folder();
  return !home.empty() && folder.starts_with(home + "/") ? home : "/";
}

/// Whether so many bytes fit at all. Now and then it is looked whether older ones must go.
bool make_place(const PrivateFolder& folder, const std::string& path, std::uint64_t bytes) {
  const std::uint64_t most = max_bytes();
  if (bytes > most * kept_of_8 / 8) return false;
  Caches& caches = Caches::all();
  {
    const std::lock_guard lock(caches.mutex);
    std::uint64_t& left = caches.until_look[path];
    if (left >= bytes) return left -= bytes, true;
  }
  // What other processes save until they look is not known here.
  const std::uint64_t step = most / added_of;
  std::uint64_t there = folder.shrink(most - std::min(most, bytes));
  if (there + bytes + step > most) there = folder.shrink(most * kept_of_8 / 8 - bytes);
  const std::lock_guard lock(caches.mutex);
  caches.until_look[path] = step;
  return there + bytes <= most;
}

}  // namespace

void runtime::set_cache_options(const CacheOptions& options) {
  Caches& caches = Caches::all();
  const std::lock_guard lock(caches.mutex);
  if (options.folder) caches.options.folder = options.folder;
  if (options.max_bytes) caches.options.max_bytes = options.max_bytes;
  caches.until_look.clear();
}

std::string CodeStore::default_folder(std::string_view what) {
  const std::string folder = cache_folder();
  return folder.empty() ? std::string() : cat(folder, "/", what);
}

std::string CodeStore::path_of(std::string_view key) const { return cat(folder_, "/", file_name(key)); }

bool CodeStore::may_have_code() const {
  return !folder_.empty() && warned(PrivateFolder::open(folder_)).ok();
}

std::optional<std::vector<std::byte>> CodeStore::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const auto folder = warned(PrivateFolder::open(folder_));
  if (!folder) return std::nullopt;
  auto file = folder->read(file_name(key), largest_file);
  if (!file || file->size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, file->data(), sizeof header);
  const auto rest = std::span<const std::byte>(*file).subspan(sizeof header);
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
  const auto folder = TESSERA_TRY(warned(PrivateFolder::make(folder_, never_made(folder_))));
  const std::uint64_t bytes = sizeof(Header) + key.size() + code.size();
  if (bytes > largest_file || !make_place(folder, folder_, bytes))
    return Error(ErrorCode::limit, cat("a file of ", bytes, " bytes has no place in ", printable(folder_),
                                       ", which may have ", max_bytes(), " bytes"));
  const Header header{magic, key.size(), code.size(), check_of(bytes_of(key), code)};
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&header, 1)), bytes_of(key), code};
  return folder.write(file_name(key), parts);
}
