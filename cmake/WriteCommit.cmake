# Writes OUTPUT, a C++ file with the commit that is checked out in SOURCE; empty without a repository.
# Called at every build: cmake -DOUTPUT=… -DSOURCE=… -P WriteCommit.cmake
set(commit "")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND ${git} -C "${SOURCE}" rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "#include \"commit.h\"\n\nnamespace headroom::cli {\nconst char* const kCommit = \"${commit}\";\n}  // namespace headroom::cli\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)  # an unchanged file compiles nothing
  file(WRITE "${OUTPUT}" "${text}")
endif()
