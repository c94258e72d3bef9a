# Warnings, sanitizers and instrumentation as one interface target that every target of gmd links.
option(GMD_WERROR "Treat warnings as errors" ON)
set(GMD_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined | thread")
set(GMD_ASSERT_LEVEL 1 CACHE STRING "Assertions: 1 cheap ones, 2 internal ones too, 3 whole walks too (base/gmd_assert.h)")
set_property(CACHE GMD_ASSERT_LEVEL PROPERTY STRINGS 1 2 3)
option(GMD_COVERAGE "Instrument for gcov" OFF)
option(GMD_FUZZ "Instrument for libFuzzer (clang only)" OFF)

add_library(gmd_options INTERFACE)
# Texts of fixed size are cut on purpose, with snprintf; gcc warns of that when it sees through a call.
target_compile_options(gmd_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wconversion> $<$<COMPILE_LANGUAGE:C>:-Wsign-conversion>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
  $<$<BOOL:${GMD_WERROR}>:-Werror>)
if(NOT GMD_ASSERT_LEVEL MATCHES "^[123]$")
  message(FATAL_ERROR "GMD_ASSERT_LEVEL is 1, 2 or 3, not '${GMD_ASSERT_LEVEL}'")
endif()
# An assertion names its file as it is called in the project, wherever it was built.
target_compile_definitions(gmd_options INTERFACE GMD_ASSERT_LEVEL=${GMD_ASSERT_LEVEL})
target_compile_options(gmd_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(GMD_SANITIZE)
  target_compile_options(gmd_options INTERFACE -fsanitize=${GMD_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(gmd_options INTERFACE -fsanitize=${GMD_SANITIZE})
endif()
if(GMD_COVERAGE)
  # Atomic counters: the runs in child processes and threads count too.
  target_compile_options(gmd_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(gmd_options INTERFACE --coverage)
  # What lets a child that ends with _exit() keep its counters (tests/coverage/keep_counts.c).
  target_sources(gmd_options INTERFACE ${CMAKE_CURRENT_LIST_DIR}/coverage_counts.c)
  target_link_libraries(gmd_options INTERFACE ${CMAKE_DL_LIBS})
endif()
if(GMD_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "GMD_FUZZ needs clang, for libFuzzer; this is ${CMAKE_C_COMPILER_ID}")
  endif()
  # Coverage feedback everywhere; only a fuzz target itself links libFuzzer's main().
  target_compile_options(gmd_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(gmd_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# gmd_static_tls(TARGET): the few thread-local bytes of a library that is loaded at run time lie in the room
# that the loader keeps for such libraries: reading one costs no call. It also keeps them out of reach of
# LeakSanitizer's guess at the headers of old C libraries, which takes what lies before a block at offset 16
# of a page for such a header (gcc 12, sanitizer_tls_get_addr.cpp) and ends the process.
function(gmd_static_tls target)
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
endfunction()

# gmd_no_compare_tracing(TARGET): libFuzzer's own mutator puts what was compared into inputs, which brings it
# through text; behind the parsers each comparison only costs (a third of all time in fuzz_requests).
function(gmd_no_compare_tracing target)
  if(GMD_FUZZ)
    target_compile_options(${target} PRIVATE -fno-sanitize-coverage=trace-cmp)
  endif()
endfunction()
