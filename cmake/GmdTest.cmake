find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# The main function of every test program, and gmd_test.h, by which tests register themselves.
add_library(gmd_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/gmd_test_main.c)
target_include_directories(gmd_test_main PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(gmd_test_main PRIVATE gmd_options PUBLIC PkgConfig::CMOCKA)

# gmd_add_test(MODULE NAME SOURCES... [LIBS targets...])
#
# Builds tests/MODULE/SOURCES into one cmocka program and registers it as MODULE/NAME with the label
# MODULE.

function(gmd_add_test module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  set(target test_${module}_${name})
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${target} PRIVATE gmd_options gmd_test_main ${arg_LIBS})
  add_test(NAME ${module}/${name} COMMAND ${target})
  set_tests_properties(${module}/${name} PROPERTIES LABELS ${module} TIMEOUT 300)
endfunction()

# What is linked into the program calls the program's __wrap_NAME in place of each NAME.
function(gmd_replace_functions target)
  foreach(name ${ARGN})
    target_link_options(${target} PRIVATE -Wl,--wrap=${name})
  endforeach()
endfunction()
