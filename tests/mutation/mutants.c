/* mutants.c — mutants of C files: copies with one small fault each. scripts/mutate.sh compiles them and runs the
 * tests, because a fault that no test notices shows what the tests leave out.
 *
 *     mutants list SEED COUNT FILE…    prints COUNT random mutants of the files (0: all), one per line:
 *                                      FILE, number, line, "function" or "file" and change, with tabs between
 *     mutants write FILE NUMBER        prints the file with this mutant in it
 *     mutants combine FILE NUMBER…     prints the file with several mutants, of which the variable MDOT_MUTANT of the
 *                                      environment selects one by its number when the program starts
 *
 * A mutant changes one of
 *
 *   operators    + - * / % & | << >> && || < <= > >= == != and their assignments, ++, --, and ! (which is dropped)
 *   constants    0 and 1 become each other, true and false too, and every other number grows by 1
 *   conditions   of if and of the choice a ? b : c, which become true and false; of while and for, which become false
 *   results      a returned value becomes 0, and a status another one
 *   statements   a call or an assignment disappears
 *
 * The program reads tokens and not the syntax, so some mutants do not compile. It counts on clang-format's blanks
 * around binary operators. It leaves out preprocessor lines, sizes of arrays, {0}, and two kinds of changes that no
 * test can notice:
 *
 *   hash = …               and constants and operators there: another hash of equal items is equal, too
 *   calloc(count + 1, …)   the 1, because calloc(0) may return NULL; with glibc it never does. A program that uses the
 *                          further element fails under the address sanitizer
 */
#include "mdot/mdot_base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tokens ------------------------------------------------------------------------------------------------------ */

typedef enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_OPERATOR } token_kind;

typedef struct token {
    token_kind kind;
    size_t from, to; /* offsets in the file */
    int line;
    size_t partner; /* index of the matching bracket; 0: none */
} token;

typedef struct source {
    const char *path;
    char *text;
    size_t size;
    token *tokens; /* tokens[0] and the last one are TOKEN_END */
    size_t count;
} source;

static void *require(void *memory)
{
    if (memory != NULL) return memory;
    fprintf(stderr, "mutants: memory ran out\n");
    exit(2);
}

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Skips blanks, comments and preprocessor lines. */
static size_t skip(const char *text, size_t at, int *line)
{
    bool is_new_line = at == 0 || text[at - 1] == '\n';
    for (;;) {
        if (text[at] == '\n') {
            ++*line;
            is_new_line = true;
            at++;
        } else if (isspace((unsigned char)text[at])) {
            at++;
        } else if (starts(text + at, "/*")) {
            for (at += 2; text[at] != '\0' && !starts(text + at, "*/"); at++) *line += text[at] == '\n';
            at += text[at] == '\0' ? 0 : 2;
        } else if (starts(text + at, "//") || (text[at] == '#' && is_new_line)) {
            for (; text[at] != '\0' && text[at] != '\n'; at++)
                if (text[at] == '\\' && text[at + 1] == '\n') ++*line, at++;
        } else {
            return at;
        }
    }
}

static size_t end_of_text(const char *text, size_t at)
{
    char quote = text[at++];
    for (; text[at] != '\0' && text[at] != quote; at++)
        if (text[at] == '\\' && text[at + 1] != '\0') at++;
    return text[at] == '\0' ? at : at + 1;
}

static size_t end_of_number(const char *text, size_t at)
{
    const char *exponent = text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X') ? "pP" : "eE";
    for (;; at++) {
        bool is_sign = (text[at] == '+' || text[at] == '-') && strchr(exponent, text[at - 1]) != NULL;
        if (!isalnum((unsigned char)text[at]) && text[at] != '.' && !is_sign) return at;
    }
}

