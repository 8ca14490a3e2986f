# Installs the binary, the library and its headers for find_package(headroom).
include(CMakePackageConfigHelpers)

get_property(headroom_modules GLOBAL PROPERTY HEADROOM_MODULES)
install(TARGETS ${headroom_modules} headroom_library EXPORT headroomTargets)
install(TARGETS headroom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/headroom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headroomTargets NAMESPACE headroom::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
configure_package_config_file(cmake/headroomConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/headroomConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/headroomConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/headroomConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/headroomConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
