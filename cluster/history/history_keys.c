/* history_keys.c — a job's keys, and the words of its name. */
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

static uint64_t hash_text(const uint64_t seed[2], const char *text)
{
    size_t bytes = text != NULL ? strnlen(text, MOST_TEXT_BYTES) : 0;
    return bytes > 0 ? hs_hash(seed, text, bytes) | 1 : 0;
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

/* Copies the word in lower case, without digits unless they stay. Returns the bytes, at most `room`. */
static size_t copy_word(const char *word, size_t length, bool keeps_digits, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used < room; i++)
        if (keeps_digits || !is_digit(word[i])) out[used++] = to_lower(word[i]);
    return used;
}

/* Returns the bytes of a UUID (8, 4, 4, 4 and 12 hexadecimal digits with one separator) at the text's begin, or 0. */
static size_t uuid_bytes(const char *text, size_t bytes)
{
    enum { UUID_BYTES = 36 };
    if (bytes < UUID_BYTES || (bytes > UUID_BYTES && is_of_word(text[UUID_BYTES]))) return 0;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        bool is_hexadecimal = is_digit(text[i]) || (to_lower(text[i]) >= 'a' && to_lower(text[i]) <= 'f');
        bool is_gap = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_gap ? text[i] != text[8] || is_of_word(text[i]) : !is_hexadecimal) return 0;
    }
    return UUID_BYTES;
}

/* Finds the next word that is no identifier: its bytes begin at *position, and the return value is its end. */
static size_t find_word(const char *name, size_t bytes, size_t *position)
{
    for (size_t end; *position < bytes; *position = end + 1) {
        end = *position + uuid_bytes(name + *position, bytes - *position);
        if (end > *position) continue;
        while (end < bytes && is_of_word(name[end])) end++;
        if (end > *position && !is_generated(name + *position, end - *position)) return end;
    }
    return bytes;
}

/* Returns the hash of a user's word, with its digits or without; 0 if its digits are not joined to letters. */
static uint64_t hash_word(const uint64_t seed[2], uint64_t user, const char *word, size_t length, bool keeps_digits)
{
    char text[sizeof user + MDOT_HISTORY_NAME_BYTES];
    memcpy(text, &user, sizeof user);
    size_t letters = copy_word(word, length, false, text + sizeof user, MDOT_HISTORY_NAME_BYTES);
    if (user == 0 || letters == 0 || letters == length) return 0;
    size_t count = copy_word(word, length, keeps_digits, text + sizeof user, MDOT_HISTORY_NAME_BYTES);
    return hs_hash(seed, text, sizeof user + count) | 1;
}

/* Writes the words. Digits stay with a user and where they are joined to letters. The user's runs are left out. */
static void normalise(const uint64_t seed[2], const hs_nodes *nodes, uint64_t user, const char *name,
                      char out_name[MDOT_HISTORY_NAME_BYTES])
{
    size_t used = 0, bytes = name != NULL ? strnlen(name, MOST_TEXT_BYTES) : 0, end;
    for (size_t position = 0; (end = find_word(name, bytes, &position)), position < bytes; position = end) {
        uint64_t hash = hash_word(seed, user, name + position, end - position, false);
        const hs_node *word = hash != 0 ? hs_nodes_find(nodes, hash) : NULL;
        if (word != NULL && word->ends >= HS_RUN_VALUES) continue;
        size_t gap = used > 0, room = MDOT_HISTORY_NAME_BYTES - 2 - used;
        if (room <= gap) break;
        size_t added = copy_word(name + position, end - position, hash != 0, out_name + used + gap, room - gap);
        if (added > 0 && gap > 0) out_name[used] = '-';
        if (added > 0) used += gap + added;
    }
    out_name[used] = '\0';
}

void mdot_history_normalise_name(const char *name, char out_name[MDOT_HISTORY_NAME_BYTES])
{
    normalise(NULL, NULL, 0, name, out_name);
}

