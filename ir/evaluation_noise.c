/* evaluation_noise.c — noise on results of the reference evaluation (ir_evaluate_noisily). */
#include "ir/ops.h"

#include "ir/ops/families.h"

#include <math.h>

/* Results that correct implementations round in different ways: sums in any order, and approximated functions. Other
 * elementwise operators are exact up to the rounding of the result. */
static bool is_approximate(const ir_node *node)
{
    switch (ir_node_opcode(node)) {
    case IR_OP_ReduceMax:
    case IR_OP_ReduceMin:
    case IR_OP_MaxPool:
    case IR_OP_ArgMax:
    case IR_OP_ArgMin: return false;
    case IR_OP_Exp:
    case IR_OP_Log:
    case IR_OP_Sin:
    case IR_OP_Cos:
    case IR_OP_Tan:
    case IR_OP_Tanh:
    case IR_OP_Sigmoid:
    case IR_OP_Erf:
    case IR_OP_Softplus:
    case IR_OP_Gelu:
    case IR_OP_Pow: return true;
    default: break;
    }
    ir_lowering lowering = node->op->lowering;
    return lowering >= IR_LOWER_REDUCE && lowering <= IR_LOWER_EXPAND && lowering != IR_LOWER_SEQUENTIAL &&
           lowering != IR_LOWER_LOOP;
}

/* Moves each result by up to two units in the last place of a quarter of its row's greatest, or of its own. */
void ir_add_noise(const ir_node *node, ir_wide *wide, uint64_t *state)
{
    if (!is_approximate(node)) return;
    int64_t row = wide->rank > 0 && wide->dims[wide->rank - 1] > 0 ? wide->dims[wide->rank - 1] : 1;
    for (int64_t first = 0; wide->f != NULL && first + row <= wide->count; first += row) {
        double greatest = 0;
        for (int64_t i = first; i < first + row; i++)
            if (isfinite(wide->f[i])) greatest = fmax(greatest, fabs(wide->f[i]));
        for (int64_t i = first; i < first + row; i++) {
            *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's MMIX */
            double unit = (double)(int64_t)(*state >> 11) * 0x1p-52 - 1;
            if (wide->f[i] != 0 && isfinite(wide->f[i]))
                wide->f[i] += 0x1p-22 * unit * fmax(fabs(wide->f[i]), greatest / 4);
        }
    }
}
