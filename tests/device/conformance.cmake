# cmake -DPROGRAM= -DDEVICE=sim|cuda -DLIBRARIES= -DEXPECTED= -P conformance.cmake
# Runs the program and compares its transcript with the expected one.
execute_process(COMMAND ${PROGRAM} ${DEVICE} ${LIBRARIES}
                OUTPUT_VARIABLE actual ERROR_VARIABLE messages RESULT_VARIABLE status)
if(status EQUAL 77)
  message("SKIPPED: ${messages}") # the test's SKIP_REGULAR_EXPRESSION
  return()
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the program ended with ${status}: ${messages}")
endif()
file(READ ${EXPECTED} expected)
if(NOT actual STREQUAL expected)
  file(WRITE ${PROGRAM}.${DEVICE}.actual "${actual}")
  execute_process(COMMAND diff -u ${EXPECTED} ${PROGRAM}.${DEVICE}.actual)
  message(FATAL_ERROR "the transcript differs from ${EXPECTED}; see ${PROGRAM}.${DEVICE}.actual")
endif()
