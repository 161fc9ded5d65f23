# The target `release` links this build's objects again, into release/, for every system with glibc 2.28 or newer. The binaries depend on nothing
# but glibc. The linker sees stub libraries with glibc 2.28's symbol versions (glibc-*.txt); compat.c has the functions that glibc 2.28 lacks.
# The binaries keep their debug information; scripts/release.mjs splits it off.
set(STUBS ${CMAKE_BINARY_DIR}/stubs)
set(NAMES ${CMAKE_CURRENT_LIST_DIR}/glibc-${CMAKE_SYSTEM_PROCESSOR}.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NAMES})

# Each line: library, number, version, name; of data its bytes.
file(STRINGS ${NAMES} LINES REGEX "^[a-z]")
foreach(LINE ${LINES})
  string(REPLACE " " ";" FIELDS ${LINE})
  list(GET FIELDS 0 LIBRARY)
  list(GET FIELDS 1 NUMBER)
  list(GET FIELDS 2 VERSION)
  list(GET FIELDS 3 NAME)
  list(APPEND STUB_LIBRARIES ${LIBRARY})
  set(NUMBER_OF_${LIBRARY} ${NUMBER})
  list(APPEND VERSIONS_OF_${LIBRARY} ${VERSION})
  string(APPEND NAMES_OF_${LIBRARY}_${VERSION} " ${NAME};")
  list(LENGTH FIELDS COUNT)
  if(COUNT EQUAL 5)
    list(GET FIELDS 4 BYTES)
    string(APPEND DATA_OF_${LIBRARY} ".globl ${NAME}\\n.type ${NAME},@object\\n.size ${NAME},${BYTES}\\n${NAME}: .zero ${BYTES}\\n")
  else()
    string(APPEND CODE_OF_${LIBRARY} ".globl ${NAME}\\n.type ${NAME},@function\\n${NAME}: .byte 0\\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES STUB_LIBRARIES)
foreach(LIBRARY ${STUB_LIBRARIES})
  list(REMOVE_DUPLICATES VERSIONS_OF_${LIBRARY})
  set(MAP "")
  foreach(VERSION ${VERSIONS_OF_${LIBRARY}})
    string(APPEND MAP "${VERSION} { global:${NAMES_OF_${LIBRARY}_${VERSION}} };\n")
  endforeach()
  file(WRITE ${STUBS}/${LIBRARY}.map.new "${MAP}")
  file(WRITE ${STUBS}/${LIBRARY}.c.new "__asm__(\".text\\n${CODE_OF_${LIBRARY}}.data\\n${DATA_OF_${LIBRARY}}\");\n")
  foreach(KIND map c)
    configure_file(${STUBS}/${LIBRARY}.${KIND}.new ${STUBS}/${LIBRARY}.${KIND} COPYONLY)
  endforeach()
  add_library(stub_${LIBRARY} SHARED EXCLUDE_FROM_ALL ${STUBS}/${LIBRARY}.c)
  set_target_properties(stub_${LIBRARY} PROPERTIES PREFIX "" OUTPUT_NAME ${LIBRARY} SOVERSION ${NUMBER_OF_${LIBRARY}} LIBRARY_OUTPUT_DIRECTORY ${STUBS}
    UNITY_BUILD OFF LINK_DEPENDS ${STUBS}/${LIBRARY}.map)
  target_link_options(stub_${LIBRARY} PRIVATE -nostdlib -Wl,--version-script=${STUBS}/${LIBRARY}.map)
  list(APPEND STUB_FILES ${STUBS}/${LIBRARY}.so.${NUMBER_OF_${LIBRARY}})
  list(APPEND STUB_TARGETS stub_${LIBRARY})
endforeach()

add_library(compat OBJECT EXCLUDE_FROM_ALL release/compat.c)
add_library(start OBJECT EXCLUDE_FROM_ALL release/start.c)
set_target_properties(compat start PROPERTIES UNITY_BUILD OFF)

# finish_release(TARGET [LIBRARY...]): sets the link options of a release target.
function(finish_release TARGET)
  set_target_properties(${TARGET} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/release RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/release
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LINKER_LANGUAGE CXX)
  target_link_options(${TARGET} PRIVATE -nodefaultlibs -Wl,--no-undefined -Wl,--disable-new-dtags -Wl,--exclude-libs,ALL)
  target_link_libraries(${TARGET} PRIVATE ${ARGN} -Wl,--push-state,-Bstatic -lstdc++ -lgcc_eh -lgcc -l:libc_nonshared.a -Wl,--pop-state
    -Wl,--push-state,--as-needed ${STUB_FILES} -Wl,--pop-state)
  add_dependencies(${TARGET} ${STUB_TARGETS})
  add_dependencies(release ${TARGET})
endfunction()

add_custom_target(release)
add_library(nccl_release SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:engine> $<TARGET_OBJECTS:compat>)
set_target_properties(nccl_release PROPERTIES OUTPUT_NAME nccl SOVERSION 2 LINK_DEPENDS ${EXPORTS})
target_link_options(nccl_release PRIVATE -Wl,--version-script=${EXPORTS} -Wl,-z,nodelete)
finish_release(nccl_release)

add_library(binding_release MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:binding> $<TARGET_OBJECTS:compat>)
set_target_properties(binding_release PROPERTIES PREFIX "" OUTPUT_NAME ncclrun SUFFIX .node)
finish_release(binding_release nccl_release)
# Node itself exports the Node-API functions.
target_link_options(binding_release PRIVATE -Wl,--unresolved-symbols=ignore-all)

foreach(PROGRAM aggregator dial unpack perf)
  add_executable(${PROGRAM}_release EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ncclrun-${PROGRAM}> $<TARGET_OBJECTS:compat> $<TARGET_OBJECTS:start>)
  target_link_options(${PROGRAM}_release PRIVATE -Wl,--entry=ncclrunStart)
  set_target_properties(${PROGRAM}_release PROPERTIES OUTPUT_NAME ncclrun-${PROGRAM})
endforeach()
finish_release(dial_release)
finish_release(unpack_release)
finish_release(perf_release nccl_release)
finish_release(aggregator_release nccl_release)
foreach(PROGRAM guardian watchdog)  # statically linked
  add_dependencies(release ncclrun-${PROGRAM})
endforeach()
