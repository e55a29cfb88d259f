// The end of the program, while threads still work.
//
// exit() takes libraries apart that other threads may be inside of. Tessera's own statics are never
// destroyed; libraries that were opened at run time have statics of their own. Who calls them stays inside
// for as long: then exit() lets those that are inside come out before it goes on, and lets nobody in.
//
//   const ForeignStay stay;
//   if (!stay.is_inside()) return Error(ErrorCode::unsupported, "the program ends");
#pragma once

#include <thread>
#include <utility>

namespace tessera {

/// A thread is inside of a library that was opened at run time. May be nested. Costs two atomic operations:
/// not for each call of a primitive.
class ForeignStay {
 public:
  ForeignStay();
  ForeignStay(ForeignStay&& other) noexcept : is_inside_(std::exchange(other.is_inside_, false)) {}
  ForeignStay& operator=(ForeignStay&&) = delete;
  ~ForeignStay();

  /// False if the program ends, or is the child of a fork (forked_child.h): then nothing of the library may be
  /// called.
  [[nodiscard]] bool is_inside() const { return is_inside_; }

 private:
  bool is_inside_;
};

/// A stay in which a library is opened. Handlers of the end run from the newest to the oldest, and the library
/// registers its own while it is opened: until then a thread registers ours again and again, so that an exit()
/// meets ours first and waits.
class ForeignOpening {
 public:
  ForeignOpening();
  ForeignOpening(const ForeignOpening&) = delete;
  ForeignOpening& operator=(const ForeignOpening&) = delete;
  ~ForeignOpening();

  [[nodiscard]] bool is_inside() const { return stay_.is_inside(); }

 private:
  ForeignStay stay_;
  std::jthread registers_;
};

/// A thread that has called this waits with its end, and so with an exit() of its own, until no library is
/// being opened. Cheap after the first time.
void end_behind_openings();

/// Whether exit() was called, in this process.
[[nodiscard]] bool program_ends();
/// Whether this is the thread that called it: it must not wait for others.
[[nodiscard]] bool is_ending_thread();
/// Where there is nothing left to do in a program that ends: an error would come to somebody who may end the
/// program otherwise. REQUIRES another thread than that.
[[noreturn]] void wait_for_program_end();

}  // namespace tessera
