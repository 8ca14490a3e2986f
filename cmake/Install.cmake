# Installs two components. `program`: the binary with its manual pages, completions and
# documentation. `development`: the libraries and headers for find_package(headroom) and C.
include(CMakePackageConfigHelpers)

# Manual pages and completions, from the program's own options.
set(manuals ${PROJECT_BINARY_DIR}/manuals)
set(headroom_command ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:headroom>)
add_custom_command(
  OUTPUT ${manuals}/written
  COMMAND ${CMAKE_COMMAND} "-DHEADROOM=${headroom_command}" "-DFOLDER=${manuals}"
          -P ${PROJECT_SOURCE_DIR}/cmake/WriteManuals.cmake
  DEPENDS headroom ${PROJECT_SOURCE_DIR}/cmake/WriteManuals.cmake
  COMMENT "Writing manual pages and completions"
  VERBATIM)
add_custom_target(headroom_manuals ALL DEPENDS ${manuals}/written)
# Builds what `cmake --install` installs, without the tests.
add_custom_target(headroom_installation DEPENDS headroom_manuals)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS headroom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${manuals}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${manuals}/bash/headroom
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manuals}/zsh/_headroom DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manuals}/fish/headroom.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs presets DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
get_property(headroom_modules GLOBAL PROPERTY HEADROOM_MODULES)
install(TARGETS ${headroom_modules} headroom_library EXPORT headroomTargets)
if(TARGET headroom_shared)
  add_dependencies(headroom_installation headroom_shared)
  install(TARGETS headroom_shared EXPORT headroomTargets)
endif()
install(DIRECTORY include/headroom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headroomTargets NAMESPACE headroom::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
configure_package_config_file(cmake/headroomConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/headroomConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/headroomConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH headroom_prefix_from_pc
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/headroom.pc.in headroom.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/headroomConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/headroomConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/headroom.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The wheel of pyproject.toml: the library beside the Python files, the program on the PATH.
if(SKBUILD)
  install(TARGETS headroom_shared LIBRARY DESTINATION headroom COMPONENT python)
  install(TARGETS headroom RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
