# gmd_add_known_allocator(NAME DIR [options]): gmd's adapter for an allocator of others, compiled against the user's own
# copy of it in DIR. The target gmd_NAME is a MODULE library that `gmd --allocator` and gmd_add_allocator_test take.
#
#   NAME                  which one (docs/known-allocators.md)
#   DIR                   its headers, or a folder in which they lie as they do in its sources or installation
#   INCLUDES folder...    further headers that those include
#   LIBRARIES library...  targets or files to link: cnmem and rmm_* need that of the allocator, with a shared CUDA runtime
#
# Nothing of the allocator is compiled but what its headers define.

# _gmd_known_allocator(NAME): what is different from one to the other, in variables `known_...` of the caller.
function(_gmd_known_allocator name)
  set(standard 17)
  set(definitions)
  set(empty_headers) # are included, and nothing of them is used
  set(needs_library FALSE)
  set(needs_driver FALSE)
  set(beside) # a folder of further headers, from that of the header
  set(excerpt) # a part of the header's text: the name of its file, how it begins, and what comes after it
  set(source ${name}.cpp)
  if(name STREQUAL "cub")
    set(header cub/util_allocator.cuh)
  elseif(name STREQUAL "thrust")
    set(header thrust/mr/disjoint_sync_pool.h)
    set(definitions THRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)
  elseif(name STREQUAL "cnmem")
    set(header cnmem.h)
    set(needs_library TRUE)
  elseif(name STREQUAL "cms")
    set(header CUDACore/getCachingDeviceAllocator.h)
  elseif(name STREQUAL "cumo")
    set(header memory_pool_impl.cpp)
    set(empty_headers ruby.h)
  elseif(name STREQUAL "oneflow")
    set(header oneflow/core/vm/bin_allocator.h)
  elseif(name STREQUAL "bfc")
    set(header xla/tsl/framework/bfc_allocator.cc)
    set(empty_headers absl/base/casts.h absl/base/optimization.h absl/base/thread_annotations.h absl/container/btree_set.h
      absl/container/flat_hash_set.h absl/numeric/bits.h absl/strings/str_cat.h absl/strings/str_join.h
      absl/strings/string_view.h absl/synchronization/mutex.h absl/time/time.h tsl/platform/numa.h tsl/platform/numbers.h
      tsl/platform/stacktrace.h tsl/profiler/lib/scoped_memory_debug_annotation.h tsl/profiler/lib/traceme.h
      xla/tsl/framework/metrics.h xla/tsl/framework/numeric_types.h xla/tsl/framework/type_traits.h xla/tsl/lib/core/bits.h
      xla/tsl/platform/env.h xla/tsl/platform/file_system.h xla/tsl/platform/logging.h xla/tsl/platform/macros.h
      xla/tsl/platform/types.h xla/tsl/profiler/utils/trace_filter_utils.h xla/tsl/protobuf/bfc_memory_map.pb.h)
  elseif(name STREQUAL "cumem")
    set(header cumem_allocator.cpp)
    set(empty_headers Python.h)
    set(needs_driver TRUE)
  elseif(name STREQUAL "ort")
    set(header core/framework/bfc_arena.cc)
    set(beside ../include/onnxruntime)
    set(empty_headers onnxruntime_config.h core/common/common.h core/common/safeint.h core/common/status.h
      core/common/logging/logging.h core/common/logging/severity.h core/session/abi_key_value_pairs.h)
  elseif(name MATCHES "^ggml_(legacy|vmm)$")
    string(TOUPPER ${name} macro)
    set(header ggml-cuda.cu)
    set(excerpt ggml_cuda_pools.inc "struct ggml_cuda_pool_leg" "std::unique_ptr<ggml_cuda_pool> ggml_backend_cuda_context::")
    set(definitions GMD_${macro})
    set(needs_driver TRUE)
    set(source ggml.cpp)
  elseif(name MATCHES "^rmm_(pool|binning|arena|cuda_async)$")
    string(TOUPPER ${name} macro)
    set(header rmm/mr/${CMAKE_MATCH_1}_memory_resource.hpp)
    set(definitions GMD_${macro})
    set(standard 20)
    set(needs_library TRUE)
    set(source rmm.cpp)
  else()
    message(FATAL_ERROR "gmd_add_known_allocator: '${name}' is none of cub, thrust, cnmem, cms, cumo, oneflow, bfc, ort, cumem, "
      "ggml_legacy, ggml_vmm, rmm_pool, rmm_binning, rmm_arena, rmm_cuda_async")
  endif()
  foreach(property standard definitions empty_headers needs_library needs_driver beside excerpt source header)
    set(known_${property} "${${property}}" PARENT_SCOPE)
  endforeach()
