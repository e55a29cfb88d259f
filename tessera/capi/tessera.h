// Tessera for C11: lazy tensors behind opaque handles.
//
//   int64_t shape[] = {2, 3};
//   tsr_tensor a, b, c;
//   tsr_tensor_init(&a, shape, 2, TSR_BACKEND_F32_CPU);
//   tsr_tensor_init(&b, shape, 2, TSR_BACKEND_F32_CPU);
//   tsr_tensor_fill(a, 1.0f);
//   tsr_tensor_fill_rand(b);
//   tsr_add(a, b, &c);   // records, computes nothing
//   tsr_execute(c);      // computes
//
// Conventions:
//
// 1. Who frees. Every function that writes a handle through an `out` pointer makes a new one; the caller
//    frees it once, with the function for its type. `out` is written on success only and never read: freeing
//    what was there before is up to the caller. Nothing else is ever handed over: arrays and texts that go in
//    are copied before the call returns, arrays that come out are filled in the caller's memory.
// 2. Lives are independent. Freeing an input never harms what was recorded from it, freeing a graph never
//    harms a tensor, freeing an engine never harms its tensors.
// 3. Handles are checked. A handle that was freed, one of another type and a pointer that is no handle are
//    TSR_ERROR_HANDLE, a null one TSR_ERROR_NULL: no handle is ever followed as a pointer.
// 4. Errors. Every function returns TSR_OK or a negative code unless it says otherwise, and what fails has
//    changed nothing. tsr_last_error() has the whole message. No exception leaves a function.
//    tsr_at(__FILE__, __LINE__) before a call makes its message, and those of errors that show later in what
//    it recorded, begin with that line.
// 5. Null pointers are TSR_ERROR_NULL, except where "may be null" is written, and for an array of length 0.
//    Negative lengths are TSR_ERROR_INVALID_OPERATION.
// 6. Threads. Any function may be called from any thread, on the same handles too. A handle must not be freed
//    or written to (fill, set) in one thread while another relies on its value. The last error is each
//    thread's own.
// 7. Values. A tensor is a value: writing to an input changes what is recorded after, never what was recorded
//    before. Nothing is computed before tsr_execute or a function that reads elements.
// 8. Axes. A permutation and a mask of n entries are about the last n axes.
// 9. Sizes are 64 bits wide, ranks go up to TSR_MAX_RANK. Elements lie row by row.
// 10. Arrays that are too short. Functions with `max` and a count fill what fits, report the true count and
//     succeed.
#ifndef TESSERA_CAPI_TESSERA_H
#define TESSERA_CAPI_TESSERA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TSR_API __attribute__((visibility("default")))
#else
#define TSR_API
#endif

