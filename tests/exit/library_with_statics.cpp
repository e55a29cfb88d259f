// A library with a static of its own that is made when it is asked for. Its end ends the program with status 3.
#include <unistd.h>

namespace {

class Static {
 public:
  Static() : value_(7) {}
  ~Static() { _exit(3); }
  [[nodiscard]] int value() const { return value_; }

 private:
  volatile int value_;
};

}  // namespace

extern "C" int value_of_static() {
  static const Static made;
  return made.value();
}
