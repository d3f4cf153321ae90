/* user_file.h — reads the job that a user names, on the machine where the user submits. */
#ifndef SL_USER_FILE_H
#define SL_USER_FILE_H

#include "mdot/mdot_base.h"

/* Reads the bytes of the `.job` file; the caller frees them. INVALID_ARGUMENT for anything other than a regular file,
 * so that it never waits for a pipe or a device; NOT_FOUND and IO; OUT_OF_RANGE beyond `most_bytes`. Other errors are
 * those of mdot_job_parse, with the file's name. */
mdot_status sl_user_file_read(const char *path, size_t most_bytes, unsigned char **out_bytes, size_t *out_count,
                              mdot_error *err);

#endif
