# Correct allocators that are different, for false alarms: other least blocks, other names of the
# functions, functions that are not there (they are renamed), memory that goes back lazily. They list
# no defects.
set(variants "")
function(faulty_variant name design)
  add_library(${name} SHARED ${design}.c ${${design}_parts} faulty.c)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/allocator ${PROJECT_SOURCE_DIR}/device)
  target_link_libraries(${name} PRIVATE gmd_options cudart13 Threads::Threads)
  target_compile_definitions(${name} PRIVATE ${ARGN} faulty_defects=own_defects)
  set(variants ${variants} ${name} PARENT_SCOPE)
endfunction()

faulty_variant(buddy_4k buddy FAULTY_UNIT=4096)
faulty_variant(buddy_64k buddy FAULTY_UNIT=65536 gmd_malloc=my_malloc gmd_free=my_free)
faulty_variant(buddy_256 buddy FAULTY_UNIT=256 gmd_get_stats=own_get_stats gmd_record_stream=own_record
  gmd_forget_stream=own_forget)
# Its slabs come with the first request.
faulty_variant(buddy_bare buddy gmd_init=own_init gmd_malloc=alloc_fn gmd_free=free_fn
  gmd_get_stats=own_get_stats gmd_empty_cache=own_empty_cache gmd_record_stream=own_record
  gmd_forget_stream=own_forget gmd_configure=own_configure)
faulty_variant(virtual_pool_64k virtual_pool FAULTY_UNIT=65536 gmd_malloc=my_alloc gmd_free=my_free
  gmd_device_request=own_request)
faulty_variant(virtual_pool_256 virtual_pool FAULTY_UNIT=256 gmd_get_stats=own_get_stats
  gmd_empty_cache=own_empty_cache gmd_set_memory_fraction=own_fraction)
# It says of no freed block until when it waits.
faulty_variant(caching_pool_unpromised caching_pool gmd_promises=own_promises)
faulty_variant(arena_lazy arena FAULTY_LAZY)
faulty_variant(arena_4k arena FAULTY_UNIT=4096 gmd_malloc=rmm_alloc gmd_free=rmm_free
  gmd_record_stream=own_record gmd_forget_stream=own_forget)
faulty_variant(arena_bare arena gmd_get_stats=own_get_stats gmd_empty_cache=own_empty_cache
  gmd_record_stream=own_record gmd_forget_stream=own_forget gmd_set_memory_fraction=own_fraction
  gmd_configure=own_configure)

list(JOIN variants " " variant_list)
string(APPEND variant_list " event_cache caching_pool") # some cases are for its like
gmd_add_test(faulty variants SOURCES test_variants.c LIBS gmd_driver)
target_compile_definitions(test_faulty_variants PRIVATE
  GMD_TEST_LIB_DIR="${GMD_LIB_OUTPUT}" GMD_TEST_CASES="${CMAKE_CURRENT_SOURCE_DIR}/cases"
  GMD_TEST_ALLOCATORS="${PROJECT_BINARY_DIR}/tests" GMD_TEST_VARIANTS="${variant_list}")
add_dependencies(test_faulty_variants ${variants} event_cache caching_pool)
set_tests_properties(faulty/variants PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0" TIMEOUT 900)
# Under a sanitizer the designs' own soaks run the same code of gmd.
if(NOT GMD_SANITIZE)
  foreach(variant ${variants})
    add_test(NAME faulty/soak_variant_${variant} COMMAND sh -c
      "for s in timed lazy eager 'seed 5'; do '$<TARGET_FILE:soak>' '$<TARGET_FILE:${variant}>' 200000 1 \"$s\" || exit 1; done")
    set_tests_properties(faulty/soak_variant_${variant} PROPERTIES LABELS faulty TIMEOUT 600)
  endforeach()
endif()