#ifdef __cplusplus
#define TSR_NOEXCEPT noexcept
#define TSR_ENUM_BASE : int  // C callers may pass any number: to C++ it must be a value of the type
extern "C" {
#else
#define TSR_NOEXCEPT
#define TSR_ENUM_BASE
#endif

#define TSR_MAX_RANK 16
#define TSR_NAME_SIZE 32

// ---- errors

enum {
  TSR_OK = 0,
  TSR_ERROR_SHAPE = -1400,              ///< shapes, dtypes or axes do not agree
  TSR_ERROR_INVALID_OPERATION = -1401,  ///< the op cannot be done here, or an argument is not allowed
  TSR_ERROR_MERGE = -1402,              ///< tensors or graphs of two engines meet
  TSR_ERROR_CYCLE = -1403,              ///< a graph description has a cycle: it has no topological order
  TSR_ERROR_EXECUTION = -1404,          ///< computing failed; all values are as they were
  TSR_ERROR_NULL = -1405,               ///< a pointer or a handle is null
  TSR_ERROR_HANDLE = -1406,             ///< a handle was freed, or is none of this type
  TSR_ERROR_RANK = -1407,               ///< a permutation or a mask is about more axes than there are
  TSR_ERROR_DEVICE = -1408,             ///< there is no such device
  TSR_ERROR_MEMORY = -1409,             ///< memory could not be had, or the limit was hit
  TSR_ERROR_NOT_FOUND = -1410,          ///< a node or an attribute does not exist
  TSR_ERROR_IO = -1411,                 ///< a file could not be read or written
  TSR_ERROR_INTERNAL = -1412,           ///< a fault of Tessera itself
  TSR_ERROR_PARSE = -1413               ///< a text or a file is damaged, or not of its format
};

/// The message of the last call of this thread that failed; empty if none did. Valid until the next call of
/// this thread that fails. Never null.
TSR_API const char* tsr_last_error(void) TSR_NOEXCEPT;

/// Says where the next call of this thread stands in the caller's program; every other call stands nowhere.
/// `file` is copied; null means nowhere. Returns TSR_OK, or TSR_ERROR_MEMORY.
TSR_API int tsr_at(const char* file, int line) TSR_NOEXCEPT;

/// "TSR_ERROR_SHAPE" and so on; "unknown" for other numbers. Never null.
TSR_API const char* tsr_error_name(int code) TSR_NOEXCEPT;

/// "0.1.0"
TSR_API const char* tsr_version(void) TSR_NOEXCEPT;

// ---- types

typedef struct tsr_engine_object* tsr_engine;  ///< owns all state; tensors of two engines do not mix
typedef struct tsr_tensor_object* tsr_tensor;  ///< a value, computed or not
typedef struct tsr_graph_object* tsr_graph;    ///< what was recorded

typedef enum tsr_dtype TSR_ENUM_BASE {
  TSR_F32,
  TSR_F64,
  TSR_F16,
  TSR_BF16,
  TSR_I64,
  TSR_I32,
  TSR_I16,
  TSR_I8,
  TSR_U8,
  TSR_U16,
  TSR_U32,
  TSR_U64,
  TSR_BOOL
} tsr_dtype;

/// Element type and device in one.
typedef enum tsr_backend TSR_ENUM_BASE { TSR_BACKEND_F32_CPU = 1, TSR_BACKEND_F64_CPU = 2 } tsr_backend;

/// Where and of what a tensor is made.
typedef struct tsr_options {
  tsr_engine engine;   ///< null: the default engine
  const char* device;  ///< null: the engine's
  tsr_dtype dtype;
} tsr_options;

/// Names a node for as long as the process lives, through all merges. Zero is no node.
typedef struct tsr_node_id {
  uint64_t high;
  uint64_t low;
} tsr_node_id;

typedef enum tsr_op_type TSR_ENUM_BASE {
  TSR_OP_LEAF = 0,  ///< an input: no op made it
  TSR_OP_ADD = 1,
  TSR_OP_SUB = 2,
  TSR_OP_GEMM = 3,
  TSR_OP_TRANSPOSE = 4,
  TSR_OP_RESHAPE = 5,
  TSR_OP_REDUCE_SUM = 6,
  TSR_OP_OTHER = 7  ///< `op_name` says which
} tsr_op_type;

/// What is known of one node. Its attributes are asked for by name (tsr_node_get_...).
typedef struct tsr_node {
  tsr_node_id id;
  tsr_op_type op_type;
  char op_name[TSR_NAME_SIZE];  ///< of the catalogue; "leaf" for an input; "result" for a further result
  tsr_dtype dtype;
  int ndim;
  int64_t shape[TSR_MAX_RANK];
  int64_t strides[TSR_MAX_RANK];  ///< in elements; row by row as long as the value is not computed
  char device[TSR_NAME_SIZE];
  int is_materialized;  ///< 1: the value is stored
  int input_count;
} tsr_node;

// ---- engines

/// `memory_limit` in bytes, 0 for none. `seed` is that of random tensors.
TSR_API int tsr_engine_create(uint64_t memory_limit, uint64_t seed, tsr_engine* out) TSR_NOEXCEPT;
/// The same on a device: "cpu", "cpu:precise", "cpu:threads=4", "cuda:0", "reference". Null: what
/// TESSERA_DEVICE names, else the CPU, as above.
TSR_API int tsr_engine_create_on(const char* device, uint64_t memory_limit, uint64_t seed,
                                 tsr_engine* out) TSR_NOEXCEPT;
TSR_API int tsr_engine_free(tsr_engine engine) TSR_NOEXCEPT;

// ---- tensors

/// An input of zeros in the default engine.
TSR_API int tsr_tensor_init(tsr_tensor* out, const int64_t* shape, int ndim,
                            tsr_backend backend) TSR_NOEXCEPT;
/// The same with options; `options` may be null (the default engine, f32).
TSR_API int tsr_tensor_create(tsr_tensor* out, const int64_t* shape, int ndim,
                              const tsr_options* options) TSR_NOEXCEPT;
/// An input in memory of the caller, which is not copied and must stay as it is until `deleter(context)` is
/// called, once, when nobody uses it any more. `deleter` may be null. If this fails, it is never called.
TSR_API int tsr_tensor_from_memory(tsr_tensor* out, void* data, const int64_t* shape, int ndim,
                                   const tsr_options* options, void (*deleter)(void* context),
                                   void* context) TSR_NOEXCEPT;
/// Another handle to the same value.
TSR_API int tsr_tensor_copy(tsr_tensor tensor, tsr_tensor* out) TSR_NOEXCEPT;
TSR_API int tsr_tensor_free(tsr_tensor tensor) TSR_NOEXCEPT;

/// Writing to an input. A tensor that an op computes is TSR_ERROR_INVALID_OPERATION.
TSR_API int tsr_tensor_fill(tsr_tensor tensor, float value) TSR_NOEXCEPT;
/// Uniform in [0, 1). Floating dtypes only.
TSR_API int tsr_tensor_fill_rand(tsr_tensor tensor) TSR_NOEXCEPT;
/// `bytes` must be the size of all elements, else TSR_ERROR_SHAPE.
TSR_API int tsr_tensor_set_data(tsr_tensor tensor, const void* data, size_t bytes) TSR_NOEXCEPT;

/// Copies all elements out; computes. `bytes` must be the size of all elements, else TSR_ERROR_SHAPE.
TSR_API int tsr_tensor_get_data(tsr_tensor tensor, void* out, size_t bytes) TSR_NOEXCEPT;
/// The elements in place; computes. Valid until the handle is freed or written to.
TSR_API int tsr_tensor_data(tsr_tensor tensor, const void** out) TSR_NOEXCEPT;

/// Rank, and the sizes of as many axes as fit. `shape` may be null if `max` is 0.
TSR_API int tsr_tensor_shape(tsr_tensor tensor, int64_t* shape, int max, int* out_ndim) TSR_NOEXCEPT;
TSR_API int tsr_tensor_dtype(tsr_tensor tensor, tsr_dtype* out) TSR_NOEXCEPT;
/// The node that makes the value.
TSR_API int tsr_tensor_node_id(tsr_tensor tensor, tsr_node_id* out) TSR_NOEXCEPT;
/// What was recorded for the value. As long as the graph lives, executing does not forget it.
TSR_API int tsr_tensor_graph(tsr_tensor tensor, tsr_graph* out) TSR_NOEXCEPT;

// ---- ops: each records one call and infers its shape

TSR_API int tsr_add(tsr_tensor a, tsr_tensor b, tsr_tensor* out) TSR_NOEXCEPT;  ///< NumPy's broadcasting
TSR_API int tsr_sub(tsr_tensor a, tsr_tensor b, tsr_tensor* out) TSR_NOEXCEPT;
/// (..., m, k) by (..., k, n); the axes before the last two broadcast.
TSR_API int tsr_gemm(tsr_tensor a, tsr_tensor b, tsr_tensor* out) TSR_NOEXCEPT;
/// Permutes the last `ndim` axes: (2,3,4,5) with {1,0} is (2,3,5,4).
TSR_API int tsr_transpose(tsr_tensor tensor, const uint32_t* perm, int ndim, tsr_tensor* out) TSR_NOEXCEPT;
/// One size may be -1: it is inferred.
TSR_API int tsr_reshape(tsr_tensor tensor, const int64_t* shape, int ndim, tsr_tensor* out) TSR_NOEXCEPT;
/// Sums the axes whose entry in the mask is not 0; they stay with size 1. The mask is about the last `ndim`
/// axes: {1,0} on (2,3,4) gives (2,1,4).
TSR_API int tsr_reduce_sum(tsr_tensor tensor, const uint8_t* mask, int ndim, tsr_tensor* out) TSR_NOEXCEPT;

/// Computes the value and stores it. What is stored is never computed again.
TSR_API int tsr_execute(tsr_tensor tensor) TSR_NOEXCEPT;
/// The same for several at once.
TSR_API int tsr_execute_all(const tsr_tensor* tensors, int count) TSR_NOEXCEPT;

// ---- every op of the catalogue

typedef enum tsr_operand_kind TSR_ENUM_BASE {
  TSR_OPERAND_TENSOR = 1,
  TSR_OPERAND_REAL = 2,
  TSR_OPERAND_INTEGER = 3,
  TSR_OPERAND_RESULT = 4  ///< of another call of a description
} tsr_operand_kind;

/// What an op takes: a tensor, or a number where the op has a scalar or a tensor to broadcast to.
typedef struct tsr_operand {
  tsr_operand_kind kind;
  union {
    tsr_tensor tensor;
    double real;
    int64_t integer;
    struct {
      int32_t call;    ///< its index in the description
      int32_t number;  ///< which of its results
    } result;
  } value;
} tsr_operand;

typedef enum tsr_attribute_kind TSR_ENUM_BASE {
  TSR_ATTRIBUTE_BOOL = 1,      ///< value.integer, 0 or 1
  TSR_ATTRIBUTE_INTEGER = 2,   ///< value.integer
  TSR_ATTRIBUTE_REAL = 3,      ///< value.real
  TSR_ATTRIBUTE_TEXT = 4,      ///< value.text
  TSR_ATTRIBUTE_DTYPE = 5,     ///< value.integer, a tsr_dtype
  TSR_ATTRIBUTE_INTEGERS = 6,  ///< value.integers and count; also for shapes
  TSR_ATTRIBUTE_REALS = 7      ///< value.reals and count
} tsr_attribute_kind;

typedef struct tsr_attribute {
  const char* name;
  tsr_attribute_kind kind;
  int count;  ///< of a list
  union {
    int64_t integer;
    double real;
    const char* text;
    const int64_t* integers;
    const double* reals;
  } value;
} tsr_attribute;

/// Records any op by its name in the catalogue (docs/ops.md). `out` receives as many results as fit; the
/// others are dropped. `out_count` may be null.
TSR_API int tsr_call(const char* op, const tsr_operand* inputs, int input_count,
                     const tsr_attribute* attributes, int attribute_count, tsr_tensor* out, int max,
                     int* out_count) TSR_NOEXCEPT;
/// The same with options, for ops that no tensor is given to. `options` may be null.
TSR_API int tsr_call_in(const tsr_options* options, const char* op, const tsr_operand* inputs,
                        int input_count, const tsr_attribute* attributes, int attribute_count,
                        tsr_tensor* out, int max, int* out_count) TSR_NOEXCEPT;

/// One call of a graph description.
typedef struct tsr_call_description {
  const char* op;
  const tsr_operand* inputs;
  int input_count;
  const tsr_attribute* attributes;
  int attribute_count;
} tsr_call_description;

/// Records a whole graph. Calls stand in any order and name each other by their index; one tensor is made per
/// entry of `results`. Calls that need each other in a circle are TSR_ERROR_CYCLE.
TSR_API int tsr_describe(const tsr_call_description* calls, int call_count, const tsr_operand* results,
                         int result_count, tsr_tensor* out) TSR_NOEXCEPT;

static inline tsr_operand tsr_operand_tensor(tsr_tensor tensor) {
  tsr_operand out;
  out.kind = TSR_OPERAND_TENSOR;
  out.value.tensor = tensor;
  return out;
}
static inline tsr_operand tsr_operand_real(double value) {
  tsr_operand out;
  out.kind = TSR_OPERAND_REAL;
  out.value.real = value;
  return out;
}
static inline tsr_operand tsr_operand_integer(int64_t value) {
  tsr_operand out;
  out.kind = TSR_OPERAND_INTEGER;
  out.value.integer = value;
  return out;
}
static inline tsr_operand tsr_operand_result(int32_t call, int32_t number) {
  tsr_operand out;
  out.kind = TSR_OPERAND_RESULT;
  out.value.result.call = call;
  out.value.result.number = number;
  return out;
}

static inline tsr_attribute tsr_attribute_of_kind(const char* name, tsr_attribute_kind kind, int count) {
  tsr_attribute out;
  out.name = name;
  out.kind = kind;
  out.count = count;
  out.value.integer = 0;
  return out;
}
static inline tsr_attribute tsr_attribute_bool(const char* name, int value) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_BOOL, 0);
  out.value.integer = value != 0;
  return out;
}
static inline tsr_attribute tsr_attribute_integer(const char* name, int64_t value) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_INTEGER, 0);
  out.value.integer = value;
  return out;
}
static inline tsr_attribute tsr_attribute_real(const char* name, double value) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_REAL, 0);
  out.value.real = value;
  return out;
}
static inline tsr_attribute tsr_attribute_text(const char* name, const char* value) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_TEXT, 0);
  out.value.text = value;
  return out;
}
static inline tsr_attribute tsr_attribute_dtype(const char* name, tsr_dtype value) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_DTYPE, 0);
  out.value.integer = (int64_t)value;
  return out;
}
static inline tsr_attribute tsr_attribute_integers(const char* name, const int64_t* values, int count) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_INTEGERS, count);
  out.value.integers = values;
  return out;
}
static inline tsr_attribute tsr_attribute_reals(const char* name, const double* values, int count) {
  tsr_attribute out = tsr_attribute_of_kind(name, TSR_ATTRIBUTE_REALS, count);
  out.value.reals = values;
  return out;
}