endfunction()

# CUDA's runtime: a toolkit's, or gmd's headers and simulated library where there is none.
function(_gmd_cuda_runtime result)
  find_package(CUDAToolkit QUIET)
  if(TARGET CUDA::cudart)
    set(${result} CUDA::cudart PARENT_SCOPE)
  else()
    set(${result} gmd::cudart PARENT_SCOPE)
  endif()
endfunction()

# The driver: a toolkit's, or the simulated library.
function(_gmd_cuda_driver result)
  if(TARGET CUDA::cuda_driver)
    set(${result} CUDA::cuda_driver PARENT_SCOPE)
  else()
    set(${result} ${GMD_LIB_DIR}/sim/libcuda.so.1 PARENT_SCOPE)
  endif()
endfunction()

# _gmd_cut_out(FILE RESULT BEGIN END): the text of FILE from BEGIN until END, into the file RESULT.
function(_gmd_cut_out file result begin end)
  file(READ ${file} text)
  string(FIND "${text}" "${begin}" from)
  string(FIND "${text}" "${end}" to)
  if(from LESS 0 OR to LESS from)
    message(FATAL_ERROR "gmd_add_known_allocator: ${file} has another form than gmd knows: expected '${begin}', and then '${end}'")
  endif()
  math(EXPR length "${to} - ${from}")
  string(SUBSTRING "${text}" ${from} ${length} part)
  file(WRITE ${result} "${part}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

function(gmd_add_known_allocator name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "INCLUDES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gmd_add_known_allocator: unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  _gmd_known_allocator(${name})
  get_filename_component(folder "${folder}" ABSOLUTE)
  unset(include) # of the caller
  find_path(include ${known_header} NO_CACHE NO_DEFAULT_PATH PATHS ${folder}
            PATH_SUFFIXES include include/cccl cpp/include cub thrust src/cudadev ext/cumo/cuda src/ggml-cuda ggml/src/ggml-cuda onnxruntime csrc)
  if(NOT include)
    message(FATAL_ERROR "gmd_add_known_allocator: ${name}: there is no ${known_header} in ${folder}, nor in include, "
      "include/cccl, cpp/include, cub, thrust, src/cudadev, ext/cumo/cuda, src/ggml-cuda, onnxruntime or csrc of it")
  endif()
  if(known_needs_library AND NOT arg_LIBRARIES)
    message(FATAL_ERROR "gmd_add_known_allocator: ${name} is no header alone: LIBRARIES must name its library")
  endif()
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/gmd_${name}_headers)
  list(TRANSFORM known_beside PREPEND ${include}/ OUTPUT_VARIABLE beside)
  foreach(file IN LISTS known_empty_headers)
    file(WRITE ${empty}/${file} "")
  endforeach()
  if(known_excerpt)
    list(GET known_excerpt 0 file)
    list(GET known_excerpt 1 begin)
    list(GET known_excerpt 2 end)
    _gmd_cut_out(${include}/${known_header} ${empty}/${file} "${begin}" "${end}")
  endif()
  _gmd_cuda_runtime(cudart)
  set(driver)
  if(known_needs_driver)
    _gmd_cuda_driver(driver)
  endif()

  add_library(gmd_${name} MODULE ${GMD_LIB_DIR}/adapters/known/${known_source})
  target_include_directories(gmd_${name} SYSTEM PRIVATE ${empty} ${include} ${beside} ${arg_INCLUDES})
  target_compile_definitions(gmd_${name} PRIVATE ${known_definitions})
  target_link_libraries(gmd_${name} PRIVATE gmd::abi ${arg_LIBRARIES} ${cudart} ${driver})
  set_target_properties(gmd_${name} PROPERTIES CXX_STANDARD ${known_standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()
