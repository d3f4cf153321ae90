# The installed files of the companion: programs and documents (component `cluster`), libmdotstore, and the plugins of Slurm.
include(CMakePackageConfigHelpers)
install(TARGETS mdot_simulate mdot_predictions mdot_durations DESTINATION bin COMPONENT cluster)
# LICENSE is absent from a copy of this folder alone.
install(FILES ../LICENSE DESTINATION share/doc/mdot-cluster OPTIONAL COMPONENT cluster)
install(
  FILES README.md docs/compare-schedulers.md docs/simulator.md docs/results.md docs/in-your-scheduler.md
  DESTINATION share/doc/mdot-cluster
  COMPONENT cluster)
if(TARGET mdotstore)
  install(TARGETS mdot_store_command DESTINATION bin COMPONENT cluster)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/mdot-store)
  install_mdot_library(mdotstore store ${folder} cluster_dev)
  install_mdot_pc(mdotstore "measured steps and outcomes of jobs, for mdot" "mdot = ${mdot_VERSION}" "sqlite3" "-lm" cluster_dev)
  install(FILES include/mdot/mdot_store.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mdot COMPONENT cluster_dev)
  configure_package_config_file(store/mdot-storeConfig.cmake.in ${PROJECT_BINARY_DIR}/mdot-storeConfig.cmake
                                INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/mdot-storeConfigVersion.cmake
    VERSION ${mdot_VERSION}
    COMPATIBILITY SameMinorVersion)
  install(
    FILES ${PROJECT_BINARY_DIR}/mdot-storeConfig.cmake ${PROJECT_BINARY_DIR}/mdot-storeConfigVersion.cmake
    DESTINATION ${folder}
    COMPONENT cluster_dev)
endif()
if(TARGET mdotd)
  install(TARGETS mdotd DESTINATION bin COMPONENT service)
  install(FILES service/systemd/mdotd.service service/systemd/mdotd.socket DESTINATION lib/systemd/system COMPONENT service)
  install(FILES service/systemd/mdotd.sysusers DESTINATION lib/sysusers.d RENAME mdotd.conf COMPONENT service)
  install(FILES service/openapi.json service/Containerfile docs/serve-predictions.md DESTINATION share/doc/mdotd COMPONENT service)
  install(FILES ../LICENSE DESTINATION share/doc/mdotd OPTIONAL COMPONENT service)
endif()
if(TARGET job_submit_mdot)
  # Slurm's PluginDir in Debian, whatever prefix this build was configured for
  set(plugin_folder ${CMAKE_INSTALL_LIBDIR})
  if(CMAKE_LIBRARY_ARCHITECTURE)
    set(plugin_folder lib/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  install(TARGETS job_submit_mdot spank_mdot LIBRARY DESTINATION ${plugin_folder}/slurm-wlm COMPONENT slurm)
  install(
    FILES slurm/README.md slurm/INCENTIVES.md slurm/mdot.conf docs/run-in-slurm.md
    DESTINATION share/doc/mdot-slurm
    COMPONENT slurm)
  install(FILES ../LICENSE DESTINATION share/doc/mdot-slurm OPTIONAL COMPONENT slurm)
endif()
