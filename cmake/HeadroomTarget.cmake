# headroom_settings(TARGET): compile settings of every target of the project; none are global.
function(headroom_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wformat=2
    -Wdouble-promotion -Wnon-virtual-dtor -Woverloaded-virtual -Wswitch-enum
    $<$<CXX_COMPILER_ID:Clang>:-Wreserved-identifier>)
  # One set of objects makes the program and the shared library, whose API is marked as visible.
  # Hidden symbols are addressed directly, so that this costs kernels nothing.
  target_compile_options(${target} PRIVATE
    $<$<NOT:$<BOOL:${EMSCRIPTEN}>>:-fPIC> -fvisibility=hidden -fvisibility-inlines-hidden)
  # GCC 12 and 13 warn about overlapping copies in every `"text" + std::string` (GCC bug 105651).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # A unit takes up to 1 GiB, and collecting garbage on the way there a tenth of GCC's time.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
  if(HEADROOM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(HEADROOM_SANITIZE)
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
    target_compile_options(${target} PRIVATE ${sanitizers})
    target_link_options(${target} PUBLIC ${sanitizers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # for programs in C that link the library
      target_link_options(${target} PUBLIC -fsanitize-link-c++-runtime -lstdc++)
    endif()
    # With sanitizers, GCC takes parts of std::regex for uninitialised (GCC bug 105562).
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    # With detect_stack_use_after_return, GCC before 13.3 aligns frames to 32 bytes and accesses
    # AVX-512's locals in them as if to 64 (GCC bug 110027); real stack frames are aligned.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13.3)
      target_compile_options(${target} PRIVATE --param=asan-use-after-return=0)
    endif()
  endif()
  if(HEADROOM_FUZZ)
    # Without the operands of every comparison, a third faster; those of strings and memory remain.
    target_compile_options(${target} PRIVATE
      -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp,stack-depth)
  endif()
endfunction()

# headroom_harden_linking(TARGET): tables of functions that are read-only once loaded (full RELRO).
# Costs a few milliseconds at the start, none in kernels.
function(headroom_harden_linking target)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
  endif()
endfunction()

# headroom_unity(TARGET FILES): compiles FILES sources of the target as one unit. Library headers
# cost more than the project's code, and a unit reads them once. Smaller units slow down a full
# build; larger ones slow down a rebuild after a change and leave a core idle at the end.
function(headroom_unity target files)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${HEADROOM_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# headroom_optimize(TARGET LEVEL): the optimisation level, such as O1, for code that gains nothing
# from CMake's -O3 and only compiles longer. Such code can afford checked library calls and stacks;
# the checks need an optimised build.
function(headroom_optimize target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-${level}>)
  if(NOT level STREQUAL "O0" AND NOT HEADROOM_SANITIZE AND NOT HEADROOM_FUZZ)
    # Some systems' compilers define a lower level of their own.
    target_compile_options(${target} PRIVATE
      $<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong>)
  endif()
endfunction()

# headroom_compile_quickly(TARGET): with sanitizers the target compiles at -O0, in half the time, with
# the precompiled headers of that level; for code that mostly waits for the modules below it.
function(headroom_compile_quickly target)
  if(HEADROOM_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    get_target_property(headers ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(headers STREQUAL "headroom_headers_O1")
      headroom_precompile(${target} O0)
    endif()
  endif()
endfunction()

# headroom_precompile(TARGET LEVEL): compiles the target with the precompiled headers of its level,
# one for all modules; the standard library, fmt and the headers of the graph take seconds in every
# unit. (nlohmann's json would cost units without it as much as it saves the others.) Sources
# include what they use all the same: CI's clang-tidy, which reads no precompiled headers, holds them
# to it.
function(headroom_precompile target level)
  set(headers headroom_headers_${level})
  if(NOT TARGET ${headers})
    headroom_precompiled_headers(${headers} ${level} ${PROJECT_SOURCE_DIR}/include/headroom/graph.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# headroom_precompiled_headers(TARGET LEVEL HEADER…): a target that compiles the headers that all
# units share, and the given ones.
function(headroom_precompiled_headers target level)
  file(WRITE ${PROJECT_BINARY_DIR}/${target}.cpp "// Only its precompiled headers are used.\n")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/${target}.cpp)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  headroom_settings(${target})
  headroom_optimize(${target} ${level})
  if(level STREQUAL "O0")
    headroom_compile_quickly(${target})
  endif()
  headroom_precompile_own(${target} <fmt/format.h> ${ARGN})
endfunction()

# headroom_precompile_own(TARGET HEADER…): the target precompiles the standard library and the given
# headers for itself, as one with flags of its own must.
function(headroom_precompile_own target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <bit> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
    <optional> <ranges> <set> <span> <string> <string_view> <utility> <variant> <vector> ${ARGN})
endfunction()

# headroom_module(NAME [INTERNAL] [UNITY files] [OPTIMIZE level] SOURCES… [PUBLIC …] [PRIVATE …]): a
# module of the library, installed as headroom::NAME unless it is internal to the program.
function(headroom_module name)
  cmake_parse_arguments(MODULE "INTERNAL" "UNITY;OPTIMIZE" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target headroom_${name})
  add_library(${target} STATIC ${MODULE_SOURCES})
  add_library(headroom::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${MODULE_PUBLIC} PRIVATE ${MODULE_PRIVATE})
  headroom_settings(${target})
  if(MODULE_UNITY)
    headroom_unity(${target} ${MODULE_UNITY})
  endif()
  if(MODULE_OPTIMIZE)
    headroom_optimize(${target} ${MODULE_OPTIMIZE})
    if(MODULE_OPTIMIZE STREQUAL "O1")  # the few units at -O2 would save less than they cost
      headroom_precompile(${target} ${MODULE_OPTIMIZE})
    endif()
  endif()
  if(NOT MODULE_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY HEADROOM_MODULES ${target})
  endif()
endfunction()

# headroom_embed_json(SOURCE FUNCTION FOLDER NAME…): writes SOURCE, a C++ file with these JSON files
# that defines headroom::detail::FUNCTION (see src/base/embedded_json.h).
function(headroom_embed_json source function folder)
  set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedJson.cmake)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE files)
  list(TRANSFORM files APPEND .json)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFUNCTION=${function}" "-DFOLDER=${folder}" "-DNAMES=${ARGN}"
            "-DOUTPUT=${output}" -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${folder}"
    VERBATIM)
  set(${source} ${output} PARENT_SCOPE)
endfunction()
