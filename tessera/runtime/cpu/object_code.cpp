#include "tessera/runtime/cpu/object_code.h"

#include <elf.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

Error broken(std::string_view what) { return Error(ErrorCode::parse, cat("broken object code: ", what)); }

/// An ELF object in memory, of which nothing is believed.
class Object {
 public:
  explicit Object(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<void> read() {
    const auto header = TESSERA_TRY(at<Elf64_Ehdr>(0));
    const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64 &&
                       header.e_type == ET_REL && header.e_shentsize == sizeof(Elf64_Shdr);
    if (!known) return broken("no ELF object of x86-64");
    for (std::size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(TESSERA_TRY(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr))));
    return place();
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  Result<void> copy_to(std::byte* memory) const {
    for (std::size_t i = 0; i < sections_.size(); ++i)
      if (is_loaded(sections_[i]) && sections_[i].sh_type != SHT_NOBITS) {
        const auto from = TESSERA_TRY(content(sections_[i]));
        std::memcpy(memory + offsets_[i], from.data(), from.size());
      }
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_REL) return broken("relocations without addends");
      if (section.sh_type == SHT_RELA && section.sh_info < sections_.size() &&
          is_loaded(sections_[section.sh_info]))
        TESSERA_TRY(relocate(section, memory));
    }
    return {};
  }

  /// The place of a function in the memory.
  Result<std::size_t> find(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      for (std::size_t at_byte = 0; at_byte + sizeof(Elf64_Sym) <= section.sh_size;
           at_byte += sizeof(Elf64_Sym)) {
        const auto symbol = TESSERA_TRY(at<Elf64_Sym>(section.sh_offset + at_byte));
        if (TESSERA_TRY(name_is(section, symbol, name))) return address(symbol);
      }
    }
    return broken(cat("no function '", name, "'"));
  }

 private:
  template <class T>
  Result<T> at(std::size_t offset) const {
    T out;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out) return broken("it ends too early");
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }

  Result<std::span<const std::byte>> content(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_.size() || bytes_.size() - section.sh_offset < section.sh_size)
      return broken("a section ends behind the object");
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }

  static bool is_loaded(const Elf64_Shdr& section) { return (section.sh_flags & SHF_ALLOC) != 0; }

  /// Gives every section that is needed at run time its place.
  Result<void> place() {
    offsets_.assign(sections_.size(), 0);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!is_loaded(sections_[i])) continue;
      const std::uint64_t alignment = std::max<std::uint64_t>(sections_[i].sh_addralign, 1);
      if (alignment > 4096 || sections_[i].sh_size > (std::uint64_t{1} << 30))
        return broken("a section is too large");
      size_ = (size_ + alignment - 1) / alignment * alignment;
      offsets_[i] = size_;
      size_ += sections_[i].sh_size;
    }
    return {};
  }

  Result<std::size_t> address(const Elf64_Sym& symbol) const {
    const bool inside = symbol.st_shndx < sections_.size() && symbol.st_shndx != SHN_UNDEF &&
                        is_loaded(sections_[symbol.st_shndx]) &&
                        symbol.st_value <= sections_[symbol.st_shndx].sh_size;
    if (!inside) return broken("it refers to something outside");
    return offsets_[symbol.st_shndx] + symbol.st_value;
  }

  Result<bool> name_is(const Elf64_Shdr& table, const Elf64_Sym& symbol, std::string_view name) const {
    if (table.sh_link >= sections_.size()) return broken("a table of symbols without names");
    const auto names = TESSERA_TRY(content(sections_[table.sh_link]));
    if (symbol.st_name >= names.size() || names.size() - symbol.st_name <= name.size()) return false;
    const auto* text = reinterpret_cast<const char*>(names.data()) + symbol.st_name;
    return std::string_view(text, name.size()) == name && text[name.size()] == 0;
  }

  Result<void> relocate(const Elf64_Shdr& section, std::byte* memory) const {
    const Elf64_Shdr& target = sections_[section.sh_info];
    if (section.sh_link >= sections_.size()) return broken("relocations without symbols");
    const Elf64_Shdr& symbols = sections_[section.sh_link];
    for (std::size_t k = 0; k + sizeof(Elf64_Rela) <= section.sh_size; k += sizeof(Elf64_Rela)) {
      const auto entry = TESSERA_TRY(at<Elf64_Rela>(section.sh_offset + k));
      const auto symbol =
          TESSERA_TRY(at<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym)));
      const auto to = static_cast<std::int64_t>(TESSERA_TRY(address(symbol))) + entry.r_addend;
      const std::uint64_t type = ELF64_R_TYPE(entry.r_info);
      const bool is_wide = type == R_X86_64_PC64;
      if (!is_wide && type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        return broken(cat("a relocation of type ", type));
      const std::size_t width = is_wide ? 8 : 4;
      if (entry.r_offset > target.sh_size || target.sh_size - entry.r_offset < width)
        return broken("a relocation outside of its section");
      const std::size_t place = offsets_[section.sh_info] + entry.r_offset;
      const std::int64_t distance = to - static_cast<std::int64_t>(place);
      if (!is_wide && (distance > std::numeric_limits<std::int32_t>::max() ||
                       distance < std::numeric_limits<std::int32_t>::min()))
        return broken("a relocation that reaches too far");
      std::memcpy(memory + place, &distance, width);
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
};

}  // namespace

Result<ObjectCode> ObjectCode::load(std::span<const std::byte> bytes, std::string_view function) {
  Object object(bytes);
  TESSERA_TRY(object.read());
  const std::size_t entry = TESSERA_TRY(object.find(function));
  ObjectCode out;
  out.size_ = std::max<std::size_t>(object.size(), 1);
  void* memory = mmap(nullptr, out.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error(ErrorCode::memory,
                 cat("no memory for ", out.size_, " bytes of code: ", std::strerror(errno)));
  out.memory_ = static_cast<std::byte*>(memory);
  TESSERA_TRY(object.copy_to(out.memory_));
  if (mprotect(memory, out.size_, PROT_READ | PROT_EXEC) != 0)
    return Error(ErrorCode::device, cat("the system lets no memory be executed: ", std::strerror(errno)));
  out.entry_ = out.memory_ + entry;
  return out;
}

ObjectCode::ObjectCode(ObjectCode&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_), entry_(other.entry_) {}

ObjectCode& ObjectCode::operator=(ObjectCode&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(entry_, other.entry_);
  return *this;
}

ObjectCode::~ObjectCode() {
  if (memory_ != nullptr) munmap(memory_, size_);
}
