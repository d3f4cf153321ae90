/* fuzz_command.c — libFuzzer on the command line. Each input line is an argument of `mdot`, which runs in a folder
 * with a job, a predictor and a calibration. For all arguments, the exit status is 0, 1 or 2, and errors are reported.
 * Control characters are only printed if they were typed, and temporary files are removed.
 *
 *     scripts/fuzz.sh 600 command
 *
 * The command reaches no other files: inputs with a slash are skipped, and `..` is a folder that holds only the
 * command's folder. (`mdot check ..` compiles every model below `..`.) Benchmarks are skipped because they take long.
 */
#include "cli/cli.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/fuzz/seeds.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ARGUMENTS = 32, MAX_BYTES = 1024 };

/* Files in the command's folder. `kept` has a second link to each, from which it is restored. */
static const char *const names[] = {"job.onnx", "job.job", "model.onnx", "predictor.mdot", "site.cal", "steps.csv"};
enum { NAMES = sizeof names / sizeof names[0] };
static char root[] = "/tmp/mdot-fuzz-XXXXXX";
static char kept[sizeof root + 16], parent[sizeof root + 16], folder[sizeof root + 16];

static void require(bool fine)
{
    if (!fine) abort();
}

static void name_file(char path[64], const char *where, const char *name) { snprintf(path, 64, "%s/%s", where, name); }

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[64];
    name_file(path, kept, name);
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void write_model(const char *name, const char *seed)
{
    const seed_model *at = seed_models;
    while (strcmp(at->name, seed) != 0) at++;
    pb_buffer model = at->make();
    write_file(name, model.data, model.size);
    pb_free(&model);
}

static void write_files(void)
{
    static const char steps[] = "job,gpu,batch,ms,precision\njob.job,A100,8,10,fp32\njob.job,T4,8,30,amp\n";
    static const int64_t buckets[] = {16};
    static const char *const targets[] = {"cpu"};
    char model[64], path[64];
    write_file("steps.csv", steps, sizeof steps - 1);
    write_file("site.cal", seed_calibration, strlen(seed_calibration));
    write_model("job.onnx", "training");
    write_model("model.onnx", "predictor");
    mdot_job *job = NULL;
    name_file(model, kept, "job.onnx");
    name_file(path, kept, "job.job");
    require(mdot_job_read(model, NULL, &job, NULL) == MDOT_OK && mdot_job_save(job, path, NULL) == MDOT_OK);
    mdot_job_destroy(job);
    name_file(model, kept, "model.onnx");
    name_file(path, kept, "predictor.mdot");
    const mdotc_entry entry = {sizeof entry, "predict", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = buckets, .bucket_count = 1, .targets = targets, .target_count = 1};
    require(mdotc_compile(&entry, 1, path, &options, NULL) == MDOT_OK);
}

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static void require_alone_in_parent(void)
{
    DIR *entries = opendir("..");
    require(entries != NULL);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        require(is_dots(entry->d_name) || strcmp(entry->d_name, "folder") == 0);
    closedir(entries);
}

/* Restores the original files and requires that all others are absent. A name that begins with a dot and was not
 * typed belongs to a temporary file. */
static void restore(const char *typed)
{
    require_alone_in_parent();
    DIR *entries = opendir(folder);
    require(entries != NULL);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (is_dots(entry->d_name)) continue;
        require(entry->d_name[0] != '.' || strstr(typed, entry->d_name) != NULL);
        require(unlink(entry->d_name) == 0);
    }
    closedir(entries);
    for (int i = 0; i < NAMES; i++) {
        char path[64];
        name_file(path, kept, names[i]);
        require(link(path, names[i]) == 0);
    }
}

static void remove_all(void)
{
    for (int i = 0; i < NAMES; i++) {
        char path[64];
        name_file(path, kept, names[i]);
        unlink(path);
        unlink(names[i]);
    }
    rmdir(kept);
    rmdir(folder);
    rmdir(parent);
    rmdir(root);
}

static void make_folder(char *path, const char *name)
{
    snprintf(path, sizeof folder, "%s/%s", root, name);
    require(mkdir(path, 0700) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    require(mkdtemp(root) != NULL);
    make_folder(kept, "kept");
    make_folder(parent, "parent");
    make_folder(folder, "parent/folder");
    atexit(remove_all);
    write_files();
    require(chdir(folder) == 0); /* after this the corpus needs absolute paths */
    restore("");
    setenv("TMPDIR", folder, 1);
    setenv("MDOT_DEVICE", "cpu", 1);
    require(freopen("/dev/null", "r", stdin) != NULL);
    return 0;
}

typedef struct capture {
    char *text;
    size_t size;
    FILE *stream, *before;
} capture;

static FILE *begin(capture *c, FILE *before)
{
    c->before = before;
    c->stream = open_memstream(&c->text, &c->size);
    require(c->stream != NULL);
    return c->stream;
}

static void end(capture *c) { require(fclose(c->stream) == 0); }

/* Whether the text has bytes that control a terminal. Only ASCII is examined. */
static bool moves_terminal(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f) return true;
    return false;
}

static void run(int argc, char **argv, bool typed_controls)
{
    capture out, err;
    FILE *const out_before = stdout, *const err_before = stderr;
    stdout = begin(&out, out_before);
    stderr = begin(&err, err_before);
    const cli_command *command = cli_find_command(argv[0]);
    int status = command == NULL ? CLI_USAGE : cli_finish(argv[0], command->run(argc, argv));
    stdout = out_before;
    stderr = err_before;
    end(&out);
    end(&err);
    /* a failed check is reported on stdout */
    bool is_reported = status == CLI_OK || err.size > 0 || (status == CLI_FAILED && out.size > 0);
    bool is_plain = typed_controls || (!moves_terminal(out.text, out.size) && !moves_terminal(err.text, err.size));
    if (status < CLI_OK || status > CLI_USAGE || !is_reported || !is_plain) {
        fprintf(stderr, "status %d\n%s%s", status, out.text, err.text);
        abort();
    }
    free(out.text);
    free(err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char typed[MAX_BYTES + 1], text[MAX_BYTES + 1], *argv[MAX_ARGUMENTS + 1];
    int argc = 0;
    if (size == 0 || size > MAX_BYTES || memchr(data, '/', size) != NULL || memchr(data, '\0', size) != NULL) return -1;
    memcpy(typed, data, size);
    typed[size] = '\0';
    memcpy(text, typed, size + 1); /* the command modifies this copy */
    for (char *at = text; at != NULL && argc < MAX_ARGUMENTS;) argv[argc++] = strsep(&at, "\n");
    argv[argc] = NULL;
    if (strcmp(argv[0], cli_bench.name) == 0) return -1;
    run(argc, argv, moves_terminal(typed, size));
    restore(typed);
    return 0;
}