bool hs_see_words(const uint64_t seed[2], hs_nodes *nodes, const mdot_history_job *job)
{
    uint64_t user = hash_text(seed, job->user);
    size_t bytes = job->name != NULL ? strnlen(job->name, MOST_TEXT_BYTES) : 0, end;
    for (size_t position = 0; (end = find_word(job->name, bytes, &position)), position < bytes; position = end) {
        const char *word = job->name + position;
        uint64_t letters = hash_word(seed, user, word, end - position, false);
        hs_node *known = letters != 0 ? hs_nodes_use(nodes, letters) : NULL;
        if (letters != 0 && known == NULL) return false;
        if (known == NULL || known->ends >= HS_RUN_VALUES) continue;
        uint64_t whole = hash_word(seed, user, word, end - position, true);
        const hs_node *before = hs_nodes_find(nodes, whole);
        bool is_again = before != NULL && before->at_s == job->submit_s; /* twice in one name, or in one array */
        if (!is_again) known->ends = fmax(known->ends + (before == NULL ? 1 : -1), 0);
        hs_node *value = hs_nodes_use(nodes, whole);
        if (value == NULL) return false;
        value->at_s = job->submit_s;
    }
    return true;
}

/* The hours in a week form twelve classes: six four-hour spans, on working days and at weekends. Trace clocks may begin
 * on another weekday; this shifts the classes but keeps them apart. */
static uint64_t hour_class(double submit_s)
{
    double day = fmod(floor(submit_s / 86400), 7), span = floor(fmod(submit_s, 86400) / 14400);
    return 1 + (uint64_t)span + (day == 2 || day == 3 ? 6 : 0); /* 1 January 1970 was a Thursday */
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

hs_keys hs_keys_of(const uint64_t seed[2], const hs_nodes *nodes, const mdot_history_job *job)
{
    char text[MDOT_HISTORY_NAME_BYTES];
    const uint64_t user = hash_text(seed, job->user), group = hash_text(seed, job->group), digest = job->digest,
                   hour = hour_class(job->submit_s), type = hash_text(seed, job->gpu_type),
                   amounts[2] = {(uint64_t)job->gpus, type},
                   resources = job->gpus != 0 || type != 0 ? hs_hash(seed, amounts, sizeof amounts) | 1 : 0;
    mdot_history_normalise_name(job->name, text);
    const uint64_t name = hash_text(seed, text);
    normalise(seed, nodes, user, job->name, text);
    const uint64_t model = hash_text(seed, text), whole = hash_text(seed, job->name),
                   exact = whole != model ? whole : 0; /* otherwise the key with models has the same jobs */
    const struct {
        int count;
        uint64_t parts[3];
    } rows[HS_KEYS] = {
        [MDOT_HISTORY_KEY_ALL] = {0, {0}},
        [MDOT_HISTORY_KEY_RESOURCES] = {1, {resources}},
        [MDOT_HISTORY_KEY_HOUR] = {1, {hour}},
        [MDOT_HISTORY_KEY_GROUP] = {1, {group}},
        [MDOT_HISTORY_KEY_USER] = {1, {user}},
        [MDOT_HISTORY_KEY_USER_RESOURCES] = {2, {user, resources}},
        [MDOT_HISTORY_KEY_NAME] = {1, {name}},
        [MDOT_HISTORY_KEY_DIGEST] = {1, {digest}},
        [MDOT_HISTORY_KEY_USER_NAME] = {2, {user, name}},
        [MDOT_HISTORY_KEY_USER_NAME_RESOURCES] = {3, {user, model, resources}},
        [MDOT_HISTORY_KEY_USER_DIGEST_RESOURCES] = {3, {user, digest, resources}},
        [MDOT_HISTORY_KEY_USER_EXACT_NAME] = {3, {user, exact, resources}},
    };
    hs_keys keys;
    for (int i = 0; i < HS_KEYS; i++) keys.hash[i] = key_of(seed, (mdot_history_key)i, rows[i].count, rows[i].parts);
    return keys;
}
