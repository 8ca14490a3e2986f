# Packages of the program alone: `cpack -G DEB`, `cpack -G TGZ`. `./dev package` makes both.
set(CPACK_PACKAGE_NAME headroom)
set(CPACK_PACKAGE_VENDOR "headroom")
set(HEADROOM_MAINTAINER "headroom maintainers <maintainers@users.noreply.github.com>" CACHE STRING
    "Name and address of who makes the packages")
set(CPACK_PACKAGE_CONTACT ${HEADROOM_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts and measures what a transformer costs")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"headroom counts the parameters, FLOPs, activation memory and KV-cache of a
transformer exactly, from its config.json or from a built-in preset, prints the
formula behind every figure, and runs the real forward pass to prove it.
It predicts times on a catalogue of devices, checks what fits on them, and
finds the best parallel plan.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageFormat.cmake)

# The tarball, by system and processor: headroom-0.1.0-linux-x86_64.tar.gz.
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" platform)
set(CPACK_SYSTEM_NAME ${platform})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_PROGRAM_FILE_NAME headroom-${PROJECT_VERSION}-${platform})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME headroom)
set(CPACK_DEBIAN_PROGRAM_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SOURCE headroom)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# Debian's policy wants a changelog in its format and a copyright file.
set(headroom_debian ${PROJECT_BINARY_DIR}/debian)
file(READ LICENSE license)
string(STRIP "${license}" license)
string(REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "\n${license}")
string(TIMESTAMP headroom_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/debian_copyright.in ${headroom_debian}/copyright @ONLY)
configure_file(cmake/debian_changelog.in ${headroom_debian}/changelog @ONLY)
set(CPACK_HEADROOM_DEBIAN ${headroom_debian})
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # `headroom_installation` is built before
include(CPack)
