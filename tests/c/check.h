// Assertions for tests in C: they print what failed and end the program.
#ifndef TESSERA_TESTS_C_CHECK_H
#define TESSERA_TESTS_C_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "tessera/capi/tessera.h"

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              tsr_last_error());                                                              \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

#define CHECK_OK(call) CHECK((call) == TSR_OK)

/// The code, and a word of the message.
#define CHECK_ERROR(code, word, call)              \
  do {                                             \
    CHECK((call) == (code));                       \
    CHECK(strstr(tsr_last_error(), word) != NULL); \
  } while (0)

#endif
