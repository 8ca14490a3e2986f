# Toolchain: compiles to WebAssembly with emscripten. Debian's emscripten 3.1.6 has a libc++ without
# std::ranges, so the headers are those of Debian's libc++-16-dev.
find_program(EM_CONFIG em-config REQUIRED)
execute_process(COMMAND ${EM_CONFIG} EMSCRIPTEN_ROOT
                OUTPUT_VARIABLE EMSCRIPTEN_ROOT_PATH OUTPUT_STRIP_TRAILING_WHITESPACE)
find_path(HEADROOM_LIBCXX ranges PATHS /usr/lib/llvm-16/include/c++/v1 REQUIRED
          NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH DOC "Headers of libc++ 16")
list(APPEND CMAKE_PREFIX_PATH /usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
include(${EMSCRIPTEN_ROOT_PATH}/cmake/Modules/Platform/Emscripten.cmake)
# Libraries of headers alone are those of the building machine. Its libc's headers lie beside them,
# so that the folder comes after the compiler's own.
set(CMAKE_CXX_FLAGS_INIT "-fwasm-exceptions -nostdinc++ -isystem ${CMAKE_CURRENT_LIST_DIR}/emscripten \
-isystem ${HEADROOM_LIBCXX} -idirafter /usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fwasm-exceptions")
