// Saved plans, of programs and of graph descriptions, that somebody changed, with a checksum that fits: each
// is refused, or runs, or says why it does not. Nothing ends the process, and nothing reaches a check of
// Tessera's own.
//
// TESSERA_MUTANTS=20000 tries so many, TESSERA_SEED=N begins at another number. A mutant is its number: with
// TESSERA_SEED=N TESSERA_MUTANTS=1 the one that failed runs alone, and TESSERA_KEEP=FILE writes it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_package.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/op/wide.h"
#include "tessera/plan/known_sizes.h"
#include "tests/fault/graph_seeds.h"
#include "tests/fault/plan_mutator.h"
#include "tests/fault/plan_seeds.h"
#include "tests/support/repeats.h"

using namespace tessera;
using op::HostTensor;

namespace {

constexpr const char* devices[] = {"reference", "cpu"};
enum Phase : int { compiling, loading, running };
constexpr const char* phase_names[] = {"compiling", "loading", "running on the reference",
                                       "running on the CPU"};

/// Seconds after which a mutant is given up. What runs may be a loop that somebody made long: that is no
/// fault. What loads ends, and the limit only says which one hangs.
constexpr unsigned most_seconds_of_load = 600, most_seconds_of_run = 2;
constexpr rlim_t most_memory = rlim_t{3} << 30;
constexpr std::int64_t most_elements = 1 << 16;

/// What a child has done, in memory that its parent sees.
struct Progress {
  std::uint64_t next = 0;  ///< the mutant that it is at
  int phase = compiling;
  std::uint64_t refused = 0, loaded = 0, ran = 0, timed_out = 0;
  char message[512] = "";  ///< of an internal error; empty if there was none
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

/// Tries one mutant after another, in a process of its own.
class Child {
 public:
  explicit Child(Progress& progress) : progress_(progress) {}
  virtual ~Child() = default;

  [[noreturn]] void run(std::uint64_t end) {
    limit_memory();
    for (; progress_.next < end; ++progress_.next) {
      try {
        if (!one(progress_.next)) progress_.next = end - 1;
      } catch (const std::bad_alloc&) {
        // There is a limit on purpose.
      } catch (const Exception& exception) {
        note(exception.error());
      }
      if (progress_.message[0] != '\0') _exit(1);
    }
    _exit(0);
  }

 private:
  static void limit_memory() {
    if (fixture::is_sanitized) return;  // a sanitizer reserves more than any limit
    const rlimit limit{most_memory, most_memory};
    setrlimit(RLIMIT_AS, &limit);
  }

  /// False if there is none of this number, nor any behind it.
  virtual bool one(std::uint64_t number) = 0;

 protected:
  /// A signal ends what takes longer; of 0 seconds none does.
  void enter(int phase, unsigned seconds) {
    const itimerval timer{{0, 0}, {seconds * (fixture::is_sanitized ? 10 : 1), 0}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    progress_.phase = phase;
  }

  /// What the bytes are, if they are not refused.
  template <class Load>
  auto load(const std::string& bytes, const Load& from_bytes) {
    if (const char* path = std::getenv("TESSERA_KEEP")) std::ofstream(path) << bytes;
    enter(loading, most_seconds_of_load);
    auto package = from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), bytes.size()))), "x.plan");
    note(package);
    ++(package ? progress_.loaded : progress_.refused);
    return package;
  }
  void count_run() { ++progress_.ran; }

  template <class T>
  void note(const Result<T>& result) {
    if (!result) note(result.error());
  }
  void note(const Error& error) {
    if (error.code() == ErrorCode::internal || progress_.phase == compiling)
      std::snprintf(progress_.message, sizeof progress_.message, "%s", error.to_text().c_str());
  }

 private:
  Progress& progress_;
};

class PlanChild final : public Child {
 public:
  using Child::Child;

 private:
  bool one(std::uint64_t number) override {
    enter(compiling, 0);
    const auto* seed = value_or_throw(fixture::plan_seed(number % fixture::plan_seed_count()));
    const std::string bytes = fixture::changed_plan(seed->bytes, number);
    const auto package = load(bytes, plan::from_bytes);
    const auto given = package ? given_to(*package, *seed, number) : std::nullopt;
    for (int d = 0; given && d < static_cast<int>(std::size(devices)); ++d) run_on(d, *package, *given);
    return true;
  }

