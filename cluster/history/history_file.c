/* history_file.c — a history as text: options, learned values, and a line for each key. */
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "history/history_learning.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char title[] = "mdot-history 1\n";
enum { MOST_FILE_BYTES = 1 << 30, NODE_NUMBERS = 10 };

/* The learning is a struct with doubles only, read and written as one array. */
enum { LEARNING_NUMBERS = sizeof(hs_learning) / sizeof(double) };

static void put_numbers(FILE *file, const double *numbers, size_t count)
{
    char text[BS_NUMBER_BYTES];
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s%c", bs_number_print(numbers[i], 17, text), i + 1 < count ? ' ' : '\n');
}

mdot_status mdot_history_save(const mdot_history *h, const char *path, mdot_error *err)
{
    bs_memstream stream;
    size_t bytes;
    double learning[LEARNING_NUMBERS];
    if (bs_memstream_open(&stream)) {
        memcpy(learning, &h->learning, sizeof learning);
        fputs(title, stream.file);
        fprintf(stream.file, "%" PRIx64 " %" PRIx64 "\n", h->options.hash_seed[0], h->options.hash_seed[1]);
        put_numbers(stream.file, &h->options.half_life_s, 1);
        put_numbers(stream.file, learning, LEARNING_NUMBERS);
        for (const hs_node *n = hs_nodes_next(h->nodes, NULL); n != NULL; n = hs_nodes_next(h->nodes, n)) {
            const double numbers[NODE_NUMBERS] = {n->now.at_s, n->now.weight, n->now.mean, n->now.recent, n->misses,
                                                  n->spread,   n->ends,       n->failures, n->failure,    n->at_s};
            fprintf(stream.file, "%" PRIx64 " ", n->hash);
            put_numbers(stream.file, numbers, NODE_NUMBERS);
        }
    }
    char *text = bs_memstream_close(&stream, &bytes);
    if (text == NULL) return BS_OUT_OF_MEMORY(err, "%s", path);
    mdot_status status = bs_write_file(path, text, bytes, err);
    free(text);
    return status;
}

typedef struct reader {
    const char *path, *at;
    int line;
} reader;

static mdot_status fail(const reader *r, mdot_error *err, const char *expected)
{
    return mdot_fail(err, MDOT_MALFORMED, "%s:%d: expected %s; remove the file to start a new history", r->path,
                     r->line, expected);
}

/* Reads a hexadecimal number and the space or newline behind it. */
static bool read_hash(reader *r, char behind, uint64_t *out)
{
    size_t digits = strspn(r->at, "0123456789abcdef");
    if (digits == 0 || digits > 16 || r->at[digits] != behind) return false;
    *out = strtoull(r->at, NULL, 16);
    r->at += digits + 1;
    return true;
}

/* Reads a line with finite numbers. */
static bool read_numbers(reader *r, double *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *end;
        out[i] = bs_number_read(r->at, &end);
        if (end == r->at || !isfinite(out[i]) || *end != (i + 1 < count ? ' ' : '\n')) return false;
        r->at = end + 1;
    }
    return true;
}

static mdot_status read_head(reader *r, mdot_history *h, mdot_error *err)
{
    double *learning = (double *)&h->learning;
    if (strncmp(r->at, title, strlen(title)) != 0) return fail(r, err, "a history (\"mdot-history 1\")");
    r->at += strlen(title);
    r->line++;
    if (!read_hash(r, ' ', &h->options.hash_seed[0]) || !read_hash(r, '\n', &h->options.hash_seed[1]))
        return fail(r, err, "two hexadecimal numbers");
    r->line++;
    if (!read_numbers(r, &h->options.half_life_s, 1) || h->options.half_life_s < 60)
        return fail(r, err, "a half-life of at least 60 s");
    r->line++;
    if (!read_numbers(r, learning, LEARNING_NUMBERS)) return fail(r, err, "the numbers of the learning");
    for (size_t i = 0; i < LEARNING_NUMBERS; i++)
        if (learning[i] < 0) return fail(r, err, "numbers of the learning that are at least 0");
    r->line++;
    return MDOT_OK;
}

static mdot_status read_node(reader *r, mdot_history *h, mdot_error *err)
{
    uint64_t hash;
    double n[NODE_NUMBERS];
    if (!read_hash(r, ' ', &hash) || hash % 2 == 0 || !read_numbers(r, n, NODE_NUMBERS))
        return fail(r, err, "a hash and the ten numbers of a key");
    hs_node read = {.hash = hash,
                    .now = {n[0], n[1], n[2], n[3]},
                    .misses = n[4],
                    .spread = n[5],
                    .ends = n[6],
                    .failures = n[7],
                    .failure = n[8],
                    .at_s = n[9]};
    if (read.now.weight < 0 || read.misses < 0 || read.spread < 0 || read.ends < 0 || read.failures < 0)
        return fail(r, err, "weights of at least 0");
    hs_node *node = hs_nodes_use(h->nodes, hash);
    if (node == NULL) return BS_OUT_OF_MEMORY(err, "%s", r->path);
    *node = read;
    return MDOT_OK;
}

mdot_status mdot_history_load(const char *path, const mdot_history_options *options, mdot_history **out_history,
                              mdot_error *err)
{
    mdot_history *h = NULL;
    unsigned char *bytes = NULL;
    size_t size;
    mdot_status status = mdot_history_create(options, &h, err);
    if (status == MDOT_OK) status = bs_read_file_within(path, MOST_FILE_BYTES, &bytes, &size, err);
    reader r = {.path = path, .at = (const char *)bytes, .line = 1};
    if (status == MDOT_OK) status = read_head(&r, h, err);
    for (; status == MDOT_OK && *r.at != '\0'; r.line++) status = read_node(&r, h, err);
    free(bytes);
    if (status == MDOT_OK)
        *out_history = h;
    else
        mdot_history_destroy(h);
    return status;
}