static size_t end_of_operator(const char *text, size_t at)
{
    static const char *const operators[] = {"<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
                                            "++",  "--",  "->",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (starts(text + at, operators[i])) return at + strlen(operators[i]);
    return at + 1;
}

static token next_token(const char *text, size_t *at, int *line)
{
    token t = {.kind = TOKEN_END};
    t.from = *at = skip(text, *at, line);
    t.line = *line;
    if (text[*at] == '\0') {
        t.to = *at;
        return t;
    }
    if (isalpha((unsigned char)text[*at]) || text[*at] == '_') {
        t.kind = TOKEN_NAME;
        while (isalnum((unsigned char)text[*at]) || text[*at] == '_') ++*at;
    } else if (isdigit((unsigned char)text[*at]) || (text[*at] == '.' && isdigit((unsigned char)text[*at + 1]))) {
        t.kind = TOKEN_NUMBER;
        *at = end_of_number(text, *at);
    } else if (text[*at] == '"' || text[*at] == '\'') {
        t.kind = TOKEN_TEXT;
        *at = end_of_text(text, *at);
    } else {
        t.kind = TOKEN_OPERATOR;
        *at = end_of_operator(text, *at);
    }
    t.to = *at;
    return t;
}

static bool is(const source *s, size_t index, const char *text)
{
    const token *t = &s->tokens[index];
    return t->kind != TOKEN_END && t->kind != TOKEN_TEXT && t->to - t->from == strlen(text) &&
           memcmp(s->text + t->from, text, t->to - t->from) == 0;
}

static bool is_any(const source *s, size_t index, const char *const *texts)
{
    for (; *texts != NULL; texts++)
        if (is(s, index, *texts)) return true;
    return false;
}

static void pair_brackets(source *s)
{
    size_t *open = require(calloc(s->count + 1, sizeof *open)), depth = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (is(s, i, "(") || is(s, i, "[") || is(s, i, "{")) open[depth++] = i;
        if ((is(s, i, ")") || is(s, i, "]") || is(s, i, "}")) && depth > 0) {
            s->tokens[i].partner = open[--depth];
            s->tokens[open[depth]].partner = i;
        }
    }
    free(open);
}

static source read_source(const char *path)
{
    source s = {.path = path};
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    long size = ftell(file);
    rewind(file);
    s.size = size > 0 ? (size_t)size : 0;
    s.text = require(calloc(s.size + 2, 1));
    if (fread(s.text, 1, s.size, file) != s.size) {
        perror(path);
        exit(2);
    }
    fclose(file);
    s.tokens = require(calloc(s.size + 3, sizeof *s.tokens));
    s.count = 1;
    int line = 1;
    size_t at = 0;
    do s.tokens[s.count] = next_token(s.text, &at, &line);
    while (s.tokens[s.count++].kind != TOKEN_END);
    pair_brackets(&s);
    return s;
}

static void free_source(source *s)
{
    free(s->text);
    free(s->tokens);
}

/* ---- Mutants ----------------------------------------------------------------------------------------------------- */

typedef struct mutant {
    size_t file, number;
    size_t from, to; /* the replaced bytes */
    int line;
    char text[48]; /* the replacement */
} mutant;

typedef struct mutants {
    mutant *items;
    size_t count, capacity;
    size_t file, number;
} mutants;

/* Adds a mutant that replaces the tokens first to last. `format` gets the first token's text. */
static void add(mutants *m, const source *s, size_t first, size_t last, const char *format)
{
    if (m->count == m->capacity) {
        m->capacity = 2 * m->capacity + 256;
        m->items = require(realloc(m->items, m->capacity * sizeof *m->items));
    }
    const token *t = &s->tokens[first];
    mutant *made = &m->items[m->count++];
    *made =
        (mutant){.file = m->file, .number = m->number++, .from = t->from, .to = s->tokens[last].to, .line = t->line};
    snprintf(made->text, sizeof made->text, format, (int)(t->to - t->from < 24 ? t->to - t->from : 24),
             s->text + t->from);
}

