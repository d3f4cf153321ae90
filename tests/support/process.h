/* process.h — runs a program as a person would and keeps what it said: for tests of the command line. */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

typedef struct process_result {
    int status;          /* exit status; -1 when a signal ended it */
    char out[64 * 1024]; /* stdout and stderr, NUL-terminated, cut at the end */
    char err[16 * 1024];
} process_result;

/* argv[0] is the program's path; the list ends with NULL. Nothing is inherited but the environment; stdin is empty. */
void process_run(const char *const *argv, process_result *out_result);

/* `part` is in `text`, which a failure shows. */
void expect_contains(const char *text, const char *part);

/* A fresh folder below TMPDIR; the caller's tests remove it with process_remove_folder. The string is malloc'ed. */
char *process_make_folder(void);
void process_remove_folder(char *folder);
/* The path of what is called `name` there; malloc'ed. */
char *process_in_folder(const char *folder, const char *name);

/* Entries of a folder, hidden ones too: that nothing temporary was left. */
int process_count_files(const char *folder);

#endif
