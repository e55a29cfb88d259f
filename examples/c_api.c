// The C interface: a layer, its graph, and what happens when something is wrong.
#include <stdio.h>
#include <tessera/capi/tessera.h>

/// Ends the program with the message if a call failed.
static int failed(int code) {
  if (code != TSR_OK) fprintf(stderr, "%s: %s\n", tsr_error_name(code), tsr_last_error());
  return code != TSR_OK;
}

static int run(tsr_tensor x, tsr_tensor w) {
  tsr_tensor product = NULL, y = NULL;
  if (failed(tsr_gemm(x, w, &product))) return 1;
  const tsr_operand input = tsr_operand_tensor(product);
  const tsr_attribute axis = tsr_attribute_integer("axis", -1);
  if (failed(tsr_call("softmax", &input, 1, &axis, 1, &y, 1, NULL))) return 1;

  tsr_graph graph = NULL;
  if (failed(tsr_tensor_graph(y, &graph)) || failed(tsr_graph_print(graph)) || failed(tsr_graph_free(graph)))
    return 1;

  float values[6];
  if (failed(tsr_tensor_get_data(y, values, sizeof values))) return 1;
  printf("first row: %.3f %.3f %.3f\n", values[0], values[1], values[2]);

  tsr_tensor none = NULL;
  if (tsr_gemm(w, w, &none) != TSR_ERROR_SHAPE) return 1;
  printf("as it should: %s\n", tsr_last_error());
  return failed(tsr_tensor_free(product)) || failed(tsr_tensor_free(y));
}

int main(void) {
  const int64_t x_shape[] = {2, 4}, w_shape[] = {4, 3};
  const float weights[12] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  tsr_tensor x = NULL, w = NULL;
  if (failed(tsr_tensor_init(&x, x_shape, 2, TSR_BACKEND_F32_CPU)) || failed(tsr_tensor_fill(x, 0.25f)) ||
      failed(tsr_tensor_init(&w, w_shape, 2, TSR_BACKEND_F32_CPU)) ||
      failed(tsr_tensor_set_data(w, weights, sizeof weights)))
    return 1;
  const int code = run(x, w);
  return failed(tsr_tensor_free(x)) || failed(tsr_tensor_free(w)) || code;
}
