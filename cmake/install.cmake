# Defines the installed files and their packages: one package for each library, one for building against them (dev), and one
# each for the command, the simulator and the plugins of Slurm. The installation can be moved, because all paths within it are relative.
include(CMakePackageConfigHelpers)

set(MDOT_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/mdot)
set(parts "mdot runtime" "mdotjob job" "mdotc compiler")
if(MDOT_HAVE_STORE)
  list(APPEND parts "mdotstore store")
endif()
foreach(part IN LISTS parts)
  separate_arguments(part)
  list(GET part 0 library)
  list(GET part 1 component)
  install(
    TARGETS ${library}_shared
    EXPORT ${library}-shared
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT dev)
  install(
    TARGETS ${library}
    EXPORT ${library}-static
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  foreach(kind IN ITEMS shared static)
    install(
      EXPORT ${library}-${kind}
      NAMESPACE mdot::
      FILE ${library}-${kind}.cmake
      DESTINATION ${MDOT_CMAKE_FOLDER}
      COMPONENT dev)
  endforeach()
endforeach()
if(NOT MDOT_HAVE_STORE)
  set(without_store PATTERN mdot_store.h EXCLUDE)
endif()
install(
  DIRECTORY include/mdot cluster/include/mdot
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT dev ${without_store})

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

file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
set(pc_prefix "\${pcfiledir}/${pc_up}")
function(install_pc name description requires requires_private libs_private)
  set(pc_name ${name})
  set(pc_description ${description})
  set(pc_requires ${requires})
  set(pc_requires_private ${requires_private})
  set(pc_libs_private ${libs_private})
  configure_file(cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(
    FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT dev)
endfunction()
set(same "mdot = ${PROJECT_VERSION}")
install_pc(mdot "predict how long a training step takes" "" "" "-ldl -lm -lpthread")
install_pc(mdotjob "training jobs (ONNX) into operator sequences, for mdot" "${same}" "libprotobuf-c" "-lm")
if(MDOT_HAVE_STORE)
  install_pc(mdotstore "measured steps and outcomes of jobs, for mdot" "${same}" "sqlite3" "-lm")
endif()
install_pc(mdotc "compile trained predictors (ONNX), for mdot" "${same}" "libprotobuf-c" "-L${llvm_libdir} ${llvm_libs} -lm")

# ---- The command ----------------------------------------------------------------------------------------------------

# The command finds its predictor in ../share/mdot, which works for every prefix.
install(TARGETS mdot_cli DESTINATION bin COMPONENT command)
install(
  FILES ${MDOT_SHIPPED_PREDICTOR} ${MDOT_PUBLISHED_PREDICTOR} docs/schema.json
  DESTINATION share/mdot
  COMPONENT command)
install(
  FILES LICENSE README.md CHANGELOG.md
  DESTINATION share/doc/mdot
  COMPONENT command)

# ---- The simulator and the plugins of Slurm -------------------------------------------------------------------------

install(TARGETS mdot_simulate mdot_predictions mdot_round DESTINATION bin COMPONENT simulator)
install(
  FILES cluster/simulator/README.md cluster/simulator/IN_YOUR_SCHEDULER.md LICENSE
  DESTINATION share/doc/mdot-simulator
  COMPONENT simulator)
set(packaged runtime job compiler dev command simulator)
if(TARGET job_submit_mdot)
  # Slurm loads plugins of exactly its own version, thus the package depends on the version that it was built with.
  install(TARGETS job_submit_mdot spank_mdot LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/slurm-wlm COMPONENT slurm)
  install(
    FILES cluster/slurm/README.md cluster/slurm/INCENTIVES.md LICENSE
    DESTINATION share/doc/mdot-slurm
    COMPONENT slurm)
  list(APPEND packaged slurm)
  execute_process(COMMAND dpkg-query -W -f "\${source:Upstream-Version}" libslurm-dev OUTPUT_VARIABLE slurm_version ERROR_QUIET)
endif()

# ---- Packages: `cpack` in the build folder --------------------------------------------------------------------------

set(CPACK_PACKAGE_NAME mdot)
set(CPACK_PACKAGE_CONTACT "mdot's authors <mdot@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predict how long a deep-learning training step takes")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)
set(CPACK_COMPONENTS_ALL ${packaged})
if(MDOT_HAVE_STORE)
  list(APPEND CPACK_COMPONENTS_ALL store)
endif()
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_PACKAGE_FILE_NAME mdot-${PROJECT_VERSION}-linux-x86_64)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/runtime)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libmdot${MDOT_SOVERSION})
set(CPACK_DEBIAN_JOB_PACKAGE_NAME libmdotjob${MDOT_SOVERSION})
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME libmdotc${MDOT_SOVERSION})
set(CPACK_DEBIAN_STORE_PACKAGE_NAME libmdotstore${MDOT_SOVERSION})
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libmdot-dev)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME mdot)
foreach(component IN ITEMS RUNTIME JOB COMPILER STORE)
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION libs)
endforeach()
set(CPACK_DEBIAN_SIMULATOR_PACKAGE_NAME mdot-simulator)
set(CPACK_DEBIAN_SIMULATOR_PACKAGE_SECTION science)
set(CPACK_DEBIAN_SLURM_PACKAGE_NAME mdot-slurm)
set(CPACK_DEBIAN_SLURM_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_SLURM_PACKAGE_RECOMMENDS mdot) # the command makes the job files
if(slurm_version)
  set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "slurm-wlm-basic-plugins (>= ${slurm_version}), slurm-wlm-basic-plugins (<< ${slurm_version}.99)")