/* Operator replacements, each after the operator. All stand between blanks. */
static const char *const operators[][3] = {
    {"+", "-", NULL},     {"-", "+", NULL},     {"*", "/", NULL},   {"/", "*", NULL},   {"%", "*", NULL},
    {"&", "|", NULL},     {"|", "&", NULL},     {"^", "|", NULL},   {"<<", ">>", NULL}, {">>", "<<", NULL},
    {"&&", "||", NULL},   {"||", "&&", NULL},   {"<", "<=", ">="},  {"<=", "<", ">"},   {">", ">=", "<="},
    {">=", ">", "<"},     {"==", "!=", NULL},   {"!=", "==", NULL}, {"+=", "-=", NULL}, {"-=", "+=", NULL},
    {"*=", "/=", NULL},   {"/=", "*=", NULL},   {"|=", "&=", NULL}, {"&=", "|=", NULL}, {"^=", "|=", NULL},
    {"<<=", ">>=", NULL}, {">>=", "<<=", NULL}, {"%=", "*=", NULL},
};

static bool has_blanks(const source *s, size_t index)
{
    const token *t = &s->tokens[index];
    return t->from > 0 && isspace((unsigned char)s->text[t->from - 1]) && isspace((unsigned char)s->text[t->to]);
}

/* Whether the token is behind the sign of a statement "hash = …" or "uint64_t hash = …". */
static bool is_of_hash(const source *s, size_t i)
{
    static const char *const ends[] = {"{", "}", ";", NULL};
    for (; i > 1 && !is_any(s, i, ends); i--)
        if (is(s, i, "=") && is(s, i - 1, "hash")) return true;
    return false;
}

/* Whether the token is the 1 of calloc(… + 1, …). */
static bool is_spare(const source *s, size_t i)
{
    if (!is(s, i, "1") || !is(s, i - 1, "+") || !is(s, i + 1, ",")) return false;
    static const char *const ends[] = {";", "(", "{", NULL};
    for (i--; i > 1 && !is_any(s, i, ends); i--)
        if (s->tokens[i].partner != 0) i = s->tokens[i].partner;
    return is(s, i, "(") && is(s, i - 1, "calloc");
}

static void mutate_operator(mutants *m, const source *s, size_t i)
{
    if (is(s, i, "++")) add(m, s, i, i, "--");
    if (is(s, i, "--")) add(m, s, i, i, "++");
    if (is(s, i, "!")) add(m, s, i, i, "");
    if (is(s, i, "?")) {
        add(m, s, i, i, "|| 1 ?");
        add(m, s, i, i, "&& 0 ?");
    }
    for (size_t k = 0; has_blanks(s, i) && !is_of_hash(s, i) && k < sizeof operators / sizeof *operators; k++)
        for (int to = 1; is(s, i, operators[k][0]) && to < 3 && operators[k][to] != NULL; to++)
            add(m, s, i, i, operators[k][to]);
}

/* Whether number `i` is a declared array's size, as in `char line[256] = …`, or all of {0}. */
static bool is_declared(const source *s, size_t i)
{
    if (is(s, i - 1, "{") && is(s, i + 1, "}") && is(s, i, "0")) return true;
    if (!is(s, i - 1, "[") || !is(s, i + 1, "]") || i < 3) return false;
    return s->tokens[i - 2].kind == TOKEN_NAME &&
           (s->tokens[i - 3].kind == TOKEN_NAME || is(s, i - 3, "*") || is(s, i - 3, ","));
}

static void mutate_constant(mutants *m, const source *s, size_t i)
{
    if (is(s, i, "true")) add(m, s, i, i, "false");
    if (is(s, i, "false")) add(m, s, i, i, "true");
    if (s->tokens[i].kind != TOKEN_NUMBER || is_declared(s, i) || is_spare(s, i) || is_of_hash(s, i)) return;
    add(m, s, i, i, is(s, i, "0") ? "1" : is(s, i, "1") ? "0" : "(%.*s + 1)");
}

static void mutate_condition(mutants *m, const source *s, size_t i)
{
    if (!is(s, i + 1, "(") || s->tokens[i + 1].partner == 0) return;
    size_t last = s->tokens[i + 1].partner;
    if (is(s, i, "if")) {
        add(m, s, i + 1, last, "(1)");
        add(m, s, i + 1, last, "(0)");
    }
    if (is(s, i, "while")) add(m, s, i + 1, last, "(0)");
    if (!is(s, i, "for")) return;
    size_t first = i + 2;
    while (first < last && !is(s, first, ";"))
        first = s->tokens[first].partner > first ? s->tokens[first].partner + 1 : first + 1;
    size_t end = ++first;
    while (end < last && !is(s, end, ";")) end = s->tokens[end].partner > end ? s->tokens[end].partner + 1 : end + 1;
    if (end > first && end < last) add(m, s, first, end - 1, "0");
}

