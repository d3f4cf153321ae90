/* process.h — runs a program as a user would and captures the output, for tests of the command line. */
#pragma once

typedef struct process_result {
    int status;          /* exit status; -1 if a signal ended it */
    char out[64 * 1024]; /* stdout and stderr, NUL-terminated, truncated at the end */
    char err[16 * 1024];
} process_result;

/* argv[0] is the program's path, and the list ends with NULL. Only the environment is inherited; stdin is empty. */
void process_run(const char *const *argv, process_result *out_result);

/* Expects `part` in `text`, which a failure prints. */
void expect_contains(const char *text, const char *part);

/* Makes a new folder below TMPDIR. The caller's tests remove it with process_remove_folder. The string is malloc'ed. */
char *process_make_folder(void);
void process_remove_folder(char *folder);
/* The path of `name` in the folder; malloc'ed. */
char *process_in_folder(const char *folder, const char *name);

/* Counts the entries of a folder, including hidden ones, so tests can detect leftover temporary files. */
int process_count_files(const char *folder);