endif()
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(exactly "(= ${PROJECT_VERSION})")
# dpkg-shlibdeps does not always find the package of libLLVM, because a development package has a link to it.
set(needs_llvm "")
execute_process(COMMAND realpath ${llvm_libdir}/lib${MDOT_LLVM_NAME}.so OUTPUT_VARIABLE llvm_file OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND dpkg-query -S ${llvm_file} OUTPUT_VARIABLE llvm_owner OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(llvm_owner MATCHES "^([^:,]+):")
  set(needs_llvm ${CMAKE_MATCH_1})
endif()
set(CPACK_DEBIAN_JOB_PACKAGE_DEPENDS "libmdot${MDOT_SOVERSION} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS "libmdot${MDOT_SOVERSION} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_STORE_PACKAGE_DEPENDS "libmdot${MDOT_SOVERSION} (>= ${PROJECT_VERSION})")
if(needs_llvm)
  string(APPEND CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS ", ${needs_llvm}")
  set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS ${needs_llvm})
endif()
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libmdot${MDOT_SOVERSION} ${exactly}, libmdotjob${MDOT_SOVERSION} ${exactly}, libmdotc${MDOT_SOVERSION} ${exactly}")
if(MDOT_HAVE_STORE)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libmdotstore${MDOT_SOVERSION} ${exactly}")
endif()
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "binutils | lld") # `mdot compile` links with one of them
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "libmdot: load a predictor, predict; what a scheduler links")
set(CPACK_COMPONENT_JOB_DESCRIPTION "libmdotjob: read training jobs from ONNX files")
set(CPACK_COMPONENT_COMPILER_DESCRIPTION "libmdotc: compile predictors from ONNX files")
set(CPACK_COMPONENT_STORE_DESCRIPTION "libmdotstore: measured steps and outcomes of jobs in a database")
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers, static libraries, CMake package and pkg-config files of mdot's libraries")
set(CPACK_COMPONENT_SIMULATOR_DESCRIPTION "mdot-simulate: published schedulers on traces of clusters, with predicted durations")
set(CPACK_COMPONENT_SLURM_DESCRIPTION "plugins that predict the duration of jobs when they are submitted to Slurm")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "the command mdot, with its predictor, manual pages and completion")
include(CPack)
