# gmd_add_allocator_test(TARGET [options]): `gmd gate` on the shared library TARGET as a test of CTest.
#
#   NAME name              of the test (gmd_gate_TARGET)
#   QUICK                  under a minute instead of five; for every push
#   DEEP duration          more random sequences until so much time is over (20m, 8h); for the night
#   FUNCTIONS malloc free  what TARGET calls them, where it is not one of the usual pairs of names
#   CONF string            the allocator's settings; without it those that it takes are tried
#   DEVICES n              up to so many simulated devices (2)
#   SEED n                 of all that is drawn (0)
#   PROFILE name|file      its contract: one that comes with gmd, or a file (docs/profiles.md)
#   KNOWN file             known defects that do not fail the test
#   BASELINE file          memory and speed are judged against it, too; the target NAME_update_baseline writes it
#   REPORTS folder         where gate.json, gate.xml (JUnit), gate.md, gate.sarif and cases/ go (gmd/NAME in the build folder)
#   TIMEOUT seconds        CTest's, of the whole (600; with DEEP none)
#   LABELS label...        beside `gmd`
#   OPTIONS option...      handed on to `gmd gate` as they are
#
# The test fails with gmd's findings in its output: the oracle, what happened, the minimised case and the
# command that shows it again. It needs no GPU.

# Whether nvcc compiles any of the sources: one of CUDA may be compiled as C++.
function(_gmd_has_cuda_sources target result)
  set(${result} FALSE PARENT_SCOPE)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cu$")
      get_source_file_property(language ${source} TARGET_DIRECTORY ${target} LANGUAGE)
      if(NOT language MATCHES "^C(XX)?$")
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# Whether TARGET, or a library that it names, has CUDA sources that are linked with nvcc's static runtime.
function(_gmd_has_static_runtime target result)
  set(${result} FALSE PARENT_SCOPE)
  get_target_property(links ${target} LINK_LIBRARIES)
  if(links MATCHES "cudart_static")
    set(${result} TRUE PARENT_SCOPE)
  endif()
  foreach(each IN ITEMS ${target} LISTS links)
    if(TARGET ${each})
      _gmd_has_cuda_sources(${each} has_cuda)
      get_target_property(language ${each} LINKER_LANGUAGE)
      get_target_property(runtime ${each} CUDA_RUNTIME_LIBRARY)
      if((has_cuda OR language STREQUAL "CUDA") AND NOT runtime MATCHES "[Ss][Hh][Aa][Rr][Ee][Dd]|[Nn][Oo][Nn][Ee]")
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# The gate's blind spots are reported when the project is configured, not after a night of passing.
function(_gmd_check_target target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "gmd_add_allocator_test: '${target}' is not a target; add_library(${target} SHARED ...) first")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    message(FATAL_ERROR "gmd_add_allocator_test: '${target}' is a ${type}; gmd loads a SHARED or MODULE library with the "
      "functions of a pluggable allocator: put those two into one that links ${target}")
  endif()
  _gmd_has_static_runtime(${target} is_static)
  if(is_static)
    message(WARNING "gmd_add_allocator_test: '${target}' may bring the CUDA runtime as static code (nvcc's default), which no "
      "simulated device can take the place of: set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)")
  endif()
endfunction()

function(gmd_add_allocator_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK"
    "NAME;DEEP;CONF;DEVICES;SEED;PROFILE;KNOWN;BASELINE;REPORTS;TIMEOUT" "FUNCTIONS;LABELS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gmd_add_allocator_test: unknown: ${arg_UNPARSED_ARGUMENTS}; what gmd gate takes goes after OPTIONS")
  endif()
  _gmd_check_target(${target})

  set(name gmd_gate_${target})
  if(arg_NAME)
    set(name ${arg_NAME})
  endif()
  set(reports ${CMAKE_CURRENT_BINARY_DIR}/gmd/${name})
  if(arg_REPORTS)
    get_filename_component(reports "${arg_REPORTS}" ABSOLUTE BASE_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  file(MAKE_DIRECTORY ${reports})

  set(spec $<TARGET_FILE:${target}>)
  if(arg_FUNCTIONS)
    list(LENGTH arg_FUNCTIONS count)
    if(NOT count EQUAL 2)
      message(FATAL_ERROR "gmd_add_allocator_test: FUNCTIONS takes two names, as in FUNCTIONS my_malloc my_free")
    endif()
    list(JOIN arg_FUNCTIONS "," names)
    string(APPEND spec ":${names}")
  endif()

  set(command gmd::gmd gate --allocator ${spec})
  if(arg_QUICK)
    list(APPEND command --quick)
  endif()
  if(arg_DEEP)
    list(APPEND command --deep ${arg_DEEP})
  endif()
  foreach(option CONF DEVICES SEED)
    if(DEFINED arg_${option})
      string(TOLOWER ${option} word)
      list(APPEND command --${word} ${arg_${option}})
    endif()
  endforeach()
  if(arg_PROFILE)
    if(arg_PROFILE MATCHES "[./]")
      get_filename_component(arg_PROFILE "${arg_PROFILE}" ABSOLUTE)
    endif()
    list(APPEND command --profile ${arg_PROFILE})
  endif()
  foreach(option KNOWN BASELINE)
    if(arg_${option})
      string(TOLOWER ${option} word)
      get_filename_component(file "${arg_${option}}" ABSOLUTE)
      list(APPEND command --${word} ${file})
    endif()
  endforeach()
  list(APPEND command ${arg_OPTIONS})

  add_test(NAME ${name} COMMAND ${command} --out ${reports}/cases --json ${reports}/gate.json
           --junit ${reports}/gate.xml --markdown ${reports}/gate.md --sarif ${reports}/gate.sarif)
  set(labels gmd ${arg_LABELS})
  set(timeout 600)
  if(arg_DEEP)
    set(timeout 0)
  endif()
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout})
  if(arg_BASELINE)
    add_custom_target(${name}_update_baseline COMMAND ${command} --out none --update-baseline DEPENDS ${target}
      USES_TERMINAL VERBATIM COMMENT "gmd: measuring ${target} for ${arg_BASELINE}")
  endif()
endfunction()
