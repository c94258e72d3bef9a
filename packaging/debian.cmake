# cpack -G DEB: one package, gmd, of what `cmake --install` installs, under /usr.
set(CPACK_PACKAGE_NAME gmd)
set(CPACK_PACKAGE_CONTACT "gmd maintainers <gmd@packages.invalid>" CACHE STRING "Maintainer of packages that are built here")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "test and fuzz suite for GPU memory allocators")
set(CPACK_PACKAGE_DESCRIPTION "gmd drives an allocator of GPU memory with scripted training loops, recorded
histories and fuzzed sequences of requests, on a simulated CUDA device or on a
real GPU, and oracles judge every request. It needs no GPU, no driver and no
CUDA toolkit.")
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# PyTorch's adapter is compiled where PyTorch is; projects that use find_package(gmd) have CMake.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config")
# Our own CUDA libraries carry NVIDIA's names, so what links them must not end up needing NVIDIA's packages.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${GMD_SIM_OUTPUT} ${GMD_LIB_OUTPUT})

# What Debian wants in /usr/share/doc/gmd.
install(FILES debian/copyright DESTINATION share/doc/gmd)
install(FILES debian/lintian-overrides DESTINATION share/lintian/overrides RENAME gmd)
if(GMD_GZIP)
  configure_file(debian/changelog.in changelog @ONLY)
  add_custom_command(OUTPUT changelog.gz DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/changelog
    COMMAND ${GMD_GZIP} -9 -n -c changelog > changelog.gz VERBATIM)
  add_custom_target(gmd_debian_changelog ALL DEPENDS changelog.gz)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz DESTINATION share/doc/gmd)
endif()
include(CPack)
