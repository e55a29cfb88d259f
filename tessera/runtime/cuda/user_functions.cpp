#include "tessera/runtime/cuda/user_functions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using op::CodeForm;
using op::KernelCode;
using op::KernelCodeRef;

namespace {

constexpr Elf64_Half machine_cuda = 190;

Error wrong_code(const KernelCode& code, std::string_view why) {
  return Error(ErrorCode::parse, cat("'", printable(shortened(code.origin, 200)), "' ", why));
}

/// The driver believes what the headers of a cubin say, so that they are looked at first.
Result<void> check_cubin(const KernelCode& code) {
  const std::string& text = code.text;
  Elf64_Ehdr header;
  if (text.size() < sizeof header || std::memcmp(text.data(), ELFMAG, SELFMAG) != 0)
    return wrong_code(code, "is no cubin: it does not begin as one");
  std::memcpy(&header, text.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine_cuda)
    return wrong_code(code, "is no cubin: it is for another machine");
  const auto fits = [&](std::uint64_t begin, std::uint64_t bytes) {
    return begin <= text.size() && bytes <= text.size() - begin;
  };
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !fits(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return wrong_code(code, "is a cubin that was cut off");
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, text.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size))
      return wrong_code(code, "is a cubin that was cut off");
  }
  return {};
}

/// The driver tells PTX from other forms by its first bytes, and reads it up to a 0.
Result<void> check_ptx(const KernelCode& code) {
  if (code.text.find('\0') != std::string::npos) return wrong_code(code, "is no PTX: it is no text");
  if (code.text.find(".version") == std::string::npos)
    return wrong_code(code, "is no PTX: it has no .version");
  return {};
}

}  // namespace

UserFunctions::Entry& UserFunctions::entry_of(const Source& source) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.source.expired(); });
  const UserCode& user = *source.user;
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.source.lock() == user.code && entry.entry == source.entry &&
           entry.parameter_bytes == user.parameter_bytes;
  });
  if (found != entries_.end()) return *found;
  entries_.push_back({.source = user.code, .entry = source.entry, .parameter_bytes = user.parameter_bytes});
  return entries_.back();
}

Result<FunctionRef> UserFunctions::get(const Source& source, const Compile& compile) {
  const UserCode& user = *source.user;
  const auto named = [&](const Error& error) {
    return Error(error.code(), cat("kernel '", user.name, "': ", error.message()));
  };
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(source);
  auto code = user.code->current();
  if (!code) return named(code.error());
  if (entry.tried != *code) {
    entry.tried = *code;
    entry.error.reset();
    auto made = make(source, **code, compile);
    if (made)
      entry.good = *std::move(made);
    else
      entry.error = named(made.error());
    if (entry.error && entry.good != nullptr) user.code->refuse(*code, *entry.error);
  }
  if (entry.good != nullptr) return entry.good;
  return *entry.error;
}

Result<FunctionRef> UserFunctions::make(const Source& source, const KernelCode& code,
                                        const Compile& compile) const {
  FunctionRef out;
  if (code.form == CodeForm::cuda) {
    auto text = std::make_shared<Source>();
    text->text = code.text;
    text->entry = source.entry;
    text->file = code.origin;
    out = TESSERA_TRY(compile(text));
  } else {
    TESSERA_TRY(code.form == CodeForm::ptx ? check_ptx(code) : check_cubin(code));
    const auto bytes = std::as_bytes(std::span(code.text.c_str(), code.text.size() + 1));
    out = TESSERA_TRY(Function::load(stream_, bytes, source.entry));
  }
  TESSERA_TRY(check_parameters(source, *out));
  return out;
}

/// A launch gives as many bytes as each parameter has: with others the driver would read beyond them.
Result<void> UserFunctions::check_parameters(const Source& source, const Function& function) const {
  const auto parameter = stream_->context()->driver().function_parameter;
  if (parameter == nullptr) return {};
  const auto& given = source.user->parameter_bytes;
  std::size_t offset = 0, bytes = 0, count = 0;
  for (; parameter(function.handle(), count, &offset, &bytes) == CUDA_SUCCESS; ++count)
    if (count < given.size() && bytes != given[count])
      return Error(ErrorCode::invalid_argument,
                   cat("parameter ", count, " of '", source.entry, "' has ", bytes, " bytes, ",
                       static_cast<int>(given[count]), " are declared"));
  if (count == given.size()) return {};
  return Error(ErrorCode::invalid_argument,
               cat("'", source.entry, "' takes ", count, " parameters, ", given.size(), " are declared"));
}
