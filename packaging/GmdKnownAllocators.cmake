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
  elseif(name MATCHES "^rmm_(pool|binning|arena|cuda_async)$")
    string(TOUPPER ${name} macro)
    set(header rmm/mr/${CMAKE_MATCH_1}_memory_resource.hpp)
    set(definitions GMD_${macro})
    set(standard 20)
    set(needs_library TRUE)
    set(source rmm.cpp)
  else()
    message(FATAL_ERROR "gmd_add_known_allocator: '${name}' is none of cub, thrust, cnmem, cms, cumo, oneflow, rmm_pool, "
      "rmm_binning, rmm_arena, rmm_cuda_async")
  endif()
  foreach(property standard definitions empty_headers needs_library source header)
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

function(gmd_add_known_allocator name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "INCLUDES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gmd_add_known_allocator: unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  _gmd_known_allocator(${name})
  get_filename_component(folder "${folder}" ABSOLUTE)
  unset(include) # of the caller
  find_path(include ${known_header} NO_CACHE NO_DEFAULT_PATH PATHS ${folder}
            PATH_SUFFIXES include include/cccl cpp/include cub thrust src/cudadev ext/cumo/cuda)
  if(NOT include)
    message(FATAL_ERROR "gmd_add_known_allocator: ${name}: there is no ${known_header} in ${folder}, nor in include, "
      "include/cccl, cpp/include, cub, thrust, src/cudadev or ext/cumo/cuda of it")
  endif()
  if(known_needs_library AND NOT arg_LIBRARIES)
    message(FATAL_ERROR "gmd_add_known_allocator: ${name} is no header alone: LIBRARIES must name its library")
  endif()
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/gmd_${name}_headers)
  foreach(file IN LISTS known_empty_headers)
    file(WRITE ${empty}/${file} "")
  endforeach()
  _gmd_cuda_runtime(cudart)

  add_library(gmd_${name} MODULE ${GMD_LIB_DIR}/adapters/known/${known_source})
  target_include_directories(gmd_${name} SYSTEM PRIVATE ${include} ${arg_INCLUDES} ${empty})
  target_compile_definitions(gmd_${name} PRIVATE ${known_definitions})
  target_link_libraries(gmd_${name} PRIVATE gmd::abi ${arg_LIBRARIES} ${cudart})
  set_target_properties(gmd_${name} PROPERTIES CXX_STANDARD ${known_standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()
