# Writes DATA as a C++ source into OUTPUT, so that the program carries it: one literal per line, since compilers may
# refuse very long ones.
file(STRINGS ${DATA} lines)
list(JOIN lines "\",\n    \"" literals)
file(WRITE ${OUTPUT} "// Written at build time from examples/data/digits.txt; do not edit.
#include \"cli/digits.h\"

namespace {
constexpr const char* lines[] = {
    \"${literals}\",
};
}  // namespace

const std::span<const char* const> tessera::cli::digit_lines = lines;
")
