/* link.c — the artefact's parts → one file, by the system's linker; the last step of a compilation.
 *
 * All work happens in a private directory beside the output, which is removed on every path. Therefore a failure leaves
 * the output unchanged, and a success replaces it at once. The linker is started without a shell, in the program's
 * process group, so a signal from the terminal ends both. A linker that hangs is killed. */
#include "codegen/artefact.h"

#include "base/elf_read.h"
#include "base/file.h"
#include "codegen/backend.h"
#include "mdot/mdot_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LINKER_OUTPUT_BYTES = 800 };

/* The linker's time limit: a hundred times the need of a busy machine, plus the copied bytes at 10 MB/s. KILLED_MS
 * limits the wait for a killed linker. */
enum { LINKER_MS = 600000, LINKER_BYTES_PER_MS = 10000, KILLED_MS = 10000 };

static mdot_status write_file(const char *path, const void *bytes, size_t size_bytes, mdot_error *err)
{
    FILE *file = fopen(path, "wbxe");
    if (file == NULL) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    bool written = fwrite(bytes, 1, size_bytes, file) == size_bytes;
    if (fclose(file) != 0 || !written) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    return MDOT_OK;
}

/* Only the interface's symbols are visible, so kernels may have any name. lld refuses names that no object defines, so
 * absent sections are left out of the map. */
static mdot_status write_export_map(const char *path, const cg_data_section *sections, size_t count, mdot_error *err)
{
    char map[512];
    size_t used = (size_t)snprintf(map, sizeof map, "{ global: " MDOT_ABI_SYMBOL_CODE ";");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(map + used, sizeof map - used, " %s;", sections[i].symbol);
    used += (size_t)snprintf(map + used, sizeof map - used, " local: *; };\n");
    return write_file(path, map, used, err);
}

static size_t size_of(const cg_parts *parts)
{
    size_t bytes = parts->code_bytes;
    for (size_t i = 0; i < parts->section_count; i++) bytes += parts->sections[i].size_bytes;
    return bytes;
}

/* Bytes of CPU code and the weights it addresses. */
static size_t reached_bytes(const cg_parts *parts)
{
    size_t bytes = parts->code_bytes;
    for (size_t i = 0; i < parts->section_count; i++)
        if (strcmp(parts->sections[i].name, MDOT_ABI_SECTION_WEIGHTS) == 0) bytes += parts->sections[i].size_bytes;
    return bytes;
}

static mdot_status write_parts(const cg_temp_dir *w, const cg_parts *parts, mdot_error *err)
{
    BS_TRY(cg_elf_write_object(w->file[CG_DATA_OBJECT], parts->machine->elf_machine, parts->sections,
                               parts->section_count, err));
    BS_TRY(write_file(w->file[CG_CODE_OBJECT], parts->code, parts->code_bytes, err));
    return write_export_map(w->file[CG_EXPORT_MAP], parts->sections, parts->section_count, err);
}

/* Starts the linker with this name from the first folder in PATH that has it. A process with more rights than its user
 * (setuid) uses the system's own folders, because the user sets PATH. Returns 0 or an error number. */
static int start_in_path(const char *linker, const posix_spawn_file_actions_t *actions, char **arguments,
                         pid_t *out_process)
{
    static const char system_path[] = "/usr/bin:/bin";
    char program[PATH_MAX];
    const char *folder = secure_getenv("PATH");
    int failed = ENOENT;
    if (folder == NULL || *folder == '\0') folder = system_path;
    while (failed != 0 && folder != NULL) {
        const char *end = strchrnul(folder, ':');
        int length = snprintf(program, sizeof program, "%.*s/%s", (int)(end - folder), folder, linker);
        bool is_absolute = folder[0] == '/' && length > 0 && (size_t)length < sizeof program;
        if (is_absolute && access(program, X_OK) == 0)
            failed = posix_spawn(out_process, program, actions, NULL, arguments, environ);
        folder = *end == ':' ? end + 1 : NULL;
    }
    return failed;
}

