# Writes the manual pages and the completion scripts that an installation has, from the program's
# own options. Called by Install.cmake: cmake -DHEADROOM=command;… -DFOLDER=… -P WriteManuals.cmake
file(REMOVE_RECURSE "${FOLDER}")

# write(FILE ARGUMENT…): the program's output.
function(write file)
  execute_process(COMMAND ${HEADROOM} ${ARGN} OUTPUT_FILE "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY "${FOLDER}/bash" "${FOLDER}/zsh" "${FOLDER}/fish")
write("${FOLDER}/bash/headroom" completion bash)
# A function that zsh loads by its file's name; `headroom completion zsh` can also be sourced.
write("${FOLDER}/zsh/_headroom" completion zsh)
file(READ "${FOLDER}/zsh/_headroom" script)
file(WRITE "${FOLDER}/zsh/_headroom" "#compdef headroom\n${script}")
write("${FOLDER}/fish/headroom.fish" completion fish)
execute_process(COMMAND ${HEADROOM} manual "${FOLDER}/man1" COMMAND_ERROR_IS_FATAL ANY)
file(TOUCH "${FOLDER}/written")
