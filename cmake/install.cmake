# Defines the installed files: one component for each library, `dev` for building against them, `base` for the companions, and one
# for the command. The installation can be moved, because all paths within it are relative.
include(CMakePackageConfigHelpers)

set(MDOT_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/mdot)
install_mdot_library(mdot runtime ${MDOT_CMAKE_FOLDER} dev)
install_mdot_library(mdotjob job ${MDOT_CMAKE_FOLDER} dev)
install_mdot_library(mdotc compiler ${MDOT_CMAKE_FOLDER} dev)
install(DIRECTORY include/mdot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# ---- base/, for the companions: its interface may change with each version ------------------------------------------

set(base_targets mdot_base_archive)
if(MDOT_TESTS)
  list(APPEND base_targets mdot_testing)
  install(FILES tests/support/json.h tests/support/process.h tests/support/shard.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mdot-base/tests/support COMPONENT base)
endif()
install(TARGETS ${base_targets} EXPORT mdot-base ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT base)
install(EXPORT mdot-base NAMESPACE mdot:: FILE mdot-base.cmake DESTINATION ${MDOT_CMAKE_FOLDER} COMPONENT base)
install(DIRECTORY base DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mdot-base COMPONENT base FILES_MATCHING PATTERN *.h)
install(FILES runtime/job/configuration_table.h runtime/job/configuration.def runtime/job/option_words.def
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mdot-base/runtime/job COMPONENT base)
install(FILES cmake/MdotFlags.cmake cmake/MdotLibrary.cmake cmake/MdotTest.cmake cmake/library.pc.in cmake/man.awk
        DESTINATION ${MDOT_CMAKE_FOLDER} COMPONENT base)

# ---- find_package(mdot) ---------------------------------------------------------------------------------------------

string(REGEX REPLACE "^-l" "" MDOT_LLVM_NAME "${llvm_libs}")
configure_package_config_file(cmake/mdotConfig.cmake.in ${PROJECT_BINARY_DIR}/mdotConfig.cmake
                              INSTALL_DESTINATION ${MDOT_CMAKE_FOLDER})
# While the version is 0.x, each minor version has a different interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mdotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/mdotConfig.cmake ${PROJECT_BINARY_DIR}/mdotConfigVersion.cmake
  DESTINATION ${MDOT_CMAKE_FOLDER}
  COMPONENT dev)

# ---- pkg-config -----------------------------------------------------------------------------------------------------

set(same "mdot = ${PROJECT_VERSION}")
install_mdot_pc(mdot "predict how long a training step takes" "" "" "-ldl -lm -lpthread" dev)
install_mdot_pc(mdotjob "training jobs into operator sequences, for mdot" "${same}" "libprotobuf-c, json-c, zlib" "-lm" dev)
install_mdot_pc(mdotc "compile trained predictors (ONNX), for mdot" "${same}" "libprotobuf-c" "-L${llvm_libdir} ${llvm_libs} -lm" dev)

# ---- The command ----------------------------------------------------------------------------------------------------

# The command finds the predictor in ../share/mdot, under every prefix.
install(TARGETS mdot_cli DESTINATION bin COMPONENT command)
install(TARGETS mdot_cli_compiler DESTINATION libexec/mdot COMPONENT command)
install(
  FILES ${MDOT_SHIPPED_PREDICTOR} ${MDOT_INTERFERENCE} ${MDOT_PUBLISHED_PREDICTOR} docs/schema.json
  DESTINATION share/mdot
  COMPONENT command)
install(
  FILES LICENSE README.md CHANGELOG.md
  DESTINATION share/doc/mdot
  COMPONENT command)
install(DIRECTORY examples/jobs weights/jobs DESTINATION share/mdot COMPONENT command
        FILES_MATCHING PATTERN *.onnx PATTERN *.csv PATTERN *.json PATTERN *.json.gz PATTERN *.job PATTERN *.job.gz)
