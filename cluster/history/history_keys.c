/* history_keys.c — see history_keys.h. It also normalises names. */
#include "history/history_nodes.h"

#include <math.h>
#include <string.h>

enum { MOST_TEXT_BYTES = 1024 };

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void mix(uint64_t v[4])
{
    v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    mix(v);
    v[0] ^= word;
}

uint64_t hs_hash(const uint64_t seed[2], const void *bytes, size_t count)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d, seed[0] ^ 0x6c7967656e657261,
                     seed[1] ^ 0x7465646279746573};
    const unsigned char *at = bytes;
    uint64_t final = (uint64_t)count << 56;
    for (size_t left = count; left >= 8; left -= 8, at += 8) {
        uint64_t word = 0;
        for (int i = 0; i < 8; i++) word |= (uint64_t)at[i] << (8 * i);
        absorb(v, word);
    }
    for (size_t i = 0; i < count % 8; i++) final |= (uint64_t)at[i] << (8 * i);
    absorb(v, final);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* These ignore the locale. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char to_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Words end at every ASCII character except letters and digits. UTF-8 bytes count as letters. */
static bool is_of_word(char c)
{
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* Is the word a hash or another generated identifier? It has at least six characters that are all hexadecimal and at
 * least one digit, or at least eight characters and four changes between letters and digits. */
static bool is_generated(const char *word, size_t length)
{
    size_t digits = 0, hexadecimals = 0, changes = 0;
    for (size_t i = 0; i < length; i++) {
        char c = to_lower(word[i]);
        digits += is_digit(c);
        hexadecimals += is_digit(c) || (c >= 'a' && c <= 'f');
        changes += i > 0 && is_digit(c) != is_digit(word[i - 1]);
    }
    return digits > 0 && ((length >= 6 && hexadecimals == length) || (length >= 8 && changes >= 4));
}

static bool is_number(const char *word, size_t length) { return strspn(word, "0123456789") >= length; }

/* Does the word have digits behind a word such as "run"? */
static bool tells_run(const char *word, size_t length)
{
    char letters[11] = " "; /* a word of eight bytes between blanks */
    size_t count = 0;
    for (; count < length && count < 8 && !is_digit(word[count]); count++) letters[1 + count] = to_lower(word[count]);
    letters[1 + count] = ' ';
    return count < length &&
           strstr(" attempt epoch exp fold iter job lr rep run seed task test trial try ", letters) != NULL;
}

/* Returns the bytes of a name in which digits joined to letters belong to the name: all if a word tells the run, or a
 * number or a hash at the begin or the end does; otherwise those before the last of several words. */
static size_t find_model_end(const char *name, size_t bytes)
{
    size_t before = 0, last = 0, end;
    bool ends_in_run = false;
    for (size_t position = 0; position < bytes; position = end + 1) {
        end = position;
        while (end < bytes && is_of_word(name[end])) end++;
        if (end == position) continue;
        ends_in_run = is_number(name + position, end - position) || is_generated(name + position, end - position);
        if (tells_run(name + position, end - position) || (ends_in_run && last == 0)) return bytes;
        if (!ends_in_run) before = last, last = end;
    }
    return ends_in_run ? bytes : before > 0 ? before : last;
}

/* Digits stay where they are joined to letters, in the name's first `model_bytes` bytes. */
static void normalise(const char *name, size_t bytes, size_t model_bytes, char out_name[MDOT_HISTORY_NAME_BYTES])
{
    size_t used = 0;
    for (size_t position = 0; position < bytes;) {
        size_t end = position;
        while (end < bytes && is_of_word(name[end])) end++;
        const char *word = name + position;
        size_t begin = used, length = is_generated(word, end - position) ? 0 : end - position;
        bool keeps = position + length <= model_bytes && !is_number(word, length) && !tells_run(word, length);
        for (size_t i = 0; i < length && used + 2 < MDOT_HISTORY_NAME_BYTES; i++) {
            if (is_digit(word[i]) && !keeps) continue;
            if (used == begin && begin > 0) out_name[used++] = '-';
            out_name[used++] = to_lower(word[i]);
        }
        position = end < bytes ? end + 1 : end;
    }
    out_name[used] = '\0';
}

void mdot_history_normalise_name(const char *name, char out_name[MDOT_HISTORY_NAME_BYTES])
{
    normalise(name, name != NULL ? strnlen(name, MOST_TEXT_BYTES) : 0, 0, out_name);
}

void hs_model_name(const char *name, char out_name[MDOT_HISTORY_NAME_BYTES])
{
    size_t bytes = name != NULL ? strnlen(name, MOST_TEXT_BYTES) : 0;
    normalise(name, bytes, find_model_end(name, bytes), out_name);
}

/* A job's properties, as hashes; 0: unknown. */
typedef struct properties {
    uint64_t user, group, name, model_name, exact_name, digest, resources, hour;
} properties;

static uint64_t hash_text(const uint64_t seed[2], const char *text)
{
    size_t bytes = text != NULL ? strnlen(text, MOST_TEXT_BYTES) : 0;
    return bytes > 0 ? hs_hash(seed, text, bytes) | 1 : 0;
}

/* The hours in a week form twelve classes: six four-hour spans, on working days and at weekends. Trace clocks may begin
 * on another weekday; this shifts the classes but keeps them apart. */
static uint64_t hour_class(double submit_s)
{
    double day = fmod(floor(submit_s / 86400), 7), span = floor(fmod(submit_s, 86400) / 14400);
    return 1 + (uint64_t)span + (day == 2 || day == 3 ? 6 : 0); /* 1 January 1970 was a Thursday */
}

static properties properties_of(const uint64_t seed[2], const mdot_history_job *job)
{
    char name[MDOT_HISTORY_NAME_BYTES], model[MDOT_HISTORY_NAME_BYTES];
    mdot_history_normalise_name(job->name, name);
    hs_model_name(job->name, model);
    properties p = {.user = hash_text(seed, job->user),
                    .group = hash_text(seed, job->group),
                    .name = hash_text(seed, name),
                    .model_name = hash_text(seed, model),
                    .exact_name = hash_text(seed, job->name),
                    .digest = job->digest,
                    .hour = hour_class(job->submit_s)};
    uint64_t resources[2] = {(uint64_t)job->gpus, hash_text(seed, job->gpu_type)};
    if (resources[0] != 0 || resources[1] != 0) p.resources = hs_hash(seed, resources, sizeof resources) | 1;
    if (p.exact_name == p.model_name) p.exact_name = 0; /* the key with names has the same jobs */
    return p;
}

/* Returns the hash of up to three properties; 0 if one is unknown. */
static uint64_t key_of(const uint64_t seed[2], mdot_history_key key, int count, const uint64_t parts[])
{
    uint64_t words[4] = {(uint64_t)key};
    for (int i = 0; i < count; i++) {
        if (parts[i] == 0) return 0;
        words[1 + i] = parts[i];
    }
    return hs_hash(seed, words, sizeof words) | 1;
}

hs_keys hs_keys_of(const uint64_t seed[2], const mdot_history_job *job)
{
    properties p = properties_of(seed, job);
    const struct {
        int count;
        uint64_t parts[3];
    } rows[HS_KEYS] = {
        [MDOT_HISTORY_KEY_ALL] = {0, {0}},
        [MDOT_HISTORY_KEY_RESOURCES] = {1, {p.resources}},
        [MDOT_HISTORY_KEY_HOUR] = {1, {p.hour}},
        [MDOT_HISTORY_KEY_GROUP] = {1, {p.group}},
        [MDOT_HISTORY_KEY_USER] = {1, {p.user}},
        [MDOT_HISTORY_KEY_USER_RESOURCES] = {2, {p.user, p.resources}},
        [MDOT_HISTORY_KEY_NAME] = {1, {p.name}},
        [MDOT_HISTORY_KEY_DIGEST] = {1, {p.digest}},
        [MDOT_HISTORY_KEY_USER_NAME] = {2, {p.user, p.name}},
        [MDOT_HISTORY_KEY_USER_NAME_RESOURCES] = {3, {p.user, p.model_name, p.resources}},
        [MDOT_HISTORY_KEY_USER_DIGEST_RESOURCES] = {3, {p.user, p.digest, p.resources}},
        [MDOT_HISTORY_KEY_USER_EXACT_NAME] = {3, {p.user, p.exact_name, p.resources}},
    };
    hs_keys keys;
    for (int i = 0; i < HS_KEYS; i++) keys.hash[i] = key_of(seed, (mdot_history_key)i, rows[i].count, rows[i].parts);
    return keys;
}
