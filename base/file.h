/* file.h — files that a user names: one way to open them, one way to write them.
 *
 * base/ is what all libraries share, libc alone: each library holds its own copy and exports none of it.
 *
 *   elf_read.h   sections and segments of an ELF file in memory
 *   file.h       reading without blocking, writing whole or not at all
 *   stale_temp.h       what a process that was killed while writing leaves behind
 *   join.h       names joined into a buffer of fixed size
 *   suggest.h       the name that a wrong one was meant to be
 *   printable.h  text from files, fit for a terminal
 *   struct_version.h      structs of the public headers that may grow
 *   memstream.h     text written into memory as into a file
 */
#ifndef BS_FILE_H
#define BS_FILE_H

#include "mdot/mdot_base.h"

#include <stdbool.h>

/* Opens a regular file for reading, close-on-exec; the caller closes. Opening never waits, as it would for the writer
 * of a named pipe. NOT_FOUND, or IO for what is no regular file. */
mdot_status bs_open_file(const char *path, int *out_descriptor, uint64_t *out_size_bytes, mdot_error *err);

/* All bytes of a regular file and a NUL behind them; the caller frees them. For files that the program has made. */
mdot_status bs_read_file(const char *path, unsigned char **out_bytes, size_t *out_size_bytes, mdot_error *err);
/* The same of a file that a user names: MALFORMED at once for one of more than most_bytes, of which nothing is read. */
mdot_status bs_read_file_within(const char *path, uint64_t most_bytes, unsigned char **out_bytes,
                                size_t *out_size_bytes, mdot_error *err);

/* Whether the process's limit of files' sizes (RLIMIT_FSIZE) leaves room for so many bytes: who goes beyond it gets a
 * signal that ends the process. True where the system does not tell. */
bool bs_is_within_limit(uint64_t size_bytes);

/* Whether a file may be written at `path`: INVALID_ARGUMENT for devices, pipes and whatever stands in /dev or /proc
 * (/dev/stdout: a file that appears whole cannot be a stream), IO for directories. A name that is not taken is right.
 */
mdot_status bs_check_output(const char *path, mdot_error *err);

/* The same, and that it is not, under this or another name, the file `input`, which may be absent: INVALID_ARGUMENT. */
mdot_status bs_check_replaces(const char *path, const char *input, mdot_error *err);

/* Writes a file that appears whole or not at all: under another name beside `path`, then renamed. Its permissions are
 * what the process's umask leaves of 0666. A symbolic link at `path` is replaced, not followed. On failure nothing is
 * left behind and what was at `path` is untouched. */
mdot_status bs_write_file(const char *path, const void *bytes, size_t size_bytes, mdot_error *err);

/* The last step of that for a file which another program has made at `temporary`, in the same file system. The caller
 * removes `temporary` on failure. */
mdot_status bs_move_into_place(const char *temporary, const char *path, mdot_error *err);

#endif
