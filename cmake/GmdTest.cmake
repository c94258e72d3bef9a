# gmd_add_test(MODULE NAME SOURCES... [LIBS targets...])
#
# Builds tests/MODULE/SOURCES into one cmocka program and registers it as MODULE/NAME with the label
# MODULE.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(gmd_add_test module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  set(target test_${module}_${name})
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${target} PRIVATE gmd_options ${arg_LIBS} PkgConfig::CMOCKA)
  add_test(NAME ${module}/${name} COMMAND ${target})
  set_tests_properties(${module}/${name} PROPERTIES LABELS ${module} TIMEOUT 300)
endfunction()

# What is linked into the program calls the program's __wrap_NAME in place of each NAME.
function(gmd_replace_functions target)
  foreach(name ${ARGN})
    target_link_options(${target} PRIVATE -Wl,--wrap=${name})
  endforeach()
endfunction()
