# mdot_installed_rpath(TARGET): TARGET, which is installed, has the same library path in the build tree as in an
# installation. Otherwise, CMake writes a path for the build tree with separators at the end, as room for the path after
# installation. The loader reads the room as empty elements, meaning the current directory. scripts/check-elf.sh tests
# it.
function(mdot_installed_rpath target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# add_mdot_library(NAME OBJECTS TARGET… [ARCHIVES TARGET…] [NEEDS TARGET…] [SYSTEM TARGET…]): one of the installed
# libraries, as NAME (static) and NAME_shared, made from the objects of the given object libraries, and called objects
# in static libraries. NEEDS: mdot's own libraries with called public functions. SYSTEM: other libraries; a program with
# the static one must link them, too.
#
# Both export only public functions. Objects are compiled with hidden visibility, which the public headers override. The
# shared library exports the functions in <folder>/lib<NAME>.map, with symbol versions. The static library is one
# prelinked object, in which hidden symbols are local. Therefore a program may link several of the libraries, although
# each has copies of shared code. The program may also have functions with the same names.
function(add_mdot_library name)
  cmake_parse_arguments(arg "" "" "OBJECTS;ARCHIVES;NEEDS;SYSTEM" ${ARGN})
  set(objects ${arg_OBJECTS})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  set(archives ${arg_ARCHIVES})
  list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>")

  set(merged ${CMAKE_CURRENT_BINARY_DIR}/lib${name}.o)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} ${objects} ${archives}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
    DEPENDS ${objects} ${arg_ARCHIVES}
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${name} STATIC ${merged})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C EXPORT_NAME ${name}-static)
  set(needs_static ${arg_NEEDS})
  list(TRANSFORM needs_static REPLACE "(.+)" "mdot::\\1-static")
  target_link_libraries(${name} INTERFACE ${needs_static} ${arg_SYSTEM})

  set(map ${CMAKE_CURRENT_SOURCE_DIR}/lib${name}.map)
  add_library(${name}_shared SHARED ${objects})
  set_target_properties(
    ${name}_shared
    PROPERTIES OUTPUT_NAME ${name}
               EXPORT_NAME ${name}
               VERSION ${mdot_VERSION}
               SOVERSION ${MDOT_SOVERSION}
               LINKER_LANGUAGE C
               LINK_DEPENDS ${map})
  mdot_installed_rpath(${name}_shared)
  foreach(need IN LISTS arg_NEEDS) # so that $ORIGIN suffices in the build tree, too
    add_custom_command(
      TARGET ${name}_shared
      POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:mdot::${need}>
              $<TARGET_FILE_DIR:${name}_shared>/$<TARGET_SONAME_FILE_NAME:mdot::${need}>
      VERBATIM)
    set_property(TARGET ${name}_shared PROPERTY INSTALL_RPATH $ORIGIN)
  endforeach()
  target_link_options(${name}_shared PRIVATE LINKER:--version-script=${map})
  if(NOT MDOT_ASAN AND NOT MDOT_TSAN) # the sanitizer's runtime library belongs to the program
    target_link_options(${name}_shared PRIVATE LINKER:-z,defs)
  endif()
  set(needs_shared ${arg_NEEDS})
  list(TRANSFORM needs_shared PREPEND mdot::)
  target_link_libraries(${name}_shared PUBLIC ${needs_shared} PRIVATE ${arg_ARCHIVES} ${arg_SYSTEM})

  foreach(library ${name} ${name}_shared)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  add_library(mdot::${name} ALIAS ${name}_shared) # the names in an installation
  add_library(mdot::${name}-static ALIAS ${name})
endfunction()

# install_mdot_library(NAME COMPONENT CMAKE_FOLDER DEV): the shared library in its component, and the rest in component DEV.
function(install_mdot_library name component folder dev)
  install(
    TARGETS ${name}_shared
    EXPORT ${name}-shared
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT ${dev})
  install(
    TARGETS ${name}
    EXPORT ${name}-static
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${dev})
  foreach(kind IN ITEMS shared static)
    install(
      EXPORT ${name}-${kind}
      NAMESPACE mdot::
      FILE ${name}-${kind}.cmake
      DESTINATION ${folder}
      COMPONENT ${dev})
  endforeach()
endfunction()

# install_mdot_pc(NAME DESCRIPTION REQUIRES REQUIRES_PRIVATE LIBS_PRIVATE COMPONENT): a library's file for pkg-config.
set(MDOT_PC_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/library.pc.in)
function(install_mdot_pc pc_name pc_description pc_requires pc_requires_private pc_libs_private dev)
  file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
  set(pc_prefix "\${pcfiledir}/${pc_up}")
  configure_file(${MDOT_PC_TEMPLATE} ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(
    FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${dev})
endfunction()

# The command that turns a page of Markdown into a man page.
set(MDOT_MAN_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/man.awk)
set(MDOT_MAN_PAGE awk -v version=${mdot_VERSION} -f ${MDOT_MAN_SCRIPT})

# mdot_program_documents(TARGET NAME COMPONENT): man page and completion of a program without subcommands
# (base/command/command.h).
function(mdot_program_documents target name component)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/documents)
  add_custom_command(
    OUTPUT ${folder}/${name}.1 ${folder}/${name} ${folder}/_${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${target} --markdown > ${folder}/${name}.md
    COMMAND ${MDOT_MAN_PAGE} ${folder}/${name}.md > ${folder}/${name}.1
    COMMAND ${target} --completion=bash > ${folder}/${name}
    COMMAND ${target} --completion=zsh > ${folder}/_${name}
    DEPENDS ${target} ${MDOT_MAN_SCRIPT}
    COMMENT "man page and completion of ${name}")
  add_custom_target(${target}_documents ALL DEPENDS ${folder}/${name}.1)
  install(FILES ${folder}/${name}.1 DESTINATION share/man/man1 COMPONENT ${component})
  install(FILES ${folder}/${name} DESTINATION share/bash-completion/completions COMPONENT ${component})
  install(FILES ${folder}/_${name} DESTINATION share/zsh/site-functions COMPONENT ${component})
endfunction()

# add_mdot_objects(NAME SOURCE…): one folder's objects. Tests link them directly, and libraries hide the symbols.
function(add_mdot_objects name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden)
endfunction()

# mdot_embed_texts(OUTPUT HEADER PREFIX TEXT…): writes OUTPUT, a C file with the texts as constants (embed_text.cmake).
function(mdot_embed_texts output header prefix)
  string(REPLACE ";" "," texts "${ARGN}")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D HEADER=${header} -D PREFIX=${prefix} -D TEXTS=${texts} -P
            ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    VERBATIM)
endfunction()
