# mdot_installed_rpath(TARGET): TARGET, which is installed, has the same library path in the build tree as in an installation.
# Otherwise, CMake writes a path for the build tree that ends with separators, which are room for the path that it writes when it
# installs the file. The loader reads the room as empty elements, which mean the current directory. scripts/check-elf.sh tests it.
function(mdot_installed_rpath target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# add_mdot_library(NAME OBJECTS TARGET… [NEEDS TARGET…] [SYSTEM TARGET…]): one of the installed libraries, as NAME (static)
# and NAME_shared, made of the objects of the given object libraries. NEEDS: mdot's own libraries whose public functions it
# calls. SYSTEM: other libraries, which a program that links the static one must link, too.
#
# Both export only public functions. Objects are compiled with hidden visibility, which the public headers override. The shared
# library exports the functions in <folder>/lib<NAME>.map, with symbol versions. The static library is one prelinked object, in
# which hidden symbols are local. Therefore a program may link several of the libraries, although each has copies of the code
# that it shares with others. The program may also have functions of the same names.
function(add_mdot_library name)
  cmake_parse_arguments(arg "" "" "OBJECTS;NEEDS;SYSTEM" ${ARGN})
  set(objects ${arg_OBJECTS})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")

  set(merged ${CMAKE_CURRENT_BINARY_DIR}/lib${name}.o)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
    DEPENDS ${objects}
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${name} STATIC ${merged})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C EXPORT_NAME ${name}-static)
  target_link_libraries(${name} INTERFACE ${arg_NEEDS} ${arg_SYSTEM})

  set(map ${CMAKE_CURRENT_SOURCE_DIR}/lib${name}.map)
  add_library(${name}_shared SHARED ${objects})
  set_target_properties(
    ${name}_shared
    PROPERTIES OUTPUT_NAME ${name}
               EXPORT_NAME ${name}
               VERSION ${PROJECT_VERSION}
               SOVERSION ${MDOT_SOVERSION}
               LINKER_LANGUAGE C
               LINK_DEPENDS ${map})
  mdot_installed_rpath(${name}_shared)
  foreach(need IN LISTS arg_NEEDS) # so that $ORIGIN suffices in the build tree, too
    add_custom_command(
      TARGET ${name}_shared
      POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${need}_shared>
              $<TARGET_FILE_DIR:${name}_shared>/$<TARGET_SONAME_FILE_NAME:${need}_shared>
      VERBATIM)
    set_property(TARGET ${name}_shared PROPERTY INSTALL_RPATH $ORIGIN)
  endforeach()
  target_link_options(${name}_shared PRIVATE LINKER:--version-script=${map})
  if(NOT MDOT_ASAN AND NOT MDOT_TSAN) # the sanitizer's runtime library belongs to the program
    target_link_options(${name}_shared PRIVATE LINKER:-z,defs)
  endif()
  set(needs_shared ${arg_NEEDS})
  list(TRANSFORM needs_shared APPEND _shared)
  target_link_libraries(${name}_shared PUBLIC ${needs_shared} PRIVATE ${arg_SYSTEM})

  foreach(library ${name} ${name}_shared)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
endfunction()

# add_mdot_objects(NAME SOURCE…): the objects of one folder. Tests link them directly, and libraries hide their symbols.
function(add_mdot_objects name)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden)
endfunction()
