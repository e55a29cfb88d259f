#include "tessera/runtime/cuda/emulator/emulator.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/code_store.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// A folder of its own that is gone at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera_emulator_XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(std::string_view name) const { return cat(path_.string(), "/", name); }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

bool uses_barriers(const Source& source) {
  return source.text.find("_sync") != std::string::npos || source.text.find("__sync") != std::string::npos;
}

std::string key_of(const Source& source) { return cat(source.entry, "\n", source.text); }

/// The source as C++: in a namespace, its entry renamed, with a function that unpacks the arguments.
std::string translated(const Source& source, std::size_t number) {
  std::string text = source.text;
  replace_all(text, "extern __shared__ __align__(16) unsigned char shared_memory[];",
              "unsigned char* const shared_memory = emulated::shared;");
  // A text may have several kernels, and be there once for each of them.
  replace_all(text, "extern \"C\" __global__", "__global__");
  const std::string name = cat("tessera_kernel_", number);
  return cat("namespace source_", number, " {\n#define ", source.entry, " ", name, "\n#line 1 \"source ",
             source.entry, "\"\n", text, "\n#undef ", source.entry, "\n}\nextern \"C\" void call_", number,
             "(void** values) { emulated::call(&source_", number, "::", name, ", values); }\n");
}

/// All the sources as one program in C++.
std::string program_of(const std::vector<SourceRef>& sources) {
  std::string out = "#include \"" TESSERA_SOURCE_DIR "/tessera/runtime/cuda/emulator/device_side.h\"\n";
  for (std::size_t i = 0; i < sources.size(); ++i) out += translated(*sources[i], i);
  return out +
         "extern \"C\" const char* launch_all(void (*call)(void**), void** values, const unsigned* extents,"
         " unsigned shared_bytes, bool barriers, bool backward) {\n"
         "  return emulated::launch(call, values, extents, shared_bytes, barriers, backward);\n}\n";
}

constexpr std::string_view compiler =
    "c++ -std=c++20 -O1 -w -fPIC -shared -ffp-contract=off -fno-strict-aliasing -fwrapv";

/// Compiles `program` to `library`.
Result<void> compile_program(const std::string& program, const Folder& folder, const std::string& library) {
  const std::string cpp = folder.file("kernels.cpp"), log = folder.file("log");
  std::ofstream(cpp) << program;
  const std::string command = cat(compiler, " -o '", library, "' '", cpp, "' > '", log, "' 2>&1");
  if (std::system(command.c_str()) != 0)  // NOLINT: a test
    return Error(ErrorCode::invalid_argument,
                 cat("the sources do not compile:\n", contents(log).substr(0, 8000)));
  return {};
}

/// Where compiled programs are kept from test to test, if TESSERA_EMULATED_KERNELS says so.
const runtime::CodeStore& kept_programs() {
  static const char* const folder = std::getenv("TESSERA_EMULATED_KERNELS");
  static const runtime::CodeStore store(folder == nullptr ? "" : folder);
  return store;
}

/// What a library is made from: the program, what it includes, and who compiles it.
std::string key_of_program(const std::string& program) {
  static const std::string header =
      contents(TESSERA_SOURCE_DIR "/tessera/runtime/cuda/emulator/device_side.h");
  return cat(compiler, " ", __VERSION__, "\n", header, program);
}

