#include "tessera/base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

constexpr mode_t others_write = S_IWGRP | S_IWOTH;
constexpr std::string_view temporary_mark = ".new-";
/// Nobody writes a file for so long.
constexpr time_t abandoned_seconds = 3600;

Error not_believed(const std::string& path, std::string_view why) {
  return Error(ErrorCode::unsupported, cat("the folder ", printable(path), " is not used: ", why));
}

Error io_error(std::string_view what, const std::string& path, int reason) {
  return Error(reason == ENOENT ? ErrorCode::not_found : ErrorCode::io,
               cat("cannot ", what, " the folder ", printable(path), ": ", std::strerror(reason)));
}

/// Whether nobody but the user and the system can put something else in the place of what is in a folder.
bool is_safe_above(const struct stat& folder) {
  const bool is_known = folder.st_uid == geteuid() || folder.st_uid == 0;
  return is_known && ((folder.st_mode & others_write) == 0 || (folder.st_mode & S_ISVTX) != 0);
}

/// Links that the system has, such as one for all homes.
bool is_of_system(const struct stat& link, const struct stat& folder) {
  return geteuid() != 0 && link.st_uid == 0 && folder.st_uid == 0 && (folder.st_mode & others_write) == 0;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at && path.substr(at, end - at) != ".") out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

struct timespec last_use(const struct stat& file) {
  const auto is_before = [](const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
  };
  return is_before(file.st_atim, file.st_mtim) ? file.st_mtim : file.st_atim;
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make(const std::string& path, const std::string& above) {
  return reach(path, above);
}

Result<PrivateFolder> PrivateFolder::open(const std::string& path) { return reach(path, std::nullopt); }

/// Folder by folder, each looked at by its descriptor.
Result<PrivateFolder> PrivateFolder::reach(const std::string& path, std::optional<std::string> above) {
  if (path.empty() || path[0] != '/') return not_believed(path, "it is no absolute path");
  const auto parts = parts_of(path);
  const char* const verb = above ? "make" : "open";
  const std::size_t first_made = above ? parts_of(*above).size() : parts.size();
  Descriptor folder(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (folder.get() < 0 || fstat(folder.get(), &info) != 0) return io_error(verb, path, errno);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "..") return not_believed(path, "it goes up again");
    if (!is_safe_above(info)) return not_believed(path, "others may write in a folder above it");
    const char* const name = parts[i].c_str();
    if (i >= first_made && mkdirat(folder.get(), name, 0700) != 0 && errno != EEXIST)
      return io_error(verb, path, errno);
    struct stat entry {};
    if (fstatat(folder.get(), name, &entry, AT_SYMLINK_NOFOLLOW) != 0) return io_error(verb, path, errno);
    const bool is_link = S_ISLNK(entry.st_mode);
    if (is_link && !is_of_system(entry, info)) return not_believed(path, "it is reached by a link");
    const int flags =
        O_DIRECTORY | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW) | (i + 1 < parts.size() ? O_PATH : O_RDONLY);
    Descriptor next(openat(folder.get(), name, flags));
    if (next.get() < 0 || fstat(next.get(), &info) != 0) return io_error(verb, path, errno);
    folder = std::move(next);
  }
  if (info.st_uid != geteuid()) return not_believed(path, "it is another user's");
  if ((info.st_mode & 077) != 0) return not_believed(path, "others may look into it; expected mode 0700");
  return PrivateFolder(std::move(folder));
}

std::optional<std::vector<std::byte>> PrivateFolder::read(const std::string& name,
                                                          std::size_t max_bytes) const {
  const auto file = OpenFile::open_below(descriptor_.get(), name);
  if (!file || file->size() > max_bytes) return std::nullopt;
  const bool is_own = file->status().st_uid == geteuid() && (file->status().st_mode & others_write) == 0;
  if (!is_own) return std::nullopt;
  std::vector<std::byte> out(static_cast<std::size_t>(file->size()));
  if (!file->read(out)) return std::nullopt;
  const timespec used[] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  static_cast<void>(futimens(file->descriptor(), used));  // where that is not allowed, it counts as older
  return out;
}

Result<void> PrivateFolder::write(const std::string& name,
                                  std::span<const std::span<const std::byte>> parts) const {
  static std::atomic<std::uint32_t> count{0};
  const std::string temporary =
      cat(name, temporary_mark, getpid(), "-", count.fetch_add(1, std::memory_order_relaxed));
  const auto failed = [&](int reason) {
    unlinkat(descriptor_.get(), temporary.c_str(), 0);
    return Error(ErrorCode::io, cat("cannot write ", printable(name), ": ", std::strerror(reason)));
  };
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(openat(descriptor_.get(), temporary.c_str(), flags, 0600));
  // Of another process of this number, in another container or long ago.
  if (file.get() < 0 && errno == EEXIST && unlinkat(descriptor_.get(), temporary.c_str(), 0) == 0)
    file = Descriptor(openat(descriptor_.get(), temporary.c_str(), flags, 0600));
  if (file.get() < 0)
    return Error(ErrorCode::io, cat("cannot write ", printable(name), ": ", std::strerror(errno)));
  bool is_done = fchmod(file.get(), 0600) == 0;
  for (const auto& part : parts) is_done = is_done && file.write_all(part);
  if (!is_done) return failed(errno);
  if (!file.close_now()) return failed(errno);
  if (renameat(descriptor_.get(), temporary.c_str(), descriptor_.get(), name.c_str()) != 0)
    return failed(errno);
  return {};
}

std::uint64_t PrivateFolder::shrink(std::uint64_t max_bytes) const {
  const int again = openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(again < 0 ? nullptr : fdopendir(again), &closedir);
  if (list == nullptr) {
    if (again >= 0) close(again);
    return 0;
  }
  struct File {
    timespec used;
    std::uint64_t bytes;
    std::string name;
  };
  std::vector<File> files;
  std::uint64_t sum = 0;
  const time_t now = time(nullptr);
  while (const dirent* entry = readdir(list.get())) {
    struct stat info {};
    if (fstatat(descriptor_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
      continue;
    const bool is_temporary = std::string_view(entry->d_name).find(temporary_mark) != std::string_view::npos;
    if (is_temporary && now - info.st_mtim.tv_sec > abandoned_seconds)
      unlinkat(descriptor_.get(), entry->d_name, 0);
    else if (!is_temporary) {
      files.push_back({last_use(info), static_cast<std::uint64_t>(info.st_size), entry->d_name});
      sum += files.back().bytes;
    }
  }
  if (sum <= max_bytes) return sum;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const File& file : files) {
    if (sum <= max_bytes) break;
    if (unlinkat(descriptor_.get(), file.name.c_str(), 0) == 0 || errno == ENOENT) sum -= file.bytes;
  }
  return sum;
}
