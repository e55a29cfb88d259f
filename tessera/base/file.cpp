#include "tessera/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

/// Closes at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  /// Closes now and says whether that worked: a full disk may show only here.
  bool close_now() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Error failed(const char* what, const std::string& path, std::string_view why) {
  return Error(ErrorCode::io, cat("cannot ", what, " ", printable(path), ": ", why));
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return true;
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

Result<Bytes> tessera::map_file(const std::string& path) {
  // Not blocking, so that a pipe nobody writes to is refused instead of waited for.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed("read", path, std::strerror(errno));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return failed("read", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failed("read", path, "it is no regular file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return Bytes();
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return failed("map", path, std::strerror(errno));
  std::shared_ptr<const void> owner(memory,
                                    [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  return Bytes({static_cast<const std::byte*>(memory), size}, std::move(owner));
}

Result<void> tessera::write_file(const std::string& path, std::span<const std::span<const std::byte>> parts,
                                 FileUsers users) {
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return failed("write", path, "there is something that is no regular file");
  // What a link points to is replaced, not the link.
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  const std::string target = real != nullptr ? std::string(real.get()) : path;
  const bool for_all = users == FileUsers::as_usual;
  std::string temporary;
  Descriptor file(open_beside(target, for_all && !exists ? 0666 : 0600, temporary));
  if (file.get() < 0) return failed("write", path, std::strerror(errno));
  bool ok = !for_all || !exists || fchmod(file.get(), old.st_mode & 07777) == 0;
  for (const auto& part : parts) ok = ok && write_all(file.get(), part);
  ok = file.close_now() && ok;
  ok = ok && rename(temporary.c_str(), target.c_str()) == 0;
  if (ok) return {};
  const int why = errno;
  unlink(temporary.c_str());
  return failed("write", path, std::strerror(why));
}
