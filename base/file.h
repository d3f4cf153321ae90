/* file.h — a user's files: one way to open them, one way to write them.
 *
 * base/ holds helpers for all libraries, on libc only. Each library has its own copy and exports none of it.
 *
 *   elf_read.h        sections and segments of an ELF file in memory
 *   file.h            reading without blocking; writing a file that appears when it is complete; appended lines;
 *                     temporary files; files that users mistake for ONNX models
 *   csv.h             tables of comma-separated values
 *   text.h            numbers independent of the locale; text made safe for a terminal; lists of names; text written
 *                     into memory
 *   suggest.h         suggests a known name for a misspelt one
 *   status.h          passing failures on, and one wording for lack of memory
 *   struct_version.h  growing structs in the public headers
 *   spin.h            the pause in a polling loop */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Opens a regular file for reading, close-on-exec; the caller closes it. Opening never blocks, although a named pipe
 * would normally wait for its writer. NOT_FOUND, or IO for anything other than a regular file. */
mdot_status bs_open_file(const char *path, int *out_descriptor, uint64_t *out_size_bytes, mdot_error *err);

/* Reads all bytes of a regular file and appends a NUL; the caller frees them. Use it for the program's own files. */
mdot_status bs_read_file(const char *path, unsigned char **out_bytes, size_t *out_size_bytes, mdot_error *err);
/* Like bs_read_file, for a user's files: a file above max_bytes is MALFORMED at once and stays unread. */
mdot_status bs_read_file_within(const char *path, uint64_t max_bytes, unsigned char **out_bytes, size_t *out_size_bytes,
                                mdot_error *err);

/* Returns whether the process's file size limit (RLIMIT_FSIZE) allows so many bytes. Check before writing, because a
 * signal ends the process beyond the limit. True if the system reports no limit. */
bool bs_is_within_limit(uint64_t size_bytes);

/* Writes all bytes at the descriptor's position. False: see errno. */
bool bs_write_all(int descriptor, const void *data, size_t size_bytes);

/* Checks whether a file may be written at `path`. INVALID_ARGUMENT for devices, pipes and every name in /dev or /proc,
 * for example /dev/stdout, because a stream cannot be replaced as a whole. IO for directories. A new name is fine. */
mdot_status bs_check_output(const char *path, mdot_error *err);

/* Like bs_check_output, and also INVALID_ARGUMENT if `path` is the file `input`, under this or another name. `input`
 * may be absent. */
mdot_status bs_check_replaces(const char *path, const char *input, mdot_error *err);

/* Returns whether both names refer to one existing file. */
bool bs_is_same_file(const char *path, const char *other);

/* Writes a file that appears only when it is complete: it is written under another name beside `path` and then renamed.
 * It keeps the replaced file's permissions. A new file's permissions are 0666 less the process's umask. A symbolic link
 * at `path` is replaced rather than followed. On failure the temporary file is removed and the old file at `path` stays
 * as it was. */
mdot_status bs_write_file(const char *path, const void *bytes, size_t size_bytes, mdot_error *err);

/* The last steps of bs_write_file, for a file written by another program at `temporary` in the same file system. The
 * caller removes `temporary` on failure. */
mdot_status bs_replace_file(const char *temporary, const char *path, mdot_error *err);

/* ---- append_file.c: lines appended to one file by several processes ---------------------------------------------- */

enum { BS_APPEND_HEAD_BYTES = 1 << 14 };

/* Each process holds the file's lock while it reads the beginning of the file and writes lines. */
typedef struct bs_append {
    const char *path; /* borrowed */
    int descriptor;
    uint64_t size_bytes;             /* size of the file before this process appends */
    bool is_line_open;               /* the last line lacks its line end */
    char head[BS_APPEND_HEAD_BYTES]; /* beginning of the file, followed by a NUL */
} bs_append;

/* Opens a regular file, or makes an empty one, locks it and reads its beginning. Waits while another process holds the
 * lock. Opening never blocks on a named pipe. Errors: NOT_FOUND for a missing folder, IO. */
mdot_status bs_append_begin(bs_append *append, const char *path, mdot_error *err);

/* Appends a text with whole lines, behind a line end if the last line lacks one, and closes the file. The text reaches
 * the disk as a whole: on failure, for example if the disk is full, the file gets its former size again. */
mdot_status bs_append_end(bs_append *append, const char *text, size_t size_bytes, mdot_error *err);

/* Closes the file and leaves it as it was. */
void bs_append_cancel(bs_append *append);

/* ---- stale_temp.c: temporary files of bs_write_file -------------------------------------------------------------- */

/* A process killed while writing leaves one beside the output. */
#define BS_TEMPORARY_PREFIX ".mdot-" /* followed by 16 hexadecimal digits */

/* Locks a new file while it is open, as a sign of use. False if another process has meanwhile taken it for an
 * abandoned file and removes it; the caller needs another name then. If the file system lacks locks, the file is
 * used unlocked. */
bool bs_hold(int descriptor);

/* Removes a file from a folder if it has such a name, belongs to this user and is unlocked. It never follows links or
 * waits. If the removal is refused, the file stays. */
void bs_remove_if_stale(int folder, const char *name);

/* ---- foreign_file.c: files that users mistake for ONNX models or .job files, recognised by content --------------- */

/* How a message about a file continues behind "FILE: ", for example "a GGUF file, which holds weights without a
 * graph; …". Empty if the content is not recognised. */
typedef struct bs_foreign {
    char text[512];
} bs_foreign;

/* The expected file, which determines the remedy. */
typedef enum bs_expected {
    BS_EXPECT_JOB,   /* a training job: an ONNX or .job file */
    BS_EXPECT_MODEL, /* a model to compile: an ONNX file */
} bs_expected;

/* A sufficient number of bytes. */
enum { BS_FOREIGN_BYTES = 1 << 16 };

/* Looks at the first bytes of a file. Recognised are files of PyTorch (zip archives and pickles), safetensors, GGUF,
 * JSON, HDF5, TensorFlow Lite, NumPy, gzip, ELF, HTML, Git LFS
 * pointers, mdot's .job files and other texts. None of them is valid ONNX. */
bs_foreign bs_recognise_foreign(const void *bytes, size_t size_bytes, bs_expected expected);
