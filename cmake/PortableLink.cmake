# How the program links, by HEADROOM_LINK. `portable` and `static` programs run on systems other than
# the one that built them: no shared library but libc, or none at all. Include before find_package.
if(NOT HEADROOM_LINK MATCHES "^(shared|portable|static)$")
  message(FATAL_ERROR "HEADROOM_LINK must be shared, portable or static, not ${HEADROOM_LINK}")
endif()

if(CMAKE_CROSSCOMPILING)
  # The toolchain file adds it, last; first, it would hide the target's libc.
  list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
endif()

if(NOT HEADROOM_LINK STREQUAL "shared")
  # Distributions have no archive of fmt, so it compiles into every unit.
  find_path(HEADROOM_FMT_INCLUDE fmt/format.h REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED)
  set_target_properties(fmt::fmt PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1
    INTERFACE_INCLUDE_DIRECTORIES ${HEADROOM_FMT_INCLUDE})
  if(NOT EMSCRIPTEN)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.a
                    OUTPUT_VARIABLE libgomp OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(OpenMP_gomp_LIBRARY ${libgomp} CACHE FILEPATH "OpenMP's run-time library")
  endif()
else()
  find_package(fmt REQUIRED)
endif()

# headroom_link_program(TARGET): links by HEADROOM_LINK.
function(headroom_link_program target)
  if(HEADROOM_LINK STREQUAL "portable")
    # Without its unused parts, libstdc++ needs glibc 2.35, as in Ubuntu 22.04, and not 2.36.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  elseif(HEADROOM_LINK STREQUAL "static")
    target_link_options(${target} PRIVATE -static-pie)
  endif()
endfunction()
