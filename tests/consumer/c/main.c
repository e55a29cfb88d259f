#include <stdio.h>
#include <tessera/capi/tessera.h>

int main(void) {
  const int64_t shape[] = {2, 3};
  tsr_tensor a = NULL, b = NULL;
  float values[6] = {0};
  if (tsr_tensor_init(&a, shape, 2, TSR_BACKEND_F32_CPU) != TSR_OK || tsr_tensor_fill(a, 1.5f) != TSR_OK ||
      tsr_add(a, a, &b) != TSR_OK || tsr_tensor_get_data(b, values, sizeof values) != TSR_OK) {
    fprintf(stderr, "%s\n", tsr_last_error());
    return 1;
  }
  printf("tessera %s: %g\n", tsr_version(), (double)values[5]);
  return tsr_tensor_free(a) == TSR_OK && tsr_tensor_free(b) == TSR_OK && values[5] == 3.0f ? 0 : 1;
}
