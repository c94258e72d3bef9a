# The libraries that PyTorch programs need, and what they are made of: no program, no tests, no package is needed.
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR "libgmd_torch_hooks.so needs a compiler for C++ (CXX)")
endif()
foreach(part base device allocator sanitizer)
  add_subdirectory(${part})
endforeach()

# What the sanitizer's report needs of reports/, which as a whole needs packages.
set(encoding ${PROJECT_SOURCE_DIR}/reports/encoding)
add_library(gmd_encoding STATIC ${encoding}/json.c ${encoding}/text.c)
target_include_directories(gmd_encoding PUBLIC ${encoding} ${PROJECT_SOURCE_DIR}/allocator ${PROJECT_SOURCE_DIR}/oracles
                           ${PROJECT_SOURCE_DIR}/driver/session ${PROJECT_SOURCE_DIR}/driver/verdict
                           ${PROJECT_SOURCE_DIR}/trace)
target_link_libraries(gmd_encoding PUBLIC gmd_base PRIVATE gmd_options)
add_custom_target(gmd_torch_libraries DEPENDS gmd_allocator gmd_torch_hooks gmd_sanitizer)