static size_t end_of_statement(const source *s, size_t i)
{
    while (s->tokens[i].kind != TOKEN_END && !is(s, i, ";") && !is(s, i, "}"))
        i = s->tokens[i].partner > i ? s->tokens[i].partner + 1 : i + 1;
    return i;
}

static void mutate_result(mutants *m, const source *s, size_t i)
{
    static const char *const statuses[] = {
#define NAME(name, value, text) "MDOT_" #name,
        MDOT_STATUS_MAP(NAME)
#undef NAME
            NULL};
    static const char *const plain[] = {"true", "false", "NULL", "0", "1", ";", NULL};
    static const char *const compared[] = {"==", "!=", "case", NULL};
    if (is_any(s, i, statuses) && !is_any(s, i - 1, compared) && !is_any(s, i + 1, compared))
        add(m, s, i, i, is(s, i, "MDOT_INVALID_ARGUMENT") ? "MDOT_NOT_FOUND" : "MDOT_INVALID_ARGUMENT");
    if (!is(s, i, "return") || is_any(s, i + 1, plain)) return;
    size_t end = end_of_statement(s, i);
    if (is(s, end, ";")) add(m, s, i + 1, end - 1, "0");
}

/* Deletes statements that are a call or an assignment. */
static void mutate_statement(mutants *m, const source *s, size_t i)
{
    static const char *const before[] = {"{", "}", ";", ")", "else", "do", ":", NULL};
    static const char *const keywords[] = {"return", "if", "for", "while", "switch", "sizeof", "goto", "case", NULL};
    static const char *const after[] = {
        ".", "->", "[", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "<<=", ">>=", NULL};
    if (s->tokens[i].kind != TOKEN_NAME || !is_any(s, i - 1, before) || is_any(s, i, keywords)) return;
    if (is(s, i, "hash")) return; /* as with its arithmetic */
    bool is_call = is(s, i + 1, "(") && s->tokens[i + 1].partner != 0 && is(s, s->tokens[i + 1].partner + 1, ";");
    if (!is_call && !is_any(s, i + 1, after)) return;
    size_t end = end_of_statement(s, i);
    if (is(s, end, ";")) add(m, s, i, end - 1, "");
}

/* Adds all mutants in a file. Function statements are inside braces; brackets may not contain statements. */
static void mutate_file(mutants *m, const source *s)
{
    size_t *inside = require(calloc(s->count + 1, sizeof *inside)), depth = 0; /* open brackets */
    m->number = 0;
    for (size_t i = 1; i + 1 < s->count; i++) {
        if (is(s, i, "{") || is(s, i, "(") || is(s, i, "[")) inside[depth++] = i;
        if ((is(s, i, "}") || is(s, i, ")") || is(s, i, "]")) && depth > 0) depth--;
        mutate_constant(m, s, i);
        if (depth == 0) continue;
        mutate_operator(m, s, i);
        mutate_condition(m, s, i);
        mutate_result(m, s, i);
        if (is(s, inside[depth - 1], "{")) mutate_statement(m, s, i);
    }
    free(inside);
}

/* ---- Functions --------------------------------------------------------------------------------------------------- */

/* Token indices in a definition: the first one, the name, the brackets around the parameters and the body. */
typedef struct function {
    size_t first, name, open, close, begin, end;
} function;

/* Finds the function around offset `at`. Returns false outside functions, and for functions with parameters "...",
 * because a copy cannot be called with them. */
