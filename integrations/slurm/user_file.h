/* user_file.h — the job that a user names, read where the user submits. */
#ifndef SL_USER_FILE_H
#define SL_USER_FILE_H

#include "mdot/mdot_base.h"

/* The bytes of the `.job` file, the caller's to free. Never waits for a pipe or a device: INVALID_ARGUMENT for what is
 * no regular file; NOT_FOUND and IO; OUT_OF_RANGE beyond `most_bytes`; else what mdot_job_parse says of it, with the
 * file's name. */
mdot_status sl_user_file_read(const char *path, size_t most_bytes, unsigned char **out_bytes, size_t *out_count,
                              mdot_error *err);

#endif