// ---- graphs

/// Joins two graphs; both handles name the joined one. Joining twice changes nothing.
TSR_API int tsr_graph_merge(tsr_graph graph1, tsr_graph graph2) TSR_NOEXCEPT;
TSR_API int tsr_graph_free(tsr_graph graph) TSR_NOEXCEPT;

TSR_API int tsr_graph_get_node(tsr_graph graph, tsr_node_id id, tsr_node* out) TSR_NOEXCEPT;
/// All nodes, each after its inputs.
TSR_API int tsr_graph_get_nodes(tsr_graph graph, tsr_node* out, int max, int* out_count) TSR_NOEXCEPT;
/// The nodes in the slots of a node; a number given instead of a tensor has the id zero.
TSR_API int tsr_graph_get_inputs(tsr_graph graph, tsr_node_id id, tsr_node_id* out, int max,
                                 int* out_count) TSR_NOEXCEPT;
/// Each node after its inputs (Kahn's algorithm, O(nodes + edges)).
TSR_API int tsr_graph_topological_sort(tsr_graph graph, tsr_node_id* out, int max,
                                       int* out_count) TSR_NOEXCEPT;

/// Attributes of a node by name; a number that was given as an operand has the name of the op's input. One of
/// another type is TSR_ERROR_INVALID_OPERATION, an absent one TSR_ERROR_NOT_FOUND.
TSR_API int tsr_node_get_bool(tsr_graph graph, tsr_node_id id, const char* name, int* out) TSR_NOEXCEPT;
TSR_API int tsr_node_get_integer(tsr_graph graph, tsr_node_id id, const char* name,
                                 int64_t* out) TSR_NOEXCEPT;
