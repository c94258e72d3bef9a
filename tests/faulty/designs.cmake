# Buddy allocator, arenas, virtual memory pool; and correct variants of them for false alarms: other
# least blocks, other names of functions, functions that are not there (renamed), lazy ones.
set(test_allocators "")
function(faulty_design name source)
  add_library(${name} SHARED ${source}.c ${${source}_parts} recorded.c faulty.c)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/allocator ${PROJECT_SOURCE_DIR}/device)
  target_link_libraries(${name} PRIVATE gmd_options cudart13 Threads::Threads)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set(test_allocators ${test_allocators} ${name} PARENT_SCOPE)
endfunction()
set(virtual_pool_parts virtual_memory.c)

faulty_design(buddy buddy)
faulty_design(buddy_4k buddy FAULTY_UNIT=4096)
faulty_design(buddy_64k buddy FAULTY_UNIT=65536 gmd_malloc=my_malloc gmd_free=my_free)
faulty_design(buddy_256 buddy FAULTY_UNIT=256 gmd_get_stats=own_get_stats gmd_record_stream=own_record)
# Its slabs come with the first request.
faulty_design(buddy_bare buddy gmd_init=own_init gmd_malloc=alloc_fn gmd_free=free_fn
  gmd_get_stats=own_get_stats gmd_empty_cache=own_empty_cache gmd_record_stream=own_record
  gmd_forget_stream=own_forget gmd_configure=own_configure)

faulty_design(virtual_pool virtual_pool)
faulty_design(virtual_pool_64k virtual_pool FAULTY_UNIT=65536 gmd_malloc=my_alloc gmd_free=my_free
  gmd_device_request=own_request)
faulty_design(virtual_pool_256 virtual_pool FAULTY_UNIT=256 gmd_get_stats=own_get_stats
  gmd_empty_cache=own_empty_cache gmd_set_memory_fraction=own_fraction)

list(JOIN test_allocators " " design_list)
gmd_add_test(faulty designs SOURCES test_designs.c LIBS gmd_driver)
target_compile_definitions(test_faulty_designs PRIVATE
  GMD_TEST_LIB_DIR="${GMD_LIB_OUTPUT}" GMD_TEST_CASES="${CMAKE_CURRENT_SOURCE_DIR}/cases"
  GMD_TEST_ALLOCATORS="${PROJECT_BINARY_DIR}/tests" GMD_TEST_DESIGNS="${design_list}"
  GMD_TEST_PLANTED="${CMAKE_CURRENT_SOURCE_DIR}/planted_designs.txt")
add_dependencies(test_faulty_designs ${test_allocators} gmd_allocator)
set_tests_properties(faulty/designs PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0" TIMEOUT 900)
foreach(design ${test_allocators})
  add_test(NAME faulty/soak_${design} COMMAND sh -c
    "for s in timed lazy eager 'seed 5'; do '$<TARGET_FILE:soak>' '$<TARGET_FILE:${design}>' 200000 1 \"$s\" || exit 1; done")
  set_tests_properties(faulty/soak_${design} PROPERTIES LABELS faulty TIMEOUT 600)
endforeach()
