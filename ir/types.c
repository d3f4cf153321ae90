/* types.c — the check of a node's element types against the last columns of ops.def. */
#include "ir/ops.h"

#include "ir/ops/families.h"

#include <stdio.h>
#include <string.h>

/* Sets of element types, one bit per type number. */
enum {
#define DTYPE(name, value, size, text) name = 1 << (value),
    MDOT_DTYPE_MAP(DTYPE)
#undef DTYPE
        FLOATS = BF16 | F16 | F32 | F64,
    INTEGERS = U8 | I8 | U16 | I16 | U32 | I32 | U64 | I64,
    NUMBERS = FLOATS | INTEGERS,
    SIGNED = FLOATS | I8 | I16 | I32 | I64,
    WIDE = FLOATS | U32 | I32 | U64 | I64,
    INDICES = I32 | I64,
    ANY = NUMBERS | BOOL | STRING
};

enum { MAX_LETTERS = 4 };

typedef struct row {
    const char *inputs;
    unsigned sets[MAX_LETTERS];
} row;

static const row rows[IR_OP_COUNT] = {
#define OP(id, name, domain, least_in, most_in, least_out, most_out, traits, shape, cost, eval, slope, lowering,       \
           letters, ...)                                                                                               \
    [IR_OP_##id] = {letters, {__VA_ARGS__}},
#include "ir/ops.def"
};

/* Distinct letters before `cursor`: the position of the letter's set. */
static int place_of_letter(const char *letters, const char *cursor)
{
    int place = 0;
    for (const char *c = letters; c < cursor; c++) {
        if (*c == *cursor) return place_of_letter(letters, c);
        place += memchr(letters, *c, (size_t)(c - letters)) == NULL;
    }
    return place;
}

static mdot_status fail_set(const ir_node *node, int input, unsigned set, mdot_error *err)
{
    char list[128] = "";
    for (int dtype = 1; dtype < 32; dtype++) {
        if (!(set >> dtype & 1)) continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", mdot_dtype_name((mdot_dtype)dtype));
    }
    return ir_fail(node, err, MDOT_MALFORMED, "input %d, \"%s\", is of type %s, where the operator takes %s", input,
                   node->inputs[input]->name, mdot_dtype_name(node->inputs[input]->type.dtype), list);
}

mdot_status ir_check_types(const ir_node *node, mdot_error *err)
{
    const row *r = &rows[ir_node_opcode(node)];
    int letters = (int)strlen(r->inputs), first_of[128];
    for (int i = 0; i < letters; i++) first_of[(int)r->inputs[i]] = -1;
    for (int i = 0; i < node->input_count && letters > 0; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL) continue;
        const char *letter = &r->inputs[i < letters ? i : letters - 1];
        unsigned set = r->sets[place_of_letter(r->inputs, letter)];
        if (!(set >> value->type.dtype & 1)) return fail_set(node, i, set, err);
        int *first = &first_of[(int)*letter];
        if (*first < 0) *first = i;
        const ir_value *like = node->inputs[*first];
        if (value->type.dtype == like->type.dtype) continue;
        return ir_fail(node, err, MDOT_MALFORMED, "input %d, \"%s\", is of type %s, but input %d, \"%s\", of type %s",
                       i, value->name, mdot_dtype_name(value->type.dtype), *first, like->name,
                       mdot_dtype_name(like->type.dtype));
    }
    return MDOT_OK;
}
