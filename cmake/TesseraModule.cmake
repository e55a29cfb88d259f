# One module = one folder = one library tessera_<name>, used only as tessera::<name>.
#
# tessera_module(<name> SOURCES ... HEADERS ... [DEPENDS ...] [TESTS ...] [TEST_DEPENDS ...])
#   TESTS are the *_test.cpp files that stand beside the sources; they make one binary and one CTest entry.
option(TESSERA_JOIN_UNITS "compile several sources of a target at once" OFF)
set(shadow -Wshadow)
if(TESSERA_JOIN_UNITS)
  # Without what would be said of one source because of another that is read before it.
  set(shadow $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage>)
  # g++ collects its garbage so seldom that it takes 5 % less time, within the memory that a unit may use.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
endif()
add_library(tessera_settings INTERFACE)
target_compile_features(tessera_settings INTERFACE cxx_std_20)
target_compile_options(tessera_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wno-missing-field-initializers "${shadow}" -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # g++ 12 and 13 see overruns in moved std::string and in small vectors that are not there
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized;-Wno-restrict>
  # g++ 13 takes a reference obtained through a small handle for one into the handle
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  $<$<BOOL:${TESSERA_WERROR}>:-Werror>)
if(TESSERA_SANITIZE)
  # Without the checks at each use of a pointer, which double the build; a null pointer, or one past its object, ends the program
  # under the address sanitizer anyway. Its own checks are called, not inlined, in functions with more than 50 of them: that saves
  # an eighth of the build and costs loops nothing.
  target_compile_options(tessera_settings INTERFACE
    -fsanitize=${TESSERA_SANITIZE} -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1 $<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=50>)
  target_link_options(tessera_settings INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()

# What makes errors in memory harder to use: canaries in frames with arrays, calls of the C library that know the sizes they
# write to, returns and jumps that a processor can check, and tables of addresses that are read-only before main. A sanitizer has
# its own checks of the calls. Executables and libtessera.so are not marked for jumps (ibt): objects of Debian's C library are not,
# and the code that LLVM makes while the program runs has no landing pads.
target_compile_options(tessera_settings INTERFACE -fstack-protector-strong)
if(NOT TESSERA_SANITIZE)
  target_compile_options(tessera_settings INTERFACE $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
endif()
target_link_options(tessera_settings INTERFACE LINKER:-z,relro,-z,now)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(tessera_settings INTERFACE -fcf-protection=full)
  target_link_options(tessera_settings INTERFACE LINKER:-z,shstk)
endif()

# What nearly every source reads, compiled once for a build from nothing. Where one works on the sources, each shows that it
# includes what it uses.
set(tessera_common_headers "")
if(TESSERA_JOIN_UNITS)
  set(tessera_common_headers <algorithm> <array> <bit> <cmath> <cstring> <functional> <limits> <map> <memory> <mutex> <numeric>
    <optional> <set> <span> <string> <string_view> <unordered_map> <unordered_set> <vector>
    ${PROJECT_SOURCE_DIR}/tessera/base/text.h ${PROJECT_SOURCE_DIR}/tessera/ir/function.h)
endif()

# The options of every library; two targets share a precompiled header only if theirs are the same.
function(tessera_library_settings target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PRIVATE -Og)
  endif()
endfunction()

# What stands around the libraries, tests and the program, is compiled quickly: what must be fast is in the rooms.
function(tessera_quick_settings target)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  endif()
endfunction()

if(TESSERA_JOIN_UNITS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/library_header.cpp CONTENT "")
  add_library(tessera_library_header STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/library_header.cpp)
  target_link_libraries(tessera_library_header PRIVATE tessera_settings)
  target_include_directories(tessera_library_header PRIVATE ${PROJECT_SOURCE_DIR})
  tessera_library_settings(tessera_library_header)
  target_precompile_headers(tessera_library_header PRIVATE ${tessera_common_headers})
endif()

# For programs in C: the standard and nothing more, without a warning.
add_library(tessera_c_settings INTERFACE)
target_compile_features(tessera_c_settings INTERFACE c_std_11)
target_compile_options(tessera_c_settings INTERFACE -Wall -Wextra -Wpedantic -Werror)
if(TESSERA_SANITIZE)
  target_compile_options(tessera_c_settings INTERFACE -fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tessera_c_settings INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()

if(TESSERA_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  # GoogleTest's header, compiled once for all tests; they have the same settings.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_header.cpp CONTENT "")
  add_library(tessera_test_header STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_header.cpp)
  target_link_libraries(tessera_test_header PRIVATE tessera_settings GTest::gtest)
  target_include_directories(tessera_test_header PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(tessera_test_header PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  tessera_quick_settings(tessera_test_header)
  target_precompile_headers(tessera_test_header PRIVATE <gtest/gtest.h> ${tessera_common_headers})
endif()

# Sources of a target are compiled several at a time: what headers cost, in reading and in templates, is paid once. So
# names in unnamed namespaces are chosen for the whole room. A group has about so many bytes of sources, and is compiled in
# halves, so that none takes the most that a unit may; sources that are larger, generated, or have options of their own, stay
# alone. A room whose sources take longer sets fewer. Who works on a room leaves it off, and compiles what was changed.
set(tessera_joined_bytes 80000)
function(tessera_join_units target)
  if(NOT TESSERA_JOIN_UNITS)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(group 0)
  set(bytes 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(source MATCHES "\\.cpp$" AND EXISTS ${path})
      file(SIZE ${path} size)
      math(EXPR bytes "${bytes} + ${size}")
      if(bytes GREATER ${tessera_joined_bytes})
        math(EXPR group "${group} + 1")
        set(bytes ${size})
      endif()
      math(EXPR half "2 * (${bytes} - 1) / ${tessera_joined_bytes}")
      set_source_files_properties(${path} PROPERTIES UNITY_GROUP ${group}_${half})
      math(EXPR twice "2 * ${size}")
      if(twice GREATER ${tessera_joined_bytes})
        set_source_files_properties(${path} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# A source of a library with options of its own, which then reads the common headers itself.
function(tessera_source_options source)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ARGN}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

function(tessera_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;DEPENDS;TESTS;TEST_DEPENDS")
  string(REPLACE "/" "_" target tessera_${name})
  string(REPLACE "/" "_" export_name ${name})
  add_library(${target} STATIC)
  add_library(tessera::${export_name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})
  tessera_library_settings(${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_sources(${target} PRIVATE ${arg_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  list(TRANSFORM arg_DEPENDS PREPEND tessera::)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:tessera_settings>)
  tessera_join_units(${target})
  if(TESSERA_JOIN_UNITS)
    target_precompile_headers(${target} REUSE_FROM tessera_library_header)
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_MODULES ${target})

  if(TESSERA_TESTS AND arg_TESTS)
    tessera_test(${export_name}_tests SOURCES ${arg_TESTS} DEPENDS tessera::${export_name} ${arg_TEST_DEPENDS})
  endif()
endfunction()

# Compiled as a room is: what is measured should be as fast as what people build.
function(tessera_measured_settings target)
  tessera_library_settings(${target})
  if(TESSERA_JOIN_UNITS)
    target_compile_options(${target} PRIVATE -fPIC)  # as the header; a program would have -fPIE
    target_precompile_headers(${target} REUSE_FROM tessera_library_header)
  endif()
endfunction()

# tessera_test_library(<name> SOURCES ... DEPENDS ...): what several tests share.
function(tessera_test_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_library(tessera_${name} STATIC ${arg_SOURCES})
  target_link_libraries(tessera_${name} PUBLIC ${arg_DEPENDS} PRIVATE tessera_settings GTest::gtest)
  target_include_directories(tessera_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_definitions(tessera_${name} PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  tessera_quick_settings(tessera_${name})
  tessera_join_units(tessera_${name})
  target_precompile_headers(tessera_${name} REUSE_FROM tessera_test_header)
endfunction()

# tessera_test(<name> SOURCES ... DEPENDS ...): a GoogleTest binary and its CTest entry.
function(tessera_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(tessera_${name} ${arg_SOURCES})
  target_link_libraries(tessera_${name} PRIVATE ${arg_DEPENDS} tessera_settings GTest::gtest GTest::gtest_main)
  set_target_properties(tessera_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  tessera_quick_settings(tessera_${name})
  tessera_join_units(tessera_${name})
  target_compile_definitions(tessera_${name} PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_precompile_headers(tessera_${name} REUSE_FROM tessera_test_header)
  add_test(NAME ${name} COMMAND tessera_${name} --gtest_brief=1)
endfunction()
