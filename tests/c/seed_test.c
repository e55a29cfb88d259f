// Every listing of the design for lazy graphs, in the C interface, line by line.
#include <string.h>

#include "check.h"

static int same_id(tsr_node_id a, tsr_node_id b) { return a.high == b.high && a.low == b.low; }

static tsr_tensor filled(const int64_t* shape, int ndim, float value) {
  tsr_tensor out = NULL;
  CHECK_OK(tsr_tensor_init(&out, shape, ndim, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_fill(out, value));
  return out;
}

static void check_shape(tsr_tensor tensor, int ndim, const int64_t* wanted) {
  int64_t shape[TSR_MAX_RANK];
  int rank = -1;
  CHECK_OK(tsr_tensor_shape(tensor, shape, TSR_MAX_RANK, &rank));
  CHECK(rank == ndim);
  for (int i = 0; i < ndim; ++i) CHECK(shape[i] == wanted[i]);
}

// "Operation Enum"
static void test_op_types(void) {
  CHECK(TSR_OP_ADD == 1 && TSR_OP_SUB == 2 && TSR_OP_GEMM == 3);
  CHECK(TSR_OP_TRANSPOSE == 4 && TSR_OP_RESHAPE == 5 && TSR_OP_REDUCE_SUM == 6);
}

// "Error Handling"
static void test_codes(void) {
  CHECK(TSR_OK == 0);
  CHECK(TSR_ERROR_SHAPE == -1400);
  CHECK(TSR_ERROR_INVALID_OPERATION == -1401);
  CHECK(TSR_ERROR_MERGE == -1402);
  CHECK(TSR_ERROR_CYCLE == -1403);
  CHECK(TSR_ERROR_EXECUTION == -1404);
}

// "Creating Input Tensors": usage pattern
static void test_creating_inputs(void) {
  int64_t shape_a[] = {3, 4};
  int64_t shape_b[] = {3, 4};

  tsr_tensor a, b;
  CHECK_OK(tsr_tensor_init(&a, shape_a, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_init(&b, shape_b, 2, TSR_BACKEND_F32_CPU));

  CHECK_OK(tsr_tensor_fill_rand(a));
  CHECK_OK(tsr_tensor_fill_rand(b));

  tsr_tensor c;
  CHECK_OK(tsr_add(a, b, &c));

  float values_a[12], values_b[12], values_c[12];
  CHECK_OK(tsr_tensor_get_data(a, values_a, sizeof values_a));
  CHECK_OK(tsr_tensor_get_data(b, values_b, sizeof values_b));
  CHECK_OK(tsr_tensor_get_data(c, values_c, sizeof values_c));
  for (int i = 0; i < 12; ++i) {
    CHECK(values_a[i] >= 0 && values_a[i] < 1);
    CHECK(values_c[i] == values_a[i] + values_b[i]);
  }
  CHECK(memcmp(values_a, values_b, sizeof values_a) != 0);

  CHECK_OK(tsr_tensor_free(a));
  CHECK_OK(tsr_tensor_free(b));
  CHECK_OK(tsr_tensor_free(c));
}

// "Binary Operations": broadcasting, a - b, batched matrices
static void test_binary_operations(void) {
  tsr_tensor column = filled((int64_t[]){2, 1}, 2, 5.0f), row = filled((int64_t[]){3}, 1, 2.0f), difference;
  CHECK_OK(tsr_sub(column, row, &difference));
  check_shape(difference, 2, (int64_t[]){2, 3});
  float values[6];
  CHECK_OK(tsr_tensor_get_data(difference, values, sizeof values));
  for (int i = 0; i < 6; ++i) CHECK(values[i] == 3.0f);

  // L7: the batch axes broadcast, or the call fails.
  tsr_tensor m = filled((int64_t[]){4, 5}, 2, 1.0f), batch = filled((int64_t[]){3, 5, 6}, 3, 2.0f), product;
  CHECK_OK(tsr_gemm(m, batch, &product));
  check_shape(product, 3, (int64_t[]){3, 4, 6});
  float products[72];
  CHECK_OK(tsr_tensor_get_data(product, products, sizeof products));
  for (int i = 0; i < 72; ++i) CHECK(products[i] == 10.0f);
  tsr_tensor pair = filled((int64_t[]){2, 4, 5}, 3, 1.0f), none = NULL;
  CHECK_ERROR(TSR_ERROR_SHAPE, "matmul", tsr_gemm(pair, batch, &none));
  CHECK(none == NULL);

  // L4: one tensor in both slots.
  tsr_tensor zero;
  CHECK_OK(tsr_sub(m, m, &zero));
  float zeros[20];
  CHECK_OK(tsr_tensor_get_data(zero, zeros, sizeof zeros));
  for (int i = 0; i < 20; ++i) CHECK(zeros[i] == 0.0f);

  tsr_tensor all[] = {column, row, difference, m, batch, product, pair, zero};
  for (int i = 0; i < 8; ++i) CHECK_OK(tsr_tensor_free(all[i]));
}

// "Unary Operations": the examples in the comments
static void test_unary_operations(void) {
  tsr_tensor x = filled((int64_t[]){2, 3, 4, 5}, 4, 1.0f), t;
  CHECK_OK(tsr_transpose(x, (uint32_t[]){1, 0}, 2, &t));
  check_shape(t, 4, (int64_t[]){2, 3, 5, 4});

  tsr_tensor flat, inferred;
  CHECK_OK(tsr_reshape(x, (int64_t[]){120}, 1, &flat));
  check_shape(flat, 1, (int64_t[]){120});
  CHECK_OK(tsr_reshape(x, (int64_t[]){6, -1, 2}, 3, &inferred));
  check_shape(inferred, 3, (int64_t[]){6, 10, 2});

  // L9: a mask is about the last axes; the (1,3,1) of the design needs all three.
  tsr_tensor y = filled((int64_t[]){2, 3, 4}, 3, 1.0f), last_two, all_three, no_axis;
  CHECK_OK(tsr_reduce_sum(y, (uint8_t[]){1, 0}, 2, &last_two));
  check_shape(last_two, 3, (int64_t[]){2, 1, 4});
  CHECK_OK(tsr_reduce_sum(y, (uint8_t[]){1, 0, 1}, 3, &all_three));
  check_shape(all_three, 3, (int64_t[]){1, 3, 1});
  float sums[3];
  CHECK_OK(tsr_tensor_get_data(all_three, sums, sizeof sums));
  for (int i = 0; i < 3; ++i) CHECK(sums[i] == 8.0f);
  CHECK_OK(tsr_reduce_sum(y, (uint8_t[]){0, 0}, 2, &no_axis));
  check_shape(no_axis, 3, (int64_t[]){2, 3, 4});
  float kept[24];
  CHECK_OK(tsr_tensor_get_data(no_axis, kept, sizeof kept));
  for (int i = 0; i < 24; ++i) CHECK(kept[i] == 1.0f);

  tsr_tensor all[] = {x, t, flat, inferred, y, last_two, all_three, no_axis};
  for (int i = 0; i < 8; ++i) CHECK_OK(tsr_tensor_free(all[i]));
}

// L8, and the order of the elements of a transpose
static void test_reshape_of_a_transpose(void) {
  const float data[] = {1, 2, 3, 4, 5, 6}, wanted[] = {1, 4, 2, 5, 3, 6};
  tsr_tensor x, t, flat;
  CHECK_OK(tsr_tensor_init(&x, (int64_t[]){2, 3}, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_set_data(x, data, sizeof data));
  CHECK_OK(tsr_transpose(x, (uint32_t[]){1, 0}, 2, &t));
  CHECK_OK(tsr_reshape(t, (int64_t[]){6}, 1, &flat));
  float values[6];
  CHECK_OK(tsr_tensor_get_data(flat, values, sizeof values));
  CHECK(memcmp(values, wanted, sizeof values) == 0);
  const void* in_place = NULL;
  CHECK_OK(tsr_tensor_data(t, &in_place));
  CHECK(memcmp(in_place, wanted, sizeof wanted) == 0);
  CHECK_OK(tsr_tensor_free(x));
  CHECK_OK(tsr_tensor_free(t));
  CHECK_OK(tsr_tensor_free(flat));
}

// "Materialization": usage pattern
static void test_materialization(void) {
  int64_t shape_a[] = {3, 4}, shape_b[] = {3, 4};
  tsr_tensor a, b;
  CHECK_OK(tsr_tensor_init(&a, shape_a, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_init(&b, shape_b, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_fill_rand(a));
  CHECK_OK(tsr_tensor_fill_rand(b));

  tsr_tensor c;
  CHECK_OK(tsr_add(a, b, &c));

  CHECK_OK(tsr_execute(c));

  // L5: c serves further operations without being computed again, and does not move.
  const void *before, *after;
  CHECK_OK(tsr_tensor_data(c, &before));
  tsr_tensor d;
  CHECK_OK(tsr_add(c, b, &d));
  CHECK_OK(tsr_execute(d));
  CHECK_OK(tsr_execute(c));
  CHECK_OK(tsr_tensor_data(c, &after));
  CHECK(before == after);

  CHECK_OK(tsr_tensor_free(a));
  CHECK_OK(tsr_tensor_free(b));
  CHECK_OK(tsr_tensor_free(c));
  CHECK_OK(tsr_tensor_free(d));
}

static tsr_node node_of(tsr_graph graph, tsr_tensor tensor) {
  tsr_node_id id;
  tsr_node node;
  CHECK_OK(tsr_tensor_node_id(tensor, &id));
  CHECK_OK(tsr_graph_get_node(graph, id, &node));
  CHECK(same_id(node.id, id));
  return node;
}

// "Graph Management and Introspection", with the graphs of "Graph Merging Strategy"
static void test_introspection(void) {
  tsr_tensor input_a = filled((int64_t[]){2, 3}, 2, 1.0f), input_b = filled((int64_t[]){3, 2}, 2, -1.0f);
  tsr_tensor node_1, node_2;
  CHECK_OK(tsr_transpose(input_a, (uint32_t[]){1, 0}, 2, &node_1));
  const tsr_operand relu_input = tsr_operand_tensor(input_b);
  CHECK_OK(tsr_call("relu", &relu_input, 1, NULL, 0, &node_2, 1, NULL));

  tsr_graph graph1, graph2;
  CHECK_OK(tsr_tensor_graph(node_1, &graph1));
  CHECK_OK(tsr_tensor_graph(node_2, &graph2));
  tsr_node_id ids[8], id_2;
  int count = 0;
  CHECK_OK(tsr_graph_topological_sort(graph1, ids, 8, &count));
  CHECK(count == 2);
  CHECK_OK(tsr_tensor_node_id(node_2, &id_2));
  tsr_node node;
  CHECK_ERROR(TSR_ERROR_NOT_FOUND, "no node", tsr_graph_get_node(graph1, id_2, &node));

  tsr_tensor sum;
  CHECK_OK(tsr_add(node_1, node_2, &sum));
  CHECK_OK(tsr_graph_merge(graph1, graph2));
  CHECK_OK(tsr_graph_merge(graph1, graph2));
  // Both handles name the merged graph, and ids survived.
  CHECK_OK(tsr_graph_topological_sort(graph1, ids, 8, &count));
  CHECK(count == 4);
  CHECK_OK(tsr_graph_topological_sort(graph2, ids, 8, &count));
  CHECK(count == 4);
  CHECK_OK(tsr_graph_get_node(graph1, id_2, &node));
  CHECK(node.op_type == TSR_OP_OTHER && strcmp(node.op_name, "relu") == 0);
  CHECK(node.ndim == 2 && node.shape[0] == 3 && node.shape[1] == 2 && node.dtype == TSR_F32);
  CHECK(!node.is_materialized && node.input_count == 1 && node.device[0] != '\0');

  tsr_graph whole;
  CHECK_OK(tsr_tensor_graph(sum, &whole));
  CHECK_OK(tsr_graph_topological_sort(whole, NULL, 0, &count));
  CHECK(count == 5);
  CHECK(node_of(whole, sum).op_type == TSR_OP_ADD);
  CHECK(node_of(whole, input_a).op_type == TSR_OP_LEAF && node_of(whole, input_a).is_materialized);

  // The true number of inputs, also when there is no room, in the order of the slots.
  tsr_node_id sum_id, inputs[2];
  CHECK_OK(tsr_tensor_node_id(sum, &sum_id));
  CHECK_OK(tsr_graph_get_inputs(whole, sum_id, inputs, 1, &count));
  CHECK(count == 2);
  CHECK_OK(tsr_graph_get_inputs(whole, sum_id, inputs, 2, &count));
  CHECK(same_id(inputs[0], node_of(whole, node_1).id) && same_id(inputs[1], id_2));

  int64_t permutation[2];
  CHECK_OK(tsr_node_get_integers(whole, inputs[0], "permutation", permutation, 2, &count));
  CHECK(count == 2 && permutation[0] == 1 && permutation[1] == 0);

  // A handle taken before shows the whole graph after; freeing graphs harms no tensor.
  CHECK_OK(tsr_execute(sum));
  CHECK_OK(tsr_graph_topological_sort(whole, NULL, 0, &count));
  CHECK(count == 5);
  CHECK(node_of(whole, sum).is_materialized);
  CHECK_OK(tsr_graph_free(graph1));
  CHECK_OK(tsr_graph_free(graph2));
  CHECK_OK(tsr_graph_free(whole));
  CHECK_ERROR(TSR_ERROR_HANDLE, "freed", tsr_graph_free(whole));
  float values[6];
  CHECK_OK(tsr_tensor_get_data(sum, values, sizeof values));
  for (int i = 0; i < 6; ++i) CHECK(values[i] == 1.0f);

  tsr_tensor all[] = {input_a, input_b, node_1, node_2, sum};
  for (int i = 0; i < 5; ++i) CHECK_OK(tsr_tensor_free(all[i]));
}

// "Operation Metadata": the attributes of each op by name and type
static void test_metadata(void) {
  tsr_tensor x = filled((int64_t[]){2, 3, 4}, 3, 1.0f), reshaped, reduced, softmax, leaky;
  CHECK_OK(tsr_reshape(x, (int64_t[]){6, -1}, 2, &reshaped));
  CHECK_OK(tsr_reduce_sum(x, (uint8_t[]){1, 0, 1}, 3, &reduced));
  const tsr_operand input = tsr_operand_tensor(x);
  const tsr_attribute axis = tsr_attribute_integer("axis", 1);
  CHECK_OK(tsr_call("softmax", &input, 1, &axis, 1, &softmax, 1, NULL));
  const tsr_operand with_scalar[] = {tsr_operand_tensor(x), tsr_operand_real(0.25)};
  CHECK_OK(tsr_call("mul", with_scalar, 2, NULL, 0, &leaky, 1, NULL));

  tsr_tensor tensors[] = {reshaped, reduced, softmax, leaky};
  tsr_graph graphs[4];
  tsr_node_id ids[4];
  for (int i = 0; i < 4; ++i) {
    CHECK_OK(tsr_tensor_graph(tensors[i], &graphs[i]));
    CHECK_OK(tsr_tensor_node_id(tensors[i], &ids[i]));
  }
  int64_t sizes[3];
  int count = 0, flag = 0;
  CHECK_OK(tsr_node_get_integers(graphs[0], ids[0], "shape", sizes, 3, &count));
  CHECK(count == 2 && sizes[0] == 6 && sizes[1] == -1);
  CHECK_OK(tsr_node_get_integers(graphs[1], ids[1], "axes", sizes, 1, &count));
  CHECK(count == 2 && sizes[0] == 0);
  CHECK_OK(tsr_node_get_bool(graphs[1], ids[1], "keepdims", &flag));
  CHECK(flag == 1);
  int64_t number = 0;
  CHECK_OK(tsr_node_get_integer(graphs[2], ids[2], "axis", &number));
  CHECK(number == 1);
  CHECK_ERROR(TSR_ERROR_INVALID_OPERATION, "an integer", tsr_node_get_bool(graphs[2], ids[2], "axis", &flag));
  CHECK_ERROR(TSR_ERROR_NOT_FOUND, "colour", tsr_node_get_bool(graphs[2], ids[2], "colour", &flag));
  double real = 0;
  CHECK_OK(tsr_node_get_real(graphs[3], ids[3], "b", &real));
  CHECK(real == 0.25);
  tsr_node_id inputs[2];
  CHECK_OK(tsr_graph_get_inputs(graphs[3], ids[3], inputs, 2, &count));
  CHECK(count == 2 && inputs[1].high == 0 && inputs[1].low == 0);

  for (int i = 0; i < 4; ++i) {
    CHECK_OK(tsr_graph_free(graphs[i]));
    CHECK_OK(tsr_tensor_free(tensors[i]));
  }
  CHECK_OK(tsr_tensor_free(x));
}

// "Usage Example", with "Graph Visualization and Debugging"
static void test_usage_example(const char* dot_file) {
  int64_t shape_a[] = {3, 4};
  int64_t shape_b[] = {3, 4};

  tsr_tensor a, b;
  CHECK_OK(tsr_tensor_init(&a, shape_a, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_init(&b, shape_b, 2, TSR_BACKEND_F32_CPU));

  CHECK_OK(tsr_tensor_fill_rand(a));
  CHECK_OK(tsr_tensor_fill_rand(b));

  tsr_tensor c;
  CHECK_OK(tsr_add(a, b, &c));  // c = a + b

  tsr_tensor d;
  CHECK_OK(tsr_transpose(c, (uint32_t[]){1, 0}, 2, &d));  // d = c^T

  tsr_graph graph;
  CHECK_OK(tsr_tensor_graph(d, &graph));
  CHECK_OK(tsr_graph_to_dot(graph, dot_file));
  CHECK_OK(tsr_graph_print(graph));
  tsr_node nodes[4];
  int count = 0;
  CHECK_OK(tsr_graph_get_nodes(graph, nodes, 4, &count));
  CHECK(count == 4 && nodes[3].op_type == TSR_OP_TRANSPOSE);
  CHECK(nodes[3].strides[0] == 3 && nodes[3].strides[1] == 1);
  CHECK_OK(tsr_node_print(&nodes[3]));

  CHECK_OK(tsr_execute(d));

  // A transpose is a view of its input.
  CHECK_OK(tsr_graph_get_nodes(graph, nodes, 4, &count));
  CHECK(nodes[3].strides[0] == 1 && nodes[3].strides[1] == 4);
  float values_c[12], values_d[12];
  CHECK_OK(tsr_tensor_get_data(c, values_c, sizeof values_c));
  CHECK_OK(tsr_tensor_get_data(d, values_d, sizeof values_d));
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 4; ++k) CHECK(values_c[i * 4 + k] == values_d[k * 3 + i]);

  CHECK_OK(tsr_graph_free(graph));
  CHECK_OK(tsr_tensor_free(a));
  CHECK_OK(tsr_tensor_free(b));
  CHECK_OK(tsr_tensor_free(c));
  CHECK_OK(tsr_tensor_free(d));

  char line[64];
  FILE* file = fopen(dot_file, "r");
  CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
  CHECK(strncmp(line, "digraph", 7) == 0);
  fclose(file);
  remove(dot_file);
}

// L1, L3: merging twice, and writing to an input after it was used
static void test_writing_after_use(void) {
  tsr_tensor a = filled((int64_t[]){2}, 1, 1.0f), b = filled((int64_t[]){2}, 1, 10.0f), c, d, e;
  CHECK_OK(tsr_add(a, b, &c));
  CHECK_OK(tsr_add(c, b, &d));
  CHECK_OK(tsr_tensor_fill(a, 2.0f));
  CHECK_OK(tsr_add(a, b, &e));
  const tsr_tensor asked[] = {c, d, e};
  CHECK_OK(tsr_execute_all(asked, 3));
  const float wanted[] = {11.0f, 21.0f, 12.0f};
  for (int i = 0; i < 3; ++i) {
    float values[2];
    CHECK_OK(tsr_tensor_get_data(asked[i], values, sizeof values));
    CHECK(values[0] == wanted[i] && values[1] == wanted[i]);
    CHECK_OK(tsr_tensor_free(asked[i]));
  }
  CHECK_OK(tsr_tensor_free(a));
  CHECK_OK(tsr_tensor_free(b));
}

// L2: a long sum; freeing every step on the way
static void test_long_chain(void) {
  tsr_tensor x = filled((int64_t[]){4}, 1, 1.0f), sum = filled((int64_t[]){4}, 1, 0.0f);
  for (int i = 0; i < 100000; ++i) {
    tsr_tensor next;
    CHECK_OK(tsr_add(x, sum, &next));
    CHECK_OK(tsr_tensor_free(sum));
    sum = next;
  }
  float values[4];
  CHECK_OK(tsr_tensor_get_data(sum, values, sizeof values));
  CHECK(values[0] == 100000.0f && values[3] == 100000.0f);
  CHECK_OK(tsr_tensor_free(sum));
  CHECK_OK(tsr_tensor_free(x));
}

// L10: no elements, no axes
static void test_sizes(void) {
  tsr_tensor empty, more, scalar;
  CHECK_OK(tsr_tensor_init(&empty, (int64_t[]){0, 3}, 2, TSR_BACKEND_F32_CPU));
  CHECK_OK(tsr_tensor_fill(empty, 1.0f));
  CHECK_OK(tsr_add(empty, empty, &more));
  CHECK_OK(tsr_execute(more));
  CHECK_OK(tsr_tensor_get_data(more, NULL, 0));
  CHECK_OK(tsr_tensor_init(&scalar, NULL, 0, TSR_BACKEND_F64_CPU));
  CHECK_OK(tsr_tensor_fill(scalar, 4.0f));
  double value = 0;
  CHECK_OK(tsr_tensor_get_data(scalar, &value, sizeof value));
  CHECK(value == 4.0);
  CHECK_OK(tsr_tensor_free(empty));
  CHECK_OK(tsr_tensor_free(more));
  CHECK_OK(tsr_tensor_free(scalar));
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  test_op_types();
  test_codes();
  test_creating_inputs();
  test_binary_operations();
  test_unary_operations();
  test_reshape_of_a_transpose();
  test_materialization();
  test_introspection();
  test_metadata();
  test_usage_example(argv[1]);
  test_writing_after_use();
  test_long_chain();
  test_sizes();
  puts("all is so");
  return 0;
}
