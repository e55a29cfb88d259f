#include "tessera/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tessera/base/open_file.h"
#include "tessera/base/text.h"

using namespace tessera;

namespace {

Error failed(const std::string& path, std::string_view why) {
  return Error(ErrorCode::io, cat("cannot write ", printable(path), ": ", why));
}

/// Opens a new file beside another, with a name that nobody has; the mask of the process applies to `mode`.
/// (mkstemp does not ask the mask, which cannot be read without changing it for other threads.)
int open_beside(const std::string& target, mode_t mode, std::string& name) {
  static std::atomic<std::uint32_t> count{0};
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    name = cat(target, ".", getpid(), "-", count.fetch_add(1, std::memory_order_relaxed));
    const int file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

Result<Bytes> tessera::map_file(const std::string& path) { return TESSERA_TRY(OpenFile::open(path)).map(); }

Result<void> tessera::write_file(const std::string& path, std::span<const std::span<const std::byte>> parts,
                                 FileUsers users) {
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) return failed(path, "there is something that is no regular file");
  // What a link points to is replaced, not the link.
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  const std::string target = real != nullptr ? std::string(real.get()) : path;
  const bool for_all = users == FileUsers::as_usual;
  std::string temporary;
  Descriptor file(open_beside(target, for_all && !exists ? 0666 : 0600, temporary));
  if (file.get() < 0) return failed(path, std::strerror(errno));
  bool ok = !for_all || !exists || fchmod(file.get(), old.st_mode & 07777) == 0;
  for (const auto& part : parts) ok = ok && file.write_all(part);
  ok = file.close_now() && ok;
  ok = ok && rename(temporary.c_str(), target.c_str()) == 0;
  if (ok) return {};
  const int why = errno;
  unlink(temporary.c_str());
  return failed(path, std::strerror(why));
}
