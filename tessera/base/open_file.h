// Files that are opened for reading, at one place for all.
//
// What the user names is trusted: the system follows its links. What a file names is not: it is opened below a
// folder, which it cannot leave, and through no link, wherever and whenever somebody puts one. What was opened is
// looked at by its descriptor; no path is looked at and opened later.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"

namespace tessera {

/// Closes at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { static_cast<void>(close_now()); }

  /// -1: none.
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  /// Whether that worked: a full disk may show only here.
  bool close_now();
  /// Whether all bytes were written; errno says why not.
  [[nodiscard]] bool write_all(std::span<const std::byte> bytes) const;

 private:
  int number_;
};

/// Whether a path is one that `OpenFile::open_below` takes: it goes down only, part by part.
[[nodiscard]] bool is_path_below(std::string_view path);

/// A regular file.
class OpenFile {
 public:
  /// Whatever the path leads to. Fails for directories, devices, pipes and what cannot be read, naming it.
  [[nodiscard]] static Result<OpenFile> open(const std::string& path);
  /// Below a folder, through no link. The error's message begins with the path in quotes; its code is `not_found` if
  /// there is no such file, `invalid_argument` if the path leads elsewhere or to something else.
  [[nodiscard]] static Result<OpenFile> open_below(int folder, const std::string& path);

  /// As it was when the file was opened.
  [[nodiscard]] const struct stat& status() const { return status_; }
  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The content, mapped into memory; pages are read when they are touched.
  [[nodiscard]] Result<Bytes> map() const;
  /// The first bytes, copied. False if there are not so many.
  [[nodiscard]] bool read(std::span<std::byte> to) const;

 private:
  OpenFile(std::string path, Descriptor descriptor, const struct stat& status)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), status_(status) {}

  std::string path_;  ///< for messages
  Descriptor descriptor_;
  struct stat status_;
};

/// A folder that the user has named, held open: files in it are found although its path may lead elsewhere now.
class BaseFolder {
 public:
  /// That of a file, whether the file is there or not; of a name that ends with a slash, that folder.
  [[nodiscard]] static Result<BaseFolder> of(const std::string& file);

  /// See OpenFile::open_below.
  [[nodiscard]] Result<OpenFile> open(const std::string& path) const {
    return OpenFile::open_below(descriptor_.get(), path);
  }

 private:
  explicit BaseFolder(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace tessera