TSR_API int tsr_node_get_real(tsr_graph graph, tsr_node_id id, const char* name, double* out) TSR_NOEXCEPT;
TSR_API int tsr_node_get_dtype(tsr_graph graph, tsr_node_id id, const char* name,
                               tsr_dtype* out) TSR_NOEXCEPT;
/// At most `size` bytes with the closing zero; `out_length` is the true length without it.
TSR_API int tsr_node_get_text(tsr_graph graph, tsr_node_id id, const char* name, char* out, size_t size,
                              size_t* out_length) TSR_NOEXCEPT;
/// Lists of integers, and shapes.
TSR_API int tsr_node_get_integers(tsr_graph graph, tsr_node_id id, const char* name, int64_t* out, int max,
                                  int* out_count) TSR_NOEXCEPT;
TSR_API int tsr_node_get_reals(tsr_graph graph, tsr_node_id id, const char* name, double* out, int max,
                               int* out_count) TSR_NOEXCEPT;

/// Writes Graphviz to a file; `dot -Tsvg FILE` draws it.
TSR_API int tsr_graph_to_dot(tsr_graph graph, const char* filename) TSR_NOEXCEPT;
/// A line per node on the standard output.
TSR_API int tsr_graph_print(tsr_graph graph) TSR_NOEXCEPT;
TSR_API int tsr_node_print(const tsr_node* node) TSR_NOEXCEPT;

