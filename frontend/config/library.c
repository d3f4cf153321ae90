/* library.c — ready jobs by name: library.json maps a name to a configuration or to a `.job` file (config.h). */
#include "frontend/config/config.h"

#include "base/status.h"
#include "base/suggest.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARED "/share/mdot/jobs"

/* share/mdot/jobs beside a folder that is at most three levels above the file. */
static char *folder_above(const char *file)
{
    char path[PATH_MAX];
    char *folder = NULL;
    if (realpath(file, path) == NULL) return NULL;
    for (int level = 0; level < 4; level++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) return NULL;
        *slash = '\0';
        if (asprintf(&folder, "%s" SHARED, path) < 0) return NULL;
        if (access(folder, R_OK) == 0) return folder;
        free(folder);
    }
    return NULL;
}

char *fe_library_folder(void)
{
    static const char own = 0; /* any address in this library or program */
    const char *chosen = secure_getenv("MDOT_JOBS");
    Dl_info library;
    if (chosen != NULL && *chosen != '\0') return strdup(chosen);
    char *folder = dladdr(&own, &library) != 0 ? folder_above(library.dli_fname) : NULL;
    return folder != NULL ? folder : folder_above("/proc/self/exe");
}

static mdot_status read_library(const char *folder, json_object **out_library, mdot_error *err)
{
    char *path = NULL;
    if (folder == NULL)
        return mdot_fail(err, MDOT_NOT_FOUND,
                         "the folder share/mdot/jobs with the ready jobs is missing; set MDOT_JOBS to it");
    if (asprintf(&path, "%s/library.json", folder) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = fe_read_json(path, out_library, err);
    free(path);
    return status;
}

static mdot_status unknown_name(json_object *library, const char *name, mdot_error *err)
{
    const char *sign = strrchr(name, '/') != NULL ? strrchr(name, '/') : strrchr(name, ':'); /* behind an origin */
    bs_nearest nearest = bs_nearest_begin(sign != NULL && sign[1] != '\0' ? sign + 1 : name);
    json_object_object_foreach(library, known, value)
    {
        const char *title = fe_text(value, "title");
        bs_nearest_add(&nearest, known, known);
        if (title != NULL) bs_nearest_add(&nearest, title, known);
    }
    return mdot_fail(
        err, MDOT_NOT_FOUND,
        "\"%.80s\" is no file and no ready job; the nearest are %s. `mdot jobs` lists all; the config.json "
        "of other language models is a job, too, and `python -m mdot export` makes one from other models",
        name, bs_nearest_end(&nearest).text);
}

/* Next significant character of *text in lower case; '\0' at the end. *text moves past it. */
static int next_letter(const char **text)
{
    *text += strspn(*text, "-_/ ");
    return **text != '\0' ? tolower((unsigned char)*(*text)++) : '\0';
}

/* Whether the words, "-Instruct-v0.1", tell which weights a network has, and leave its operators as they are. "Base" is
 * the size of a network without a number in its name: ConvNeXt-Base, but Qwen3-8B-Base. */
static bool is_about_weights(const char *words, bool has_number)
{
    static const char *const all[] = {"base", "instruct", "chat", "it", "pt", "hf", "uncased", "deduped", "beta"};
    const char *const *known = has_number ? all : all + 1;
    const size_t known_count = sizeof all / sizeof *all - (has_number ? 0 : 1);
    while (*words != '\0') {
        size_t length = strcspn(++words, "-_"), i = 0;
        bool is_version = length == 4 && tolower((unsigned char)words[0]) == 'v' && words[1] < '2' && words[2] == '.';
        while (i < known_count && (strncasecmp(words, known[i], length) != 0 || known[i][length] != '\0')) i++;
        if (!is_version && i == known_count) return false;
        words += length;
    }
    return true;
}

/* The name behind its origins, such as "meta-llama/" or "timm:". The slash before a number, as in "vit-b/16", stays. */
static const char *skip_origin(const char *name)
{
    for (const char *sign = name; *(sign += strcspn(sign, "/:")) != '\0'; sign++)
        if (sign[1 + strspn(sign + 1, "0123456789")] != '\0' || sign[1] == '\0') name = sign + 1;
    return name;
}

/* Case, hyphens, underscores and slashes are ignored. Words about weights may follow if `is_variant`. */
static bool is_called(const char *known, const char *name, bool is_variant)
{
    if (is_variant && strncasecmp(name, "Meta-", 5) == 0) name += 5;
    bool has_number = strpbrk(known, "0123456789") != NULL;
    int letter = next_letter(&known);
    while (letter != '\0' && letter == next_letter(&name)) letter = next_letter(&known);
    if (is_variant && letter == '\0' && (*name == '-' || *name == '_')) return is_about_weights(name, has_number);
    return letter == '\0' && next_letter(&name) == '\0';
}

/* Whether one of the row's aliases is the name. */
static bool has_alias(json_object *row, const char *name, bool is_variant)
{
    json_object *aliases = fe_member(row, "aliases");
    bool found = false;
    for (size_t i = 0; aliases != NULL && i < json_object_array_length(aliases); i++)
        found = found || is_called(json_object_get_string(json_object_array_get_idx(aliases, i)), name, is_variant);
    return found;
}

mdot_status fe_find_ready_job(const char *folder, const char *name, json_object **out_config, char **out_path,
                              int64_t *out_length, mdot_error *err)
{
    json_object *library = NULL;
    mdot_status status = read_library(folder, &library, err);
    if (status != MDOT_OK) return status;
    json_object *row = fe_member(library, name);
    const char *own = skip_origin(name);
    for (int variant = 0; variant < 2; variant++) {
        json_object_object_foreach(library, known, other)
        {
            const char *except = fe_text(other, "except"); /* a library with another network of this name */
            if (except != NULL && own > name && strncasecmp(name, except, strlen(except)) == 0) continue;
            if (row == NULL && (is_called(known, own, variant > 0) || has_alias(other, own, variant > 0))) row = other;
        }
    }
    const char *file = fe_text(row, "file");
    *out_length = json_object_get_int64(fe_member(row, "length"));
    if (row == NULL)
        status = unknown_name(library, name, err);
    else if (file != NULL && asprintf(out_path, "%s/%s", folder, file) < 0)
        status = BS_OUT_OF_MEMORY(err, "%s", name);
    else if (file == NULL)
        *out_config = json_object_get(fe_member(row, "config"));
    json_object_put(library);
    return status;
}

mdot_status mdot_ready_jobs(void (*visit)(void *user, const mdot_ready_job *job), void *user, mdot_error *err)
{
    if (visit == NULL) return BS_INVALID(err, "mdot_ready_jobs requires a function to call");
    json_object *library = NULL;
    char *folder = fe_library_folder();
    mdot_status status = read_library(folder, &library, err);
    free(folder);
    if (status != MDOT_OK) return status;
    json_object_object_foreach(library, name, row)
    {
        const char *title = fe_text(row, "title");
        const mdot_ready_job job = {.struct_size = sizeof job,
                                    .name = name,
                                    .title = title != NULL ? title : "",
                                    .parameters = json_object_get_double(fe_member(row, "parameters")),
                                    .length = json_object_get_int64(fe_member(row, "length"))};
        visit(user, &job);
    }
    json_object_put(library);
    return MDOT_OK;
}
