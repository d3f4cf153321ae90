/* temp_dir.c — see artefact.h.
 *
 * A killed compilation leaves its folder behind. Each compilation holds a lock (flock) on its folder, which the
 * kernel releases with the process. So a folder whose lock can be acquired is abandoned, and the next compilation
 * beside it removes it. Linkers create files with names of their own. Therefore all files are removed if the folder
 * has a marker. The marker is the first file in it and shows that the folder belongs to a compilation. Otherwise only
 * the known files are removed, and then the folder if it is empty. On file systems without locks every folder stays.
 */
#include "codegen/artefact.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_LENGTH = sizeof BS_TEMPORARY_PREFIX - 1, RANDOM_LENGTH = 6 /* length of mkdtemp's suffix */ };

static const char *const names[CG_WORK_FILE_COUNT] = {"data.o", "code.o", "export.map", "linker.txt", "linked.mdot"};
static const char marker[] = "made-by-mdot";

static bool has_file(int folder, const char *name)
{
    struct stat info;
    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

static void remove_known_files(int folder)
{
    for (int i = 0; i < CG_WORK_FILE_COUNT; i++) unlinkat(folder, names[i], 0);
}

/* Requires a folder with a marker. The marker is removed last, so it survives if this process is killed meanwhile. */
static void remove_all_files(int folder)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = listed >= 0 ? fdopendir(listed) : NULL;
    if (list != NULL) {
        for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
            if (strcmp(entry->d_name, marker) != 0 && has_file(folder, entry->d_name))
                unlinkat(folder, entry->d_name, 0);
        closedir(list);
    } else {
        if (listed >= 0) close(listed);
        remove_known_files(folder);
    }
    unlinkat(folder, marker, 0);
}

static bool is_named_like_one(const char *name)
{
    return strncmp(name, BS_TEMPORARY_PREFIX, PREFIX_LENGTH) == 0 && strlen(name) == PREFIX_LENGTH + RANDOM_LENGTH;
}

static void remove_if_stale(int parent, const char *name)
{
    if (!is_named_like_one(name)) return;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    struct stat info;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0) {
        if (has_file(folder, marker))
            remove_all_files(folder);
        else
            remove_known_files(folder);
        unlinkat(parent, name, AT_REMOVEDIR); /* fails if other files are in it */
    }
    close(folder);
}

static void remove_stale(const char *parent)
{
    DIR *list = opendir(parent);
    if (list == NULL) return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        remove_if_stale(dirfd(list), entry->d_name);
        bs_remove_if_stale(dirfd(list), entry->d_name);
    }
    closedir(list);
}

/* Between creating and locking a folder, another process may consider it abandoned and remove it. Returns true if
 * the folder exists, and is locked if the file system has locks. */
static bool hold(const char *directory, int *out_lock)
{
    int lock = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat held, there;
    bool is_taken = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    bool is_there = lock >= 0 && !is_taken && fstat(lock, &held) == 0 && stat(directory, &there) == 0 &&
                    held.st_dev == there.st_dev && held.st_ino == there.st_ino;
    if (is_there) {
        *out_lock = lock;
        return true;
    }
    if (lock >= 0) close(lock);
    return false;
}

static bool write_marker(int folder)
{
    int descriptor = openat(folder, marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
}

static mdot_status make_directory(const char *path, cg_temp_dir *w, mdot_error *err)
{
    enum { MAX_ATTEMPTS = 16 };
    size_t length = strlen(w->directory);
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        memset(w->directory + length - RANDOM_LENGTH, 'X', RANDOM_LENGTH);
        if (mkdtemp(w->directory) == NULL) break;
        bool is_held = hold(w->directory, &w->lock);
        if (is_held && write_marker(w->lock)) return MDOT_OK;
        int failed = errno;
        rmdir(w->directory);
        errno = failed;
        if (!is_held) continue;
        close(w->lock);
        break;
    }
    return mdot_fail(err, MDOT_IO, "%s: cannot create a temporary folder next to it: %s", path, strerror(errno));
}

mdot_status cg_temp_dir_open(const char *path, ir_arena *arena, cg_temp_dir *out, mdot_error *err)
{
    const char *slash = strrchr(path, '/');
    int parent_length = slash == NULL ? 0 : (int)(slash - path + 1);
    cg_temp_dir w = {.directory = ir_arena_printf(arena, "%.*s" BS_TEMPORARY_PREFIX "XXXXXX", parent_length, path)};
    const char *parent = slash == NULL ? "." : ir_arena_printf(arena, "%.*s", parent_length, path);
    if (w.directory == NULL || parent == NULL) return BS_OUT_OF_MEMORY(err, "%s", path);
    remove_stale(parent);
    BS_TRY(make_directory(path, &w, err));
    for (int i = 0; i < CG_WORK_FILE_COUNT; i++) {
        w.file[i] = ir_arena_printf(arena, "%s/%s", w.directory, names[i]);
        if (w.file[i] != NULL) continue;
        cg_temp_dir_close(&w);
        return BS_OUT_OF_MEMORY(err, "%s", path);
    }
    *out = w;
    return MDOT_OK;
}

void cg_temp_dir_close(const cg_temp_dir *w)
{
    remove_all_files(w->lock);
    rmdir(w->directory);
    close(w->lock);
}
