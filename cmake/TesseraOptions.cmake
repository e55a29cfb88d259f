# What to build, and which foreign libraries take part.
#
# TESSERA_<X> = AUTO (use it if found), ON (it must be there), OFF (leave it out). Most of them are opened at run
# time, so AUTO asks for the headers only. One table at the end of configure says what was found.
option(TESSERA_CLI "build the tessera program" ON)
option(TESSERA_TESTS "build the tests" ON)
option(TESSERA_BENCHMARKS "build the benchmarks" ON)
option(TESSERA_WERROR "treat warnings as errors" OFF)
set(TESSERA_SANITIZE "" CACHE STRING "sanitizers for -fsanitize=, comma separated")

# What archives are compressed with.
find_package(ZLIB REQUIRED)

set(TESSERA_DEPENDENCIES ONEDNN LLVM CUDA ONNX)
foreach(x IN LISTS TESSERA_DEPENDENCIES)
  set(TESSERA_${x} AUTO CACHE STRING "AUTO, ON or OFF")
  set_property(CACHE TESSERA_${x} PROPERTY STRINGS AUTO ON OFF)
  if(NOT TESSERA_${x} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TESSERA_${x} is '${TESSERA_${x}}', expected AUTO, ON or OFF")
  endif()
endforeach()

# tessera_find(<X> HEADER <header> | LIBRARY <file> ... [PATHS ...] [SUFFIXES ...] [DETAIL text])
#   LIBRARY: it is opened at run time and needs no header; one of the files must be there.
#   Sets TESSERA_HAVE_<X>, TESSERA_<X>_INCLUDE and the row of the table.
function(tessera_find x)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;DETAIL" "LIBRARY;PATHS;SUFFIXES")
  set(have FALSE)
  set(row "off")
  if(NOT TESSERA_${x} STREQUAL "OFF")
    if(arg_LIBRARY)
      list(GET arg_LIBRARY -1 arg_HEADER)
      find_file(TESSERA_${x}_INCLUDE NAMES ${arg_LIBRARY} PATHS ${arg_PATHS})
    else()
      find_path(TESSERA_${x}_INCLUDE ${arg_HEADER} PATHS ${arg_PATHS} PATH_SUFFIXES ${arg_SUFFIXES})
    endif()
    mark_as_advanced(TESSERA_${x}_INCLUDE)
    if(TESSERA_${x}_INCLUDE)
      set(have TRUE)
      set(row "found   ${arg_DETAIL}")
    elseif(TESSERA_${x} STREQUAL "ON")
      message(FATAL_ERROR "TESSERA_${x} is ON but ${arg_HEADER} was not found")
    else()
      set(row "not found (${arg_HEADER})")
    endif()
  endif()
  set(TESSERA_HAVE_${x} ${have} PARENT_SCOPE)
  set(TESSERA_ROW_${x} "${row}" PARENT_SCOPE)
endfunction()

tessera_find(ONEDNN HEADER dnnl.h DETAIL "matmul and convolution on the CPU")
tessera_find(LLVM LIBRARY libLLVM.so.19.1 libLLVM-19.so.1 libLLVM-18.so.1 libLLVM-17.so.1 libLLVM-16.so.1
  PATHS /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib
  DETAIL "generated kernels on the CPU, through the C API")
tessera_find(CUDA HEADER cuda.h PATHS /usr/local/cuda/include DETAIL "NVIDIA GPUs")
tessera_find(ONNX HEADER onnx/onnx_pb.h DETAIL "model import")
# The schema's classes need protobuf's own headers, which Debian has in another package.
if(TESSERA_HAVE_ONNX)
  find_path(TESSERA_PROTOBUF_INCLUDE google/protobuf/message_lite.h)
  find_library(TESSERA_ONNX_LIBRARY onnx_proto)
  find_library(TESSERA_PROTOBUF_LIBRARY protobuf)
  mark_as_advanced(TESSERA_PROTOBUF_INCLUDE TESSERA_ONNX_LIBRARY TESSERA_PROTOBUF_LIBRARY)
  if(NOT TESSERA_PROTOBUF_INCLUDE OR NOT TESSERA_ONNX_LIBRARY OR NOT TESSERA_PROTOBUF_LIBRARY)
    if(TESSERA_ONNX STREQUAL "ON")
      message(FATAL_ERROR "TESSERA_ONNX is ON but protobuf (headers, libprotobuf, libonnx_proto) was not found")
    endif()
    set(TESSERA_HAVE_ONNX FALSE)
    set(TESSERA_ROW_ONNX "not found (google/protobuf, libprotobuf, libonnx_proto)")
  endif()
endif()

function(tessera_print_options)
  message(STATUS "Tessera ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(x IN LISTS TESSERA_DEPENDENCIES)
    string(SUBSTRING "${x}        " 0 8 name)
    string(SUBSTRING "${TESSERA_${x}}      " 0 6 setting)
    message(STATUS "  ${name}${setting}${TESSERA_ROW_${x}}")
  endforeach()
endfunction()
