#include "tessera/base/open_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

// Not blocking, so that a pipe nobody writes to is refused instead of waited for.
constexpr int to_read = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
constexpr std::string_view no_regular_file = "is no regular file";

Error refused(ErrorCode code, const std::string& path, std::string_view why) {
  return Error(code, cat("'", printable(shortened(path, 200)), "' ", why));
}

/// -1 with errno if it cannot be: ELOOP if a part is a link.
int open_at_once(int folder, const std::string& path) {
  constexpr int max_tries = 100;  // EAGAIN: somebody has renamed a folder meanwhile
  open_how how{};
  how.flags = to_read | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  long out = -1;
  for (int i = 0; i < max_tries; ++i) {
    out = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
    if (out >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return static_cast<int>(out);
}

bool is_link(int folder, const std::string& name) {
  struct stat found {};
  return fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
}

/// The same where the system has no openat2, or a sandbox does not let us.
int open_part_by_part(int folder, const std::string& path) {
  Descriptor at;
  for (std::size_t begin = 0;;) {
    const int parent = begin == 0 ? folder : at.get();
    const std::size_t end = path.find('/', begin);
    const bool is_last = end == std::string::npos;
    const std::string name = path.substr(begin, is_last ? end : end - begin);
    const int flags = is_last ? to_read : O_PATH | O_DIRECTORY | O_CLOEXEC;
    Descriptor next(openat(parent, name.c_str(), flags | O_NOFOLLOW));
    if (next.get() < 0) {
      // A link that is no folder is told as what it is no folder.
      const int why = errno;
      errno = why == ENOTDIR && is_link(parent, name) ? ELOOP : why;
      return -1;
    }
    if (is_last) return next.release();
    at = std::move(next);
    begin = end + 1;
  }
}

}  // namespace

bool Descriptor::close_now() {
  const int number = release();
  return number < 0 || close(number) == 0;
}

bool Descriptor::write_all(std::span<const std::byte> bytes) const {
  constexpr std::size_t max_part = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t done = ::write(number_, bytes.data(), std::min(bytes.size(), max_part));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return true;
}

bool tessera::is_path_below(std::string_view path) {
  if (path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

Result<OpenFile> OpenFile::open(const std::string& path) {
  const auto failed = [&](std::string_view why) {
    return Error(ErrorCode::io, cat("cannot read ", printable(path), ": ", why));
  };
  Descriptor file(::open(path.c_str(), to_read));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return failed(cat("it ", no_regular_file));
  return OpenFile(path, std::move(file), status);
}

Result<OpenFile> OpenFile::open_below(int folder, const std::string& path) {
  if (!is_path_below(path))
    return refused(ErrorCode::invalid_argument, path,
                   "is no path inside the folder of the file that names it");
  Descriptor file(open_at_once(folder, path));
  if (file.get() < 0 && (errno == ENOSYS || errno == EPERM))
    file = Descriptor(open_part_by_part(folder, path));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return refused(ErrorCode::not_found, path, "cannot be found");
    if (errno == ELOOP)
      return refused(ErrorCode::invalid_argument, path, "is or goes through a symbolic link");
    return refused(ErrorCode::io, path, cat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) return refused(ErrorCode::invalid_argument, path, no_regular_file);
  return OpenFile(path, std::move(file), status);
}

Result<Bytes> OpenFile::map() const {
  const auto bytes = static_cast<std::size_t>(size());
  if (bytes == 0) return Bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor_.get(), 0);
  if (memory == MAP_FAILED)
    return Error(ErrorCode::io, cat("cannot map ", printable(path_), ": ", std::strerror(errno)));
  std::shared_ptr<const void> owner(
      memory, [bytes](const void* mapped) { munmap(const_cast<void*>(mapped), bytes); });
  return Bytes({static_cast<const std::byte*>(memory), bytes}, std::move(owner));
}

bool OpenFile::read(std::span<std::byte> to) const {
  for (off_t at = 0; !to.empty();) {
    const ssize_t done = pread(descriptor_.get(), to.data(), to.size(), at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(done));
    at += done;
  }
  return true;
}

Result<BaseFolder> BaseFolder::of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string path = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  Descriptor folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) return BaseFolder(std::move(folder));
  return Error(ErrorCode::io, cat("cannot open the folder ", printable(path), ": ", std::strerror(errno)));
}