// ---- models

typedef struct tsr_model_object* tsr_model;  ///< a model from a file, as a function on tensors

#define TSR_MODEL_NAME_SIZE 256

/// An input or an output of a model as its file declares it.
typedef struct tsr_model_value {
  char name[TSR_MODEL_NAME_SIZE];  ///< cut off if it is longer
  int dtype;                       ///< a tsr_dtype; -1: not declared
  int ndim;                        ///< -1: not declared
  int64_t shape[TSR_MAX_RANK];     ///< -1: any size
} tsr_model_value;

/// Reads an ONNX model. `engine` may be null: the default engine. Weights stay in the file, mapped, where its
/// layout allows it: do not change it while the model or a tensor made by it is alive.
TSR_API int tsr_model_load_onnx(const char* path, tsr_engine engine, tsr_model* out) TSR_NOEXCEPT;
TSR_API int tsr_model_free(tsr_model model) TSR_NOEXCEPT;

/// The inputs that a caller gives, and the outputs, in order.
TSR_API int tsr_model_get_inputs(tsr_model model, tsr_model_value* out, int max, int* out_count) TSR_NOEXCEPT;
TSR_API int tsr_model_get_outputs(tsr_model model, tsr_model_value* out, int max,
                                  int* out_count) TSR_NOEXCEPT;

