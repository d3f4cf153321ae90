/* append_file.h — appending lines to one file from several processes. Each process holds the file's lock while it reads
 * the beginning of the file and writes lines. */
#ifndef BS_APPEND_FILE_H
#define BS_APPEND_FILE_H

#include "mdot/mdot_base.h"

#include <stdbool.h>

enum { BS_APPEND_HEAD_BYTES = 1 << 14 };

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

#endif
