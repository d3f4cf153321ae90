/* cuda_host_fixture.c — sources and deletions for the tests of kernels (see cuda_host_fixture.h). */
#include "tests/cuda_host/cuda_host_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

char *cuda_source(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/cuda_host/%s", MDOT_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s: can't be read", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

cuda_host_module *cuda_compile(const char *source, cuda_host_mode mode)
{
    static char message[4096];
    cuda_host_module *module = cuda_host_compile(source, mode, message, sizeof message);
    if (!module) fail_msg("%s", message);
    return module;
}

int cuda_line_with(const char *source, const char *text)
{
    const char *at = strstr(source, text);
    int line = at != NULL;
    for (const char *c = source; at && c < at; c++) line += *c == '\n';
    return line;
}

static void copy_line(const char *source, int line, char *out, size_t size)
{
    for (; line > 1 && *source; source++) line -= *source == '\n';
    while (*source == ' ') source++;
    snprintf(out, size, "%.*s", (int)strcspn(source, "\n"), source);
}

static const cuda_argument *argument_for(const cuda_argument *arguments, const char *line)
{
    for (const cuda_argument *a = arguments; a && a->text; a++)
        if (strstr(line, a->text)) return a;
    return NULL;
}

static bool shows(cuda_case run, void *user, const cuda_host_site *site, int seeds)
{
    static cuda_host_report report;
    for (int seed = 1; seed <= seeds; seed++) {
        cuda_host_launch launch = {.seed = (unsigned)seed, .skip = site->what, .skip_line = site->line};
        if (!run(user, &launch, &report)) return true;
    }
    return false;
}

/* A synchronisation that the case never reaches is untested, therefore it is reported. */
static int report_unreached(const char *source, const cuda_host_report *whole)
{
    static const char *const names[] = {"__syncthreads(", "__syncwarp(",   "__threadfence(",
                                        "grid_barrier(",  "cp_async_wait", "cp_async_commit("};
    int unreached = 0, line = 1;
    for (const char *at = source; *at; at += strcspn(at, "\n") + 1, line++) {
        char text[160];
        copy_line(at, 1, text, sizeof text);
        text[strcspn(text, "/")] = '\0'; /* ignores the names in comments */
        bool named = false, reached = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) named |= strstr(text, names[k]) != NULL;
        for (int k = 0; k < whole->site_count; k++) reached |= whole->sites[k].line == line;
        if (named && !reached) {
            print_message("line %d is never reached: %s\n", line, text);
            unreached++;
        }
        if (!at[strcspn(at, "\n")]) break;
    }
    return unreached;
}

int assert_deletions_show(const char *source, cuda_case run, void *user, int seeds, const cuda_argument *arguments)
{
    static cuda_host_report whole;
    cuda_host_launch launch = {.seed = 1};
    if (!run(user, &launch, &whole)) fail_msg("nothing deleted: %s", whole.message);
    int unexplained = report_unreached(source, &whole);
    for (int k = 0; k < whole.site_count; k++) {
        const cuda_host_site *site = &whole.sites[k];
        char text[160];
        copy_line(source, site->line, text, sizeof text);
        bool seen = shows(run, user, site, seeds);
        const cuda_argument *argument = argument_for(arguments, text);
        if (seen == (argument == NULL)) continue;
        unexplained++;
        print_message("%s of line %d (%s): %s\n", site->what, site->line, text,
                      seen ? "argued redundant, but its deletion shows" : "its deletion goes unseen");
    }
    assert_int_equal(unexplained, 0);
    return whole.site_count;
}