/// Computes at once, by plans that the first call makes for all sizes; one new handle per output. Both counts
/// must be those of the model. Sizes may differ from call to call, and several threads may call one model.
TSR_API int tsr_model_call(tsr_model model, const tsr_tensor* inputs, int input_count, tsr_tensor* outputs,
                           int output_count) TSR_NOEXCEPT;

// ---- plans

typedef struct tsr_plan_object* tsr_plan;  ///< a compiled program from a file

/// Reads a plan that `tessera compile -o` or ts::save_plan wrote. `engine` may be null: the default engine,
/// whose device runs it. Do not change the file while the plan is alive.
TSR_API int tsr_plan_load(const char* path, tsr_engine engine, tsr_plan* out) TSR_NOEXCEPT;
TSR_API int tsr_plan_free(tsr_plan plan) TSR_NOEXCEPT;

/// Its inputs and outputs, in order.
TSR_API int tsr_plan_get_inputs(tsr_plan plan, tsr_model_value* out, int max, int* out_count) TSR_NOEXCEPT;
TSR_API int tsr_plan_get_outputs(tsr_plan plan, tsr_model_value* out, int max, int* out_count) TSR_NOEXCEPT;

/// Computes at once; one new handle per output. Both counts must be those of the plan. Several threads may call
/// one plan.
TSR_API int tsr_plan_call(tsr_plan plan, const tsr_tensor* inputs, int input_count, tsr_tensor* outputs,
                          int output_count) TSR_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