  /// What a run is given.
  struct Given {
    std::vector<std::int64_t> sizes;
    std::vector<HostTensor> inputs;
  };

  void run_on(int device, const plan::Package& package, const Given& given) {
    enter(running + device, most_seconds_of_run);
    const auto on = value_or_throw(engine::find_device(devices[device]));
    auto runner = engine::PlanRunner::create(package, *on, {.bytes = 1 << 28, .work = 1e8, .seconds = 1});
    note(runner);
    for (int launch = 0; runner && launch < 2; ++launch) {
      const auto outputs = runner->run(given.inputs, {}, given.sizes);
      note(outputs);
      if (!outputs) return;
    }
    if (runner) count_run();
  }

  /// Tensors of the types that the package says, if they are not too large.
  static std::optional<Given> given_to(const plan::Package& package, const fixture::PlanSeed& seed,
                                       std::uint64_t number) {
    std::mt19937_64 random(number);
    const auto& dims = package.programs.front().dims;
    Given out;
    for (const auto& dim : dims) {
      const auto usual = seed.sizes.find(dim->name);
      const bool is_usual = usual != seed.sizes.end() && random() % 8 != 0;
      out.sizes.push_back(is_usual ? usual->second : static_cast<std::int64_t>(random() % 7));
    }
    for (const op::ValueType& type : plan::input_types(package)) {
      const auto known = plan::KnownSizes{dims, out.sizes}.of(type);
      if (!known) return std::nullopt;
      const auto extents = op::extents_of(known->shape);
      if (op::element_count(extents) > most_elements) return std::nullopt;
      auto tensor = HostTensor::allocate(known->dtype, extents);
      if (!tensor) return std::nullopt;
      fill(*tensor, random);
      out.inputs.push_back(*std::move(tensor));
    }
    return out;
  }

  static void fill(HostTensor& tensor, std::mt19937_64& random) {
    const auto count = static_cast<std::size_t>(tensor.size());
    std::vector<double> values;
    const bool is_float = ir::is_float(tensor.dtype());
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(is_float ? static_cast<double>(random() % 4001) / 1000 - 2
                                : static_cast<double>(random() % 2));
    op::storer<double>(tensor.dtype())(tensor.array().data, 0, 1, count, values.data());
  }
};

/// The bytes of a graph that was changed in one way of many; nothing beyond the last.
using ChangeGraph = std::optional<std::string> (*)(std::uint64_t number);

class GraphChild final : public Child {
 public:
  GraphChild(Progress& progress, ChangeGraph change) : Child(progress), change_(change) {}

 private:
  bool one(std::uint64_t number) override {
    enter(compiling, 0);
    const auto bytes = change_(number);
    if (!bytes) return false;
    const auto package = load(*bytes, engine::graph_from_bytes);
    for (int d = 0; package && d < static_cast<int>(std::size(devices)); ++d) run_on(d, *package);
    return true;
  }

  void run_on(int device, const engine::GraphPackage& package) {
    enter(running + device, most_seconds_of_run);
    const auto on = value_or_throw(engine::find_device(devices[device]));
    auto memory = memory_of(*package.program);
    if (!memory) return;
    description::Bindings bindings;
    for (auto& [name, bytes] : *memory) bindings[name] = bytes;
    auto graph = engine::make_graph(package, fixture::graph_kernels(),
                                    {.bindings = bindings, .memory = 1 << 28, .threads = 1}, on);
    note(graph);
    for (int launch = 0; graph && launch < 2; ++launch) {
      const auto done = (*graph)->launch();
      note(done);
      if (!done) return;
      if (launch == 0) change_numbers(**graph);
    }
    if (graph) count_run();
  }

  /// What can be patched is.
  void change_numbers(description::HostGraph& graph) {
    const auto description = value_or_throw(graph.description());
    for (const description::Node& node : description.nodes)
      for (const description::Parameter& parameter : node.parameters)
        if (parameter.scalar) note(graph.set_number(node.id, parameter.name, std::int64_t{1}));
    if (const auto report = graph.update(); report.error) note(*report.error);
  }

  /// By external buffer, if they are not too large.
  static std::optional<std::map<std::string, std::vector<std::byte>>> memory_of(
      const description::Program& program) {
    std::map<std::string, std::vector<std::byte>> out;
    for (const description::GraphBuffer& buffer : program.graph.buffers) {
      if (buffer.lifetime != description::Lifetime::external) continue;
      if (buffer.bytes > 8 * most_elements) return std::nullopt;
      out[buffer.name].resize(buffer.bytes + 1, std::byte{0});
      if (buffer.bytes > 0) out[buffer.name][0] = std::byte{1};
    }
    return out;
  }

