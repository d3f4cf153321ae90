/* memory_file.c — one file in memory, with a link of the requested name, in a folder deleted when the program ends. */
#include "tests/fuzz/memory_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char folder[] = "/tmp/mdot-fuzz-XXXXXX", path[128];
static int file = -1;

static void clean(void)
{
    if (path[0] != '\0') unlink(path);
    rmdir(folder);
}

static void open_file(void)
{
    file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || mkdtemp(folder) == NULL) abort();
    atexit(clean);
}

const char *memory_file(const uint8_t *data, size_t size, const char *name)
{
    char target[64], wanted[sizeof path];
    if (file < 0) open_file();
    snprintf(target, sizeof target, "/proc/self/fd/%d", file);
    snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
    if (strcmp(path, wanted) != 0) {
        if (path[0] != '\0') unlink(path);
        memcpy(path, wanted, sizeof path);
        if (symlink(target, path) != 0 && errno != EEXIST) abort();
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    return path;
}
