# Turns an installation into the form that Debian's policy wants, before CPack packs it: compressed
# manual pages and changelog, and a copyright file in place of the licence.
set(share ${CPACK_TEMPORARY_DIRECTORY}/program/usr/share)
set(documents ${share}/doc/headroom)
file(REMOVE ${documents}/LICENSE)
file(RENAME ${documents}/CHANGELOG.md ${documents}/NEWS.md)
file(COPY ${CPACK_HEADROOM_DEBIAN}/copyright ${CPACK_HEADROOM_DEBIAN}/changelog
     DESTINATION ${documents})
file(GLOB pages ${share}/man/man1/*.1)
execute_process(COMMAND gzip -9n ${pages} ${documents}/changelog COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${share}/zsh/site-functions)  # the folder that Debian's zsh reads
  file(MAKE_DIRECTORY ${share}/zsh)
  file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
endif()