  ChangeGraph change_;
};

std::optional<std::string> changed_graph(std::uint64_t number) {
  return fixture::changed_plan(fixture::graph_seed(number % fixture::graph_seed_count), number);
}
std::optional<std::string> graph_with_one_byte(std::uint64_t number) {
  const std::string& bytes = fixture::graph_seed(0);
  number *= fixture::is_sanitized ? 10 : 1;
  if (number >= fixture::one_byte_changes(bytes)) return std::nullopt;
  return fixture::with_one_byte(bytes, number);
}
std::optional<std::string> graph_that_is_cut(std::uint64_t number) {
  const std::string& bytes = fixture::graph_seed(0);
  if (number >= fixture::cuts(bytes)) return std::nullopt;
  return fixture::cut_plan(bytes, number);
}

/// Why a child ended before its time; empty if that is no fault.
std::string fault_of(int status, Progress& progress) {
  const std::string where = cat("mutant ", progress.next, ", ", phase_names[progress.phase], ": ");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    ++progress.timed_out;
    return progress.phase >= running ? "" : where + "takes too long";
  }
  if (WIFSIGNALED(status)) return where + strsignal(WTERMSIG(status));
  if (progress.message[0] != '\0') return where + progress.message;
  return WEXITSTATUS(status) == 0 ? "" : cat(where, "exit code ", WEXITSTATUS(status));
}

/// Tries mutants up to `end`, each process until something ends it. `is_run` says whether some must.
void try_all(std::uint64_t first, std::uint64_t end, bool is_run,
             const std::function<std::unique_ptr<Child>(Progress&)>& make_child) {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& progress = *new (memory) Progress;
  progress.next = first;
  std::size_t faults = 0;
  while (progress.next < end && faults < 20) {
    std::fflush(nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) make_child(progress)->run(end);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (const std::string fault = fault_of(status, progress); !fault.empty()) {
      ADD_FAILURE() << fault;
      ++faults;
    }
    progress.message[0] = '\0';
    if (status != 0) ++progress.next;
  }
  std::printf("%llu refused, %llu loaded, %llu runs, %llu that took too long\n",
              static_cast<unsigned long long>(progress.refused),
              static_cast<unsigned long long>(progress.loaded), static_cast<unsigned long long>(progress.ran),
              static_cast<unsigned long long>(progress.timed_out));
  EXPECT_TRUE(std::getenv("TESSERA_MUTANTS") != nullptr ||
              (progress.refused > 0 && (progress.ran > 0 || !is_run)))
      << "a test of nothing";
  munmap(memory, sizeof(Progress));
}

constexpr std::uint64_t most_changes = 1'000'000;  ///< there are fewer
std::uint64_t first_mutant() { return number_from("TESSERA_SEED", 1); }
std::uint64_t last_mutant(std::uint64_t usual) {
  return first_mutant() + number_from("TESSERA_MUTANTS", fixture::repeats(usual));
}

}  // namespace

TEST(HostilePlan, EndsNoProcess) {
  try_all(first_mutant(), last_mutant(4000), true,
          [](Progress& progress) { return std::make_unique<PlanChild>(progress); });
}

TEST(HostileGraph, EndsNoProcess) {
  try_all(first_mutant(), last_mutant(4000), true,
          [](Progress& progress) { return std::make_unique<GraphChild>(progress, changed_graph); });
}

TEST(HostileGraph, OneByteThatIsAnotherEndsNoProcess) {
  try_all(0, most_changes, true,
          [](Progress& progress) { return std::make_unique<GraphChild>(progress, graph_with_one_byte); });
}

TEST(HostileGraph, ASectionThatEndsBeforeItsTimeEndsNoProcess) {
  try_all(0, most_changes, false,
          [](Progress& progress) { return std::make_unique<GraphChild>(progress, graph_that_is_cut); });
}

TEST(HostileGraph, EveryFileThatIsCutOffIsRefused) {
  const std::string& bytes = fixture::graph_seed(1);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto loaded =
        engine::graph_from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), size))), "x.plan");
    ASSERT_FALSE(loaded) << size;
    EXPECT_TRUE(loaded.error().code() == ErrorCode::parse) << loaded.error().to_text();
  }
}
