# Writes OUTPUT, a header with the package's version and a hash of the engine's sources:
#   cmake -DPACKAGE=package.json -DOUTPUT=engine_version.h -DDIRECTORY=native -P version.cmake
file(GLOB_RECURSE SOURCES RELATIVE ${DIRECTORY}
  ${DIRECTORY}/abi/* ${DIRECTORY}/algorithm/* ${DIRECTORY}/core/* ${DIRECTORY}/device/* ${DIRECTORY}/dl/* ${DIRECTORY}/include/*
  ${DIRECTORY}/transport/*)
list(SORT SOURCES)
set(HASHES "")
foreach(SOURCE ${SOURCES})
  file(SHA256 ${DIRECTORY}/${SOURCE} HASH)
  string(APPEND HASHES "${SOURCE} ${HASH}\n")
endforeach()
string(SHA256 HASH "${HASHES}")
string(SUBSTRING ${HASH} 0 8 HASH)
file(READ ${PACKAGE} JSON)
string(REGEX MATCH "\"version\": *\"([^\"]+)\"" _ "${JSON}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define NCCLRUN_ENGINE_VERSION \"${CMAKE_MATCH_1}+${HASH}\"\n" @ONLY)
