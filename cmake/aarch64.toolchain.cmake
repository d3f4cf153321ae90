# Debian's cross compiler for 64-bit ARM (package gcc-aarch64-linux-gnu). It builds libmdot alone:
#
#     cmake -S . -B build/aarch64 -G Ninja -D CMAKE_TOOLCHAIN_FILE=cmake/aarch64.toolchain.cmake -D MDOT_COMPILER=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
