/* process.c — see process.h. */
#include "tests/support/process.h"
#include "tests/support/assertions.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

static void read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

void process_run(const char *const *argv, process_result *out_result)
{
    FILE *out = tmpfile(), *err = tmpfile();
    assert_non_null(out);
    assert_non_null(err);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), 2);
    pid_t child;
    int status = 0;
    assert_int_equal(posix_spawn(&child, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    posix_spawn_file_actions_destroy(&actions);
    out_result->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_back(out, out_result->out, sizeof out_result->out);
    read_back(err, out_result->err, sizeof out_result->err);
}

void expect_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);
}

char *process_make_folder(void)
{
    const char *root = getenv("TMPDIR");
    char *folder = NULL;
    assert_compare(asprintf(&folder, "%s/mdot-test-XXXXXX", root != NULL ? root : "/tmp"), >, 0);
    assert_non_null(mkdtemp(folder));
    return folder;
}

char *process_in_folder(const char *folder, const char *name)
{
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/%s", folder, name), >, 0);
    return path;
}

int process_count_files(const char *folder)
{
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    int count = -2; /* "." and ".." */
    while (readdir(entries) != NULL) count++;
    closedir(entries);
    return count;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info, (void)kind, (void)position;
    return remove(path);
}

void process_remove_folder(char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
