# Toolchain: cross-compiles for 64-bit Arm with Debian's g++-aarch64-linux-gnu; what is built runs
# under qemu-user-static.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# Libraries of headers alone are those of the building machine. Its libc's headers lie beside them,
# so that the folder comes after the compiler's own.
set(CMAKE_CXX_FLAGS_INIT "-idirafter /usr/include")
