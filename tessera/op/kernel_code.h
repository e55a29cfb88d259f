// The code of a kernel of the program's own, which may change while the program runs: a file that is looked
// at again, or a text that is replaced.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tessera/base/open_file.h"
#include "tessera/base/result.h"

namespace tessera::op {

enum class CodeForm : std::uint8_t {
  cuda,   ///< CUDA C++, with an extern "C" __global__ function
  ptx,    ///< text
  cubin,  ///< for one kind of device
};

/// The code as it was at some time. Another object is other code.
struct KernelCode {
  CodeForm form = CodeForm::cuda;
  std::string text;
  std::string origin;  ///< for messages: "blur.cu"
};
using KernelCodeRef = std::shared_ptr<const KernelCode>;

/// Thread-safe.
class KernelSource {
 public:
  /// The content of a file, read when it is first needed and when it has changed since.
  [[nodiscard]] static std::shared_ptr<KernelSource> from_file(std::string path, CodeForm form);
  /// The same of a file that another file names: below that one's folder, through no link
  /// (base/open_file.h). `folder` is empty or ends with a slash.
  [[nodiscard]] static std::shared_ptr<KernelSource> from_file_below(std::string folder, std::string path,
                                                                     CodeForm form);
  /// A text; `origin` stands for it in messages.
  [[nodiscard]] static std::shared_ptr<KernelSource> from_text(std::string text, CodeForm form,
                                                               std::string origin);

  /// The code as it is now: one look at the file. If the file cannot be read, what it had before, and
  /// error() says why; an error if it never had any.
  [[nodiscard]] Result<KernelCodeRef> current();
  /// Whether there is a file that can be read, or a text.
  [[nodiscard]] Result<void> check() const;
  /// From now on the code is this text, and no file is looked at.
  void set_text(std::string text, CodeForm form);

  /// A device cannot use this code; earlier code goes on. Said on stderr once for each code.
  void refuse(const KernelCodeRef& code, const Error& why);
  /// What is wrong with the newest code; empty if nothing is.
  [[nodiscard]] std::string error() const;

 private:
  /// What tells whether a file has changed.
  struct Stamp {
    std::uint64_t device = 0, file = 0, bytes = 0;
    std::int64_t modified = 0, changed = 0;

    bool operator==(const Stamp&) const = default;
  };

  KernelSource() = default;
  [[nodiscard]] static Stamp stamp_of(const struct stat& status);
  [[nodiscard]] std::string full_path() const { return folder_.value_or("") + path_; }
  [[nodiscard]] Result<OpenFile> open() const;
  [[nodiscard]] Result<void> read();
  void say(std::string why);

  mutable std::mutex mutex_;
  std::string path_;                   ///< empty: no file
  std::optional<std::string> folder_;  ///< that the path is below; none: the program has named the file
  CodeForm form_ = CodeForm::cuda;
  Stamp stamp_;
  KernelCodeRef code_;
  std::string error_;
};

/// By the end of a file's name: .ptx, .cubin, else CUDA C++.
[[nodiscard]] CodeForm form_of_file(std::string_view path);

}  // namespace tessera::op
