// Times of the host are of the core that is best for the work: on a shared machine somebody may work on the
// other half of a core for minutes, and all that runs on this half takes up to twice as long; cores are also
// near to the GPU and far from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

namespace tessera::benchmarks {

/// Does some work, and says how long it took, in any unit.
using TimedWork = std::function<double()>;

/// Work of the processor alone.
[[nodiscard]] double time_of_instructions();

/// Of the cores that the calling thread may use, the number of the one that does the work fastest now; none
/// if the system does not tell. The work is done some times on each.
[[nodiscard]] std::optional<int> quiet_core(const TimedWork& work = time_of_instructions);

/// While it lives, the thread that made it runs on the core that was best for the work just before. Threads
/// that it makes meanwhile stay there, too.
class OnQuietCore {
 public:
  explicit OnQuietCore(const TimedWork& work = time_of_instructions);
  ~OnQuietCore();
  OnQuietCore(const OnQuietCore&) = delete;
  OnQuietCore& operator=(const OnQuietCore&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;  ///< null: nothing was changed
};

}  // namespace tessera::benchmarks
