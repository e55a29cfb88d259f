#include "tessera/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

Result<void> tessera::write_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const std::string temporary = cat(path, ".", getpid(), ".tmp");
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return failed("write", path, std::strerror(errno));
  bool ok = true;
  for (const auto& part : parts) ok = ok && write_all(file.get(), part);
  ok = file.close_now() && ok;
  ok = ok && rename(temporary.c_str(), path.c_str()) == 0;
  if (ok) return {};
  const int why = errno;
  unlink(temporary.c_str());
  return failed("write", path, std::strerror(why));
}