static bool find_function(const source *s, size_t at, function *out)
{
    size_t first = 1;
    for (size_t i = 1; i < s->count; i++) {
        if (s->tokens[i].kind == TOKEN_END || s->tokens[i].from > at) return false;
        if (is(s, i, ";")) {
            first = i + 1;
        } else if (is(s, i, "{") && is(s, i - 1, ")") && s->tokens[i - 1].partner > 1) {
            size_t open = s->tokens[i - 1].partner, end = s->tokens[i].partner;
            if (at > s->tokens[i].from && at < s->tokens[end].from) {
                *out = (function){first, open - 1, open, i - 1, i, end};
                return s->tokens[open - 1].kind == TOKEN_NAME && !is(s, i - 2, "...");
            }
            i = end;
            first = i + 1;
        } else if (s->tokens[i].partner > i) {
            i = s->tokens[i].partner;
            if (is(s, i, "}") && !is(s, i + 1, ";")) first = i + 1;
        }
    }
    return false;
}

/* Prints the names of the parameters, with commas between. */
static void print_arguments(const source *s, const function *f)
{
    size_t name = 0;
    bool is_first = true, is_found = false;
    for (size_t i = f->open + 1; i <= f->close; i++) {
        if (i == f->close || is(s, i, ",")) {
            if (name != 0 && !is(s, name, "void"))
                printf("%s%.*s", is_first ? "" : ", ", (int)(s->tokens[name].to - s->tokens[name].from),
                       s->text + s->tokens[name].from);
            is_first = is_first && (name == 0 || is(s, name, "void"));
            name = 0;
            is_found = false;
        } else if (is(s, i, "(") && is(s, i + 1, "*")) { /* a pointer to a function */
            name = i + 2;
            is_found = true;
            i = s->tokens[i].partner;
        } else if (s->tokens[i].partner > i) {
            i = s->tokens[i].partner;
        } else if (s->tokens[i].kind == TOKEN_NAME && !is_found) {
            name = i;
        }
    }
}

static void print_range(const source *s, size_t from, size_t to) { fwrite(s->text + from, 1, to - from, stdout); }

/* Prints a copy of the function with the mutant in it. A compiler's message about it names the file "mutant_NUMBER". */
static void print_copy(const source *s, const function *f, const mutant *m)
{
    bool is_static = false;
    for (size_t i = f->first; i < f->name; i++) is_static = is_static || is(s, i, "static");
    printf("\n#line 1 \"mutant_%zu\"\n%s", m->number, is_static ? "" : "static ");
    print_range(s, s->tokens[f->first].from, s->tokens[f->name].to);
    printf("__%zu", m->number);
    print_range(s, s->tokens[f->name].to, m->from);
    fputs(m->text, stdout);
    print_range(s, m->to, s->tokens[f->end].to);
    putchar('\n');
}

/* Prints the function's definition, which calls the selected copy, up to the body's beginning. `m` are the function's
 * mutants. */
