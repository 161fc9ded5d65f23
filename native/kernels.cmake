# Makes build/kernels: NAME.fatbin for each of MODULES, and "architectures" (cuda/kernel_files.h).
if(NOT NVCC)
  message(FATAL_ERROR "kernels are wanted for ${NCCLRUN_CUDA_ARCHITECTURES}, but there is no nvcc in the PATH or in /usr/local/cuda/bin")
endif()
file(GLOB DEVICE_HEADERS CONFIGURE_DEPENDS algorithm/*.h base/element.h base/function.h cuda/kernels/*.cuh plan/launch_format.h)
list(GET NCCLRUN_CUDA_ARCHITECTURES 0 OLDEST)
string(REGEX MATCHALL "[0-9]+" NUMBERS "${NCCLRUN_CUDA_ARCHITECTURES}")  # of 90a: 90
string(REGEX MATCH "[0-9]+" OLDEST_NUMBER "${OLDEST}")
set(NVCC_FLAGS -std=c++20 -O3 --expt-relaxed-constexpr -I${CMAKE_CURRENT_SOURCE_DIR} -gencode arch=compute_${OLDEST},code=compute_${OLDEST})
foreach(ARCHITECTURE ${NCCLRUN_CUDA_ARCHITECTURES})
  list(APPEND NVCC_FLAGS -gencode arch=compute_${ARCHITECTURE},code=sm_${ARCHITECTURE})
endforeach()
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE NVCC_VERSION ERROR_QUIET)
if(NCCLRUN_WARNINGS_ARE_ERRORS AND NVCC_VERSION MATCHES "release 13[.]0")
  list(APPEND NVCC_FLAGS -Werror all-warnings)
endif()
# A quarter of the size, which is what every host has to be sent.
execute_process(COMMAND ${NVCC} --help OUTPUT_VARIABLE NVCC_HELP ERROR_QUIET)
if(NVCC_HELP MATCHES "--compress-mode")
  list(APPEND NVCC_FLAGS --compress-mode=size)
endif()

# add_kernels(DIRECTORY OUT NAMES [FLAG...]): `OUT` gets the paths of the files in DIRECTORY, a module each. Other flags make other kernels.
function(add_kernels DIRECTORY OUT NAMES)
  set(FLAGS ${NVCC_FLAGS} ${ARGN})
  file(GENERATE OUTPUT ${DIRECTORY}/flags CONTENT "${NVCC_VERSION}${FLAGS}")
  foreach(NAME ${NAMES})
    set(FATBIN ${DIRECTORY}/${NAME}.fatbin)
    add_custom_command(OUTPUT ${FATBIN}
      COMMAND ${NVCC} ${FLAGS} -fatbin ${CMAKE_CURRENT_SOURCE_DIR}/cuda/kernels/${NAME}.cu -o ${FATBIN}.new
      COMMAND ${CMAKE_COMMAND} -E rename ${FATBIN}.new ${FATBIN}
      DEPENDS cuda/kernels/${NAME}.cu ${DEVICE_HEADERS} ${DIRECTORY}/flags VERBATIM COMMENT "Compiling kernels: ${NAME}")
    list(APPEND FATBINS ${FATBIN})
  endforeach()
  set(${OUT} ${FATBINS} PARENT_SCOPE)
endfunction()

set(NCCLRUN_KERNELS_OUT ${CMAKE_CURRENT_SOURCE_DIR}/../build/kernels CACHE PATH "where the kernels go")
set(KERNELS ${NCCLRUN_KERNELS_OUT})
add_kernels(${KERNELS} FATBINS "${MODULES}")
# Last: it tells that the others are there.
string(JOIN " " NUMBERS ${NUMBERS})
add_custom_command(OUTPUT ${KERNELS}/architectures
  COMMAND ${CMAKE_COMMAND} -E echo "sm ${NUMBERS} ptx ${OLDEST_NUMBER}" > ${KERNELS}/architectures
  DEPENDS ${FATBINS} VERBATIM)
add_custom_target(kernels ALL DEPENDS ${KERNELS}/architectures)

# For test/gpu: the same with delays. Two kinds of numbers, and moves, are enough.
add_kernels(${CMAKE_CURRENT_SOURCE_DIR}/../build/kernels-delayed DELAYED_KERNELS "bytes;float32_float64;integer32" -DNCCLRUN_TEST_DELAYS)
add_custom_target(delayed-kernels DEPENDS ${DELAYED_KERNELS})
