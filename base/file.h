/* file.h — a user's files: one way to open them, one way to write them.
 *
 * base/ holds helpers for all libraries, on libc only. Each library has its own copy and exports none of it.
 *
 *   elf_read.h        sections and segments of an ELF file in memory
 *   file.h            reading without blocking; writing a file that appears when it is complete
 *   csv.h             tables of comma-separated values
 *   append_file.h     appending lines to one file from several processes
 *   foreign_file.h    recognises files that users mistake for ONNX models
 *   stale_temp.h      temporary files left behind by a killed process
 *   join.h            names joined into a buffer of fixed size
 *   suggest.h         suggests a known name for a misspelt one
 *   number.h          numbers as text, independent of the locale
 *   printable.h       text from files, made safe for a terminal
 *   out_of_memory.h   one wording for lack of memory
 *   struct_version.h  growing structs in the public headers
 *   memstream.h       text written into memory through a FILE
 *   spin.h            the pause in a polling loop */
#ifndef BS_FILE_H
#define BS_FILE_H

#include "mdot/mdot_base.h"

#include <stdbool.h>

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

/* Checks whether a file may be written at `path`. INVALID_ARGUMENT for devices, pipes and every name in /dev or
 * /proc, for example /dev/stdout, because a stream cannot be replaced as a whole. IO for directories. A new name is
 * fine. */
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

#endif