static void print_choice(const source *s, const function *f, const mutant *m, size_t count)
{
    printf("\n#line %d \"%s\"\n", s->tokens[f->first].line, s->path);
    print_range(s, s->tokens[f->first].from, s->tokens[f->begin].to);
    printf(" switch (mdot_mutant) {");
    for (size_t i = 0; i < count; i++) {
        printf(" case %zu: return %.*s__%zu(", m[i].number, (int)(s->tokens[f->name].to - s->tokens[f->name].from),
               s->text + s->tokens[f->name].from, m[i].number);
        print_arguments(s, f);
        printf(");");
    }
    printf(" default: break; }");
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static int compare(const void *a, const void *b)
{
    const mutant *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Moves `count` random mutants to the front, in the order of the files. */
static size_t draw(mutants *m, uint64_t seed, size_t count)
{
    if (count == 0 || count > m->count) count = m->count;
    for (size_t i = 0; i < count; i++) {
        size_t other = i + next_random(&seed) % (m->count - i);
        mutant kept = m->items[i];
        m->items[i] = m->items[other];
        m->items[other] = kept;
    }
    if (count > 0) qsort(m->items, count, sizeof *m->items, compare);
    return count;
}

/* Prints the replaced text in one line, with runs of blanks as one. */
static void print_old(const source *s, const mutant *at)
{
    enum { MOST = 60 };
    int printed = 0;
    for (size_t i = at->from; i < at->to && printed < MOST; i++) {
        bool is_blank = isspace((unsigned char)s->text[i]);
        if (is_blank && isspace((unsigned char)s->text[i - 1])) continue;
        putchar(is_blank ? ' ' : s->text[i]);
        printed++;
    }
    if (printed == MOST) printf("…");
}

static int list(uint64_t seed, size_t count, char **paths, size_t path_count)
{
    mutants m = {0};
    source *sources = require(calloc(path_count + 1, sizeof *sources));
    for (m.file = 0; m.file < path_count; m.file++) {
        sources[m.file] = read_source(paths[m.file]);
        mutate_file(&m, &sources[m.file]);
    }
    count = draw(&m, seed, count);
    for (size_t i = 0; i < count; i++) {
        const mutant *at = &m.items[i];
        function f;
        printf("%s\t%zu\t%d\t%s\t", paths[at->file], at->number, at->line,
               find_function(&sources[at->file], at->from, &f) ? "function" : "file");
        print_old(&sources[at->file], at);
        printf(" -> %s\n", at->text[0] == '\0' ? "(nothing)" : at->text);
    }
    for (size_t i = 0; i < path_count; i++) free_source(&sources[i]);
    free(sources);
    free(m.items);
    return 0;
}

static int write_mutant(const char *path, size_t number)
{
    mutants m = {0};
    source s = read_source(path);
    mutate_file(&m, &s);
    if (number >= m.count) {
        fprintf(stderr, "mutants: %s has mutants 0 to %zu, not %zu\n", path, m.count - 1, number);
        return 2;
    }
    const mutant *at = &m.items[number];
    fwrite(s.text, 1, at->from, stdout);
    fputs(at->text, stdout);
    for (size_t i = at->from; i < at->to; i++)
        if (s.text[i] == '\n') putchar('\n'); /* keeps the lines behind it */
    fwrite(s.text + at->to, 1, s.size - at->to, stdout);
    free_source(&s);
    free(m.items);
    return fflush(stdout) == 0 ? 0 : 2;
}

static int combine(const char *path, char **numbers, size_t number_count)
{
    mutants m = {0};
    source s = read_source(path);
    mutate_file(&m, &s);
    size_t at = 0;
    printf("extern char *getenv(const char *);\nextern int atoi(const char *);\nstatic int mdot_mutant = -1;\n"
           "__attribute__((constructor)) static void select_mutant(void)\n{\n    const char *number = "
           "getenv(\"MDOT_MUTANT\");\n    if (number != 0) mdot_mutant = atoi(number);\n}\n#line 1 \"%s\"\n",
           path);
    mutant *chosen = require(calloc(number_count + 1, sizeof *chosen));
    for (size_t i = 0; i < number_count; i++) {
        size_t number = strtoull(numbers[i], NULL, 10);
        chosen[i] = m.items[number < m.count ? number : 0];
    }
    qsort(chosen, number_count, sizeof *chosen, compare);
    for (size_t i = 0; i < number_count;) {
        function f, other;
        size_t count = 0;
        if (!find_function(&s, chosen[i].from, &f)) return 2; /* the list says so */
        while (i + count < number_count && find_function(&s, chosen[i + count].from, &other) && other.name == f.name)
            count++;
        print_range(&s, at, s.tokens[f.first].from);
        print_range(&s, s.tokens[f.first].from, s.tokens[f.close].to); /* declares it, because copies may call it */
        printf(";");
        for (size_t k = 0; k < count; k++) print_copy(&s, &f, &chosen[i + k]);
        print_choice(&s, &f, chosen + i, count);
        at = s.tokens[f.begin].to;
        i += count;
    }
    print_range(&s, at, s.size);
    free(chosen);
    free_source(&s);
    free(m.items);
    return fflush(stdout) == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "list") == 0)
        return list(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv + 4, (size_t)argc - 4);
    if (argc == 4 && strcmp(argv[1], "write") == 0) return write_mutant(argv[2], strtoull(argv[3], NULL, 10));
    if (argc >= 4 && strcmp(argv[1], "combine") == 0) return combine(argv[2], argv + 3, (size_t)argc - 3);
    fprintf(stderr,
            "usage: mutants list SEED COUNT FILE… | mutants write FILE NUMBER | mutants combine FILE NUMBER…\n");
    return 2;
}