/* Starts the first linker found; its output goes to a file. */
static mdot_status start_linker(const cg_temp_dir *w, const cg_machine *machine, pid_t *out_process,
                                const char **out_name, mdot_error *err)
{
    char *arguments[] = {"ld", "-m", (char *)machine->emulation, "-shared", "-nostdlib", "-Bsymbolic",
                         "--hash-style=gnu", "--build-id=sha1",
                         /* makes an undefined symbol an error here, rather than at open */
                         "-z", "defs", "-z", "noexecstack", "-z", "separate-code", "-z", "norelro", "-soname",
                         "predictor.mdot", "--version-script", w->file[CG_EXPORT_MAP], "-o", w->file[CG_LINKED],
                         w->file[CG_CODE_OBJECT], w->file[CG_DATA_OBJECT], NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    int failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, w->file[CG_LINKER_OUTPUT],
                                                  O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (failed == 0) {
        failed = ENOENT;
        for (int i = 0; i < CG_LINKERS && failed == ENOENT; i++) {
            *out_name = machine->linkers[i];
            failed = start_in_path(machine->linkers[i], &actions, arguments, out_process);
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) return MDOT_OK;
    return mdot_fail(err, failed == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_TOOLCHAIN,
                     "no linker for %s could be started (%s, %s or %s): %s", machine->name, machine->linkers[0],
                     machine->linkers[1], machine->linkers[2], strerror(failed));
}

static void read_linker_output(const cg_temp_dir *w, char text[LINKER_OUTPUT_BYTES])
{
    unsigned char *output = NULL;
    size_t length = 0;
    if (bs_read_file(w->file[CG_LINKER_OUTPUT], &output, &length, NULL) == MDOT_OK)
        while (length > 0 && output[length - 1] == '\n') output[--length] = '\0';
    snprintf(text, LINKER_OUTPUT_BYTES, "%s", output != NULL ? (const char *)output : "");
    free(output);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True if the process ends within the limit. */
static bool wait_for(pid_t process, int64_t limit_ms, int *out_result)
{
    const struct timespec one_ms = {.tv_nsec = 1000000};
    const int64_t begin_ms = now_ms();
    for (;;) {
        pid_t ended = waitpid(process, out_result, WNOHANG);
        /* ECHILD: the program ignores SIGCHLD and the exit status is lost; the linked file shows the result */
        if (ended == process || (ended < 0 && errno != EINTR)) return true;
        if (now_ms() - begin_ms >= limit_ms) return false;
        nanosleep(&one_ms, NULL); /* a program's signals may end it early */
    }
}

static mdot_status run_linker(const cg_temp_dir *w, const cg_parts *parts, mdot_error *err)
{
    pid_t process;
    const char *name = NULL;
    BS_TRY(start_linker(w, parts->machine, &process, &name, err));
    int result = 0;
    int64_t limit_ms = parts->linker_limit_ms > 0 ? parts->linker_limit_ms
                                                  : LINKER_MS + (int64_t)(size_of(parts) / LINKER_BYTES_PER_MS);
    if (!wait_for(process, limit_ms, &result)) {
        kill(process, SIGKILL);
        wait_for(process, KILLED_MS, &result);
        return mdot_fail(err, MDOT_TOOLCHAIN, "linking failed: %s did not end within %g s and was killed", name,
                         1e-3 * (double)limit_ms);
    }
    if (result == 0 && access(w->file[CG_LINKED], R_OK) == 0) return MDOT_OK;
    char output[LINKER_OUTPUT_BYTES];
    read_linker_output(w, output);
    return mdot_fail(err, MDOT_TOOLCHAIN, "linking failed: %s",
                     output[0] != '\0' ? output : "the linker gave no reason");
}

static bool write_at(int descriptor, const void *bytes, size_t size_bytes, size_t offset)
{
    return pwrite(descriptor, bytes, size_bytes, (off_t)offset) == (ssize_t)size_bytes;
}

/* The mapping reflects writes through the descriptor, so the checksum covers the size written just before. */
static mdot_status seal_mapped(int descriptor, const void *file, size_t file_bytes, const cg_machine *machine,
                               const char *path, mdot_error *err)
{
    bs_elf elf;
    bs_elf_section table;
    if (bs_elf_open(file, file_bytes, "an artefact", machine->elf_machine, &elf, NULL) != MDOT_OK ||
        !bs_elf_section_named(&elf, MDOT_ABI_SECTION_TABLE, &table) || table.bytes == NULL ||
        table.size_bytes < sizeof(mdot_abi_table))
        return mdot_fail(err, MDOT_TOOLCHAIN, "the linked file lacks section " MDOT_ABI_SECTION_TABLE);
    size_t index = (size_t)table.offset;
    uint64_t size = file_bytes;
    bool written = write_at(descriptor, &size, sizeof size, index + offsetof(mdot_abi_table, file_bytes));
    if (written) {
        uint64_t checksum = mdot_abi_file_checksum(file, file_bytes, index);
        written = write_at(descriptor, &checksum, sizeof checksum, index + offsetof(mdot_abi_table, checksum));
    }
    if (!written) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    return MDOT_OK;
}

static mdot_status seal(const char *path, const cg_machine *machine, mdot_error *err)
{
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    struct stat info;
    mdot_status status = MDOT_OK;
    void *file = MAP_FAILED;
    if (fstat(descriptor, &info) == 0) file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED) {
        status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    } else {
        status = seal_mapped(descriptor, file, (size_t)info.st_size, machine, path, err);
        munmap(file, (size_t)info.st_size);
    }
    close(descriptor);
    return status;
}

mdot_status cg_link_artefact(const cg_parts *parts, const char *path, ir_arena *arena, mdot_error *err)
{
    enum { HEADERS_BYTES = 1 << 16 }; /* headers and page padding */
    if (!bs_is_within_limit(size_of(parts) + HEADERS_BYTES))
        return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(EFBIG));
    if (reached_bytes(parts) > CG_MAX_WEIGHT_BYTES)
        return mdot_fail(err, MDOT_UNSUPPORTED,
                         "the weights of all precisions take %.2f GiB, but CPU code reaches less than 2 GiB; name one "
                         "precision, of which bf16 takes half of fp32's memory, or split the model",
                         (double)reached_bytes(parts) / (1 << 30));
    cg_temp_dir w;
    BS_TRY(cg_temp_dir_open(path, arena, &w, err));
    mdot_status status = write_parts(&w, parts, err);
    if (status == MDOT_OK) status = run_linker(&w, parts, err);
    if (status == MDOT_OK) status = seal(w.file[CG_LINKED], parts->machine, err);
    if (status == MDOT_OK && parts->check != NULL) status = parts->check(w.file[CG_LINKED], err);
    if (status == MDOT_OK) status = bs_replace_file(w.file[CG_LINKED], path, err);
    cg_temp_dir_close(&w);
    return status;
}