/// The loaded library of all the sources. It is loaded from a place of its own, also if it was kept: what its
/// threads share belongs to one emulator.
Result<std::shared_ptr<void>> compiled(const std::vector<SourceRef>& sources) {
  const Folder folder;
  const std::string program = program_of(sources), key = key_of_program(program);
  const std::string library = folder.file("kernels.so");
  if (const auto kept = kept_programs().load(key)) {
    std::ofstream(library).write(reinterpret_cast<const char*>(kept->data()),
                                 static_cast<std::streamsize>(kept->size()));
  } else {
    TESSERA_TRY(compile_program(program, folder, library));
    // Who cannot keep it compiles it again.
    const std::string made = contents(library);
    (void)kept_programs().save(key, std::as_bytes(std::span(made)));
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error(ErrorCode::internal, cat("dlopen: ", dlerror()));
  return std::shared_ptr<void>(handle, [](void* opened) { dlclose(opened); });
}

std::uint64_t number_bits(double value, ir::Dtype dtype) {
  std::uint64_t out = 0;
  if (dtype == ir::Dtype::f64) std::memcpy(&out, &value, 8);
  if (dtype == ir::Dtype::i64) out = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  if (dtype == ir::Dtype::f32) {
    const auto single = static_cast<float>(value);
    std::memcpy(&out, &single, 4);
  }
  return out;
}

/// Element (i, j) of matrix `n`, counted from the first.
std::int64_t element_of(const Product::Operand& operand, std::int64_t n, std::int64_t i, std::int64_t j) {
  return n * operand.batch + (operand.is_transposed ? j * operand.leading + i : i * operand.leading + j);
}

double activated(double x, Product::Activation activation) {
  if (activation == Product::Activation::relu) return x < 0 ? 0 : x;
  if (activation != Product::Activation::gelu) return x;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

op::Array byte_array(std::vector<std::byte>& bytes) {
  return {ir::Dtype::u8, op::contiguous({static_cast<std::int64_t>(bytes.size())}), bytes.data()};
}

}  // namespace

void tessera::runtime::cuda::compute_product(const Product& p, const HostProduct& at) {
  const auto load = [read = op::loader<double>(p.dtype)](const std::byte* from, std::int64_t i) {
    double out = 0;
    read(from, i, 1, 1, &out);
    return out;
  };
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t i = 0; i < p.rows; ++i)
      for (std::int64_t j = 0; j < p.columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.depth; ++k)
          sum += load(at.a, element_of(p.a, n, i, k)) * load(at.b, element_of(p.b, n, k, j));
        const std::int64_t to = element_of(p.c, n, i, j);
        sum *= static_cast<double>(p.finish.scale);
        if (p.finish.adds_bias) sum += load(at.bias, j);
        if (p.finish.adds_array) sum += load(at.added, to);
        sum = activated(sum, p.finish.activation);
        op::storer<double>(p.dtype)(at.c, to, 1, 1, &sum);
      }
}

std::string Emulator::why_unavailable() {
  static const bool is_there = std::system("c++ --version > /dev/null 2>&1") == 0;  // NOLINT
  return is_there ? "" : "there is no C++ compiler named c++";
}

Result<void> Emulator::compile(std::span<const StepProgram> programs) {
  std::vector<SourceRef> sources;
  std::set<std::string> seen;
  for (const StepProgram& program : programs)
    for (const Launch& step : program.launches)
      if (step.source != nullptr && !codes_.contains(key_of(*step.source)) &&
          seen.insert(key_of(*step.source)).second)
        sources.push_back(step.source);
  if (sources.empty()) return {};
  const std::shared_ptr<void> library = TESSERA_TRY(compiled(sources));
  const auto launch = reinterpret_cast<LaunchAll>(dlsym(library.get(), "launch_all"));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto call = reinterpret_cast<Call>(dlsym(library.get(), cat("call_", i).c_str()));
    codes_[key_of(*sources[i])] = {library, call, launch, uses_barriers(*sources[i])};
  }
  return {};
}

/// What the launches of one run share.
struct Emulator::Run {
  std::span<const op::Array> inputs, results;
  std::span<const double> numbers;
  ThreadOrder order;
  std::deque<GuardedArray> scratch;
  std::vector<Status> statuses;

  [[nodiscard]] std::byte* address(const Memory& memory) {
    if (memory.kind == Memory::Kind::status)
      return reinterpret_cast<std::byte*>(&statuses[memory.index]) + memory.byte;
    if (memory.kind == Memory::Kind::scratch) return scratch[memory.index].array().data + memory.byte;
    return (memory.kind == Memory::Kind::input ? inputs : results)[memory.index].data + memory.byte;
  }
  [[nodiscard]] HostProduct product(const Launch& launch) {
    const auto at = [&](std::size_t i) {
      const bool is_there = i < launch.arguments.size() && launch.arguments[i].kind == Argument::Kind::memory;
      return is_there ? address(launch.arguments[i].memory) : nullptr;
    };
    return {.a = at(0), .b = at(1), .bias = at(4), .added = at(5), .c = at(2)};
  }
};

Result<void> Emulator::run_kernel(const Source& source, const Shape& shape, void** values,
                                  ThreadOrder order) {
  const auto found = codes_.find(key_of(source));
  if (found == codes_.end())
    return Error(ErrorCode::invalid_argument, cat("'", source.entry, "' was not compiled"));
  const unsigned extents[] = {shape.grid.x,  shape.grid.y,  shape.grid.z,
                              shape.block.x, shape.block.y, shape.block.z};
  const Code& code = found->second;
  const char* failure = code.launch(code.call, values, extents, shape.shared_bytes, code.uses_barriers,
                                    order == ThreadOrder::backward);
  if (failure != nullptr) return Error(ErrorCode::invalid_argument, cat("'", source.entry, "': ", failure));
  return {};
}

