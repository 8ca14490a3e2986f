# Kernels for all processors of x86-64, or of 64-bit Arm, in one binary: each source is compiled once
# per instruction set, and the program chooses when it starts.

# headroom_dispatch_kernels(TARGET): compiles the sources of TARGET, a static library of kernels,
# once per instruction set, and leaves TARGET as stubs that jump to the set which the processor has.
#
# Instruction sets do not mix: the objects of one become one relocatable object, in which all symbols
# are local but the kernels, and inline functions of libraries, which the linker would otherwise
# merge over the sets, are its own.
function(headroom_dispatch_kernels target)
  set(x86_64_v1 -march=x86-64)
  set(x86_64_v3 -march=x86-64-v3)
  set(x86_64_v4_vnni -march=x86-64-v4 -mclflushopt -mavx512vnni)
  set(aarch64_v8 -march=armv8-a)
  set(aarch64_sdot -march=armv8.2-a+dotprod)
  set(aarch64_usdot -march=armv8.2-a+dotprod+i8mm)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(sets aarch64_v8 aarch64_sdot aarch64_usdot)
  else()
    set(sets x86_64_v1 x86_64_v3 x86_64_v4_vnni)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(includes ${target} INCLUDE_DIRECTORIES)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernel_variants)
  set(objects "")
  set(lists "")
  foreach(set IN LISTS sets)
    set(variant ${target}_${set})
    add_library(${variant} OBJECT ${sources})
    target_include_directories(${variant} PRIVATE ${includes})
    target_link_libraries(${variant} PRIVATE ${libraries})
    headroom_settings(${variant})
    headroom_kernel_options(${variant} ${${set}} -fno-gnu-unique)
    set(compiled "$<FILTER:$<TARGET_OBJECTS:${variant}>,INCLUDE,\\.o$>")  # not its headers
    file(GENERATE OUTPUT ${folder}/${set}.objects CONTENT "$<JOIN:${compiled},\n>\n")
    list(APPEND lists ${folder}/${set}.objects ${compiled})
    list(APPEND objects ${folder}/${set}.o)
  endforeach()
  set(script ${PROJECT_SOURCE_DIR}/cmake/LinkKernelVariants.cmake)
  add_custom_command(
    OUTPUT ${objects} ${folder}/stubs.o
    COMMAND ${CMAKE_COMMAND} "-DSETS=${sets}" "-DFOLDER=${folder}"
            "-DPROCESSOR=${CMAKE_SYSTEM_PROCESSOR}"
            "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DNM=${CMAKE_NM}" "-DOBJCOPY=${CMAKE_OBJCOPY}"
            -P ${script}
    DEPENDS ${lists} ${script}
    COMMENT "Linking kernels of all instruction sets"
    VERBATIM)
  set_target_properties(${target} PROPERTIES
    SOURCES "kernels/choose_kernels.cpp;${folder}/stubs.o;${objects}")
endfunction()

# headroom_can_dispatch_kernels(VARIABLE): true where headroom_dispatch_kernels works.
function(headroom_can_dispatch_kernels variable)
  set(${variable} OFF PARENT_SCOPE)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|aarch64)$"
     AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HEADROOM_SANITIZE)
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()
