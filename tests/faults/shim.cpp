// Preloaded into headroom: fails the n-th call of one function, and counts all calls.
//
//   LD_PRELOAD=libheadroom_fault_shim.so HEADROOM_FAULT=write:3 headroom …
//
// Functions: new (any allocation of C++), write, read, rename, fsync, mmap, open.
// HEADROOM_FAULT_LOG names a file that gets the number of calls. Counting begins at `main`: a
// constructor of a global that fails ends any program.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> calls{0};
std::atomic<bool> in_main{false};
char function[16] = "";
long failing = 0;

/// True for the call that fails.
bool fails(const char* name) {
  if (!in_main.load(std::memory_order_relaxed) || std::strcmp(name, function) != 0) return false;
  return ++calls == failing;
}

bool fails(const char* name, int error) {
  if (!fails(name)) return false;
  errno = error;
  return true;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void read_settings() {
  const char* const fault = std::getenv("HEADROOM_FAULT");
  if (fault != nullptr) std::sscanf(fault, "%15[a-z]:%ld", function, &failing);
}

void write_calls() {
  in_main = false;
  const char* const log = std::getenv("HEADROOM_FAULT_LOG");
  if (log == nullptr) return;
  if (std::FILE* const file = std::fopen(log, "w")) {
    std::fprintf(file, "%ld\n", calls.load());
    std::fclose(file);
  }
}

using Main = int(int, char**, char**);
Main* program = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  read_settings();
  std::atexit(write_calls);
  in_main = true;
  return program(argc, argv, environment);
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails("new")) throw std::bad_alloc();
  void* memory = nullptr;
  if (alignment <= sizeof(void*)) {
    memory = std::malloc(size == 0 ? 1 : size);
  } else if (posix_memalign(&memory, alignment, size == 0 ? 1 : size) != 0) {
    memory = nullptr;
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {

int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  program = main;
  return next<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

ssize_t write(int file, const void* data, size_t size) {
  if (fails("write", ENOSPC)) return -1;
  return next<ssize_t(int, const void*, size_t)>("write")(file, data, size);
}

ssize_t read(int file, void* data, size_t size) {
  if (fails("read", EIO)) return -1;
  return next<ssize_t(int, void*, size_t)>("read")(file, data, size);
}

int rename(const char* from, const char* to) {
  if (fails("rename", EIO)) return -1;
  return next<int(const char*, const char*)>("rename")(from, to);
}

int fsync(int file) {
  if (fails("fsync", EIO)) return -1;
  return next<int(int)>("fsync")(file);
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails("mmap", ENOMEM)) return MAP_FAILED;
  return next<void*(void*, size_t, int, int, int, off_t)>("mmap")(address, size, protection, flags,
                                                                  file, offset);
}

int open(const char* path, int flags, ...) {
  if (fails("open", EMFILE)) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

}  // extern "C"