Result<void> Emulator::launch(const Launch& step, Run& run) {
  std::vector<std::uint64_t> values;
  values.reserve(step.arguments.size());
  std::vector<void*> pointers;
  for (const Argument& argument : step.arguments) {
    std::uint64_t bits = argument.bits;
    if (argument.kind == Argument::Kind::memory)
      bits = reinterpret_cast<std::uintptr_t>(run.address(argument.memory));
    if (argument.kind == Argument::Kind::number)
      bits = number_bits(run.numbers[argument.slot], argument.dtype);
    values.push_back(bits);
    pointers.push_back(&values.back());
  }
  return run_kernel(*step.source, {step.grid, step.block, step.shared_bytes}, pointers.data(), run.order);
}

Result<void> Emulator::run(const StepProgram& program, std::span<const op::Array> inputs,
                           std::span<const op::Array> results, std::span<const double> numbers,
                           ThreadOrder order) {
  Run run{inputs, results, numbers, order, {}, std::vector<Status>(program.checks.size())};
  for (const std::int64_t bytes : program.scratch_bytes) {
    std::vector<std::byte> garbage(static_cast<std::size_t>(bytes), std::byte{0xa5});
    run.scratch.emplace_back(byte_array(garbage));
  }
  for (const Launch& step : program.launches) switch (step.kind) {
      case Launch::Kind::kernel:
        TESSERA_TRY(launch(step, run));
        break;
      case Launch::Kind::clear:
        std::memset(run.address(step.to), 0, static_cast<std::size_t>(step.bytes));
        break;
      case Launch::Kind::copy:
        std::memcpy(run.address(step.to), run.address(step.from), static_cast<std::size_t>(step.bytes));
        break;
      case Launch::Kind::captured:
        return Error(ErrorCode::unsupported, "what is captured needs a driver");
      case Launch::Kind::product:
        compute_product(*step.product, run.product(step));
        break;
    }
  for (const GuardedArray& scratch : run.scratch) TESSERA_TRY(scratch.check());
  for (std::size_t i = 0; i < run.statuses.size(); ++i)
    if (auto error = error_of(program.checks[i], run.statuses[i])) return *std::move(error);
  return {};
}

// ---- guarded arrays

namespace {

constexpr std::byte canary{0xc3};
constexpr std::size_t alignment = 16;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

GuardedArray::GuardedArray(const op::Array& array, std::int64_t misalignment) : array_(array) {
  std::int64_t low = array.layout.offset, high = low;
  for (std::size_t i = 0; i < array.rank(); ++i) {
    const std::int64_t reach = array.layout.strides[i] * (array.layout.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(ir::size_of(array.dtype));
  bytes_ = array.size() == 0 ? 0 : static_cast<std::size_t>((high - low + 1) * size);
  const std::size_t shift = static_cast<std::size_t>(misalignment * size) % alignment;
  const std::size_t used = (bytes_ + shift + alignment - 1) / alignment * alignment;
  const std::size_t page = page_bytes(), inner = (used + page - 1) / page * page;
  mapped_ = inner + 2 * page;
  mapping_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  TESSERA_CHECK(mapping_ != MAP_FAILED, "no memory for a guarded array");
  mprotect(mapping_ + page, inner, PROT_READ | PROT_WRITE);
  std::memset(mapping_ + page, static_cast<int>(canary), inner);
  begin_ = mapping_ + page + inner - used + shift;
  if (bytes_ > 0) std::memcpy(begin_, array.at(low), bytes_);
  array_.data = begin_ - low * size;
}

GuardedArray::GuardedArray(GuardedArray&& other) noexcept
    : array_(other.array_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      begin_(other.begin_),
      bytes_(other.bytes_) {}

GuardedArray::~GuardedArray() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Result<void> GuardedArray::check() const {
  const std::byte* const first = mapping_ + page_bytes();
  const std::byte* const last = mapping_ + mapped_ - page_bytes();
  for (const std::byte* at = first; at != last; ++at)
    if ((at < begin_ || at >= begin_ + bytes_) && *at != canary)
      return Error(ErrorCode::invalid_argument,
                   cat("byte ", at - begin_, " of an array of ", bytes_, " bytes was written to"));
  return {};
}
