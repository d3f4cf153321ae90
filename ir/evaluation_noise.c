/* evaluation_noise.c — noise on results of the reference evaluation (ir_evaluate_noisily). */
#include "ir/ops.h"

#include "ir/ops/families.h"

#include <math.h>

/* Results that correct implementations round in different ways: sums in any order, and approximated functions. Other
 * elementwise operators are exact up to the rounding of the result. */
static bool is_approximate(const ir_node *node)
{
    if (IR_IS_ONE_OF(node, IR_OP_ReduceMax, IR_OP_ReduceMin, IR_OP_MaxPool, IR_OP_ArgMax, IR_OP_ArgMin)) return false;
    if (IR_IS_ONE_OF(node, IR_OP_Exp, IR_OP_Log, IR_OP_Sin, IR_OP_Cos, IR_OP_Tan, IR_OP_Tanh, IR_OP_Sigmoid, IR_OP_Erf,
                     IR_OP_Softplus, IR_OP_Gelu, IR_OP_Pow))
        return true;
    ir_lowering lowering = node->op->lowering;
    return lowering >= IR_LOWER_REDUCE && lowering <= IR_LOWER_EXPAND && lowering != IR_LOWER_SEQUENTIAL &&
           lowering != IR_LOWER_LOOP;
}

/* The sums of the terms' magnitudes, which limit the results' rounding error; NULL for operators without sums. */
static const ir_wide *sum_magnitudes(const ir_node *node, const ir_wide *const *input, ir_arena *arena)
{
    if (!IR_IS_ONE_OF(node, IR_OP_MatMul, IR_OP_Gemm, IR_OP_Conv, IR_OP_ConvTranspose, IR_OP_Einsum, IR_OP_ReduceSum,
                      IR_OP_ReduceMean))
        return NULL;
    const ir_wide **positive = IR_NEW_ARRAY(arena, const ir_wide *, node->input_count);
    for (int i = 0; positive != NULL && i < node->input_count; i++) {
        positive[i] = input[i];
        if (input[i] == NULL || input[i]->f == NULL) continue;
        ir_wide *copy = ir_wide_create(arena, input[i]->dtype, input[i]->rank, input[i]->dims);
        if (copy == NULL) return NULL;
        for (int64_t k = 0; k < copy->count; k++) copy->f[k] = fabs(input[i]->f[k]);
        positive[i] = copy;
    }
    ir_wide *sums = NULL;
    return positive != NULL && ir_eval_node(arena, node, positive, &sums, NULL) == MDOT_OK ? sums : NULL;
}

static double greatest_finite(const ir_wide *wide, int64_t first, int64_t step, int64_t end)
{
    double greatest = 0;
    for (int64_t i = first; i < end; i += step)
        if (isfinite(wide->f[i])) greatest = fmax(greatest, fabs(wide->f[i]));
    return greatest;
}

/* The magnitude of what cancels in the operator's formula: x (1 + erf), or 1 in a logarithm's sum; usually 0. */
static double cancelled(const ir_node *node, const ir_wide *const *input, int64_t i)
{
    if (IR_IS_ONE_OF(node, IR_OP_LogSoftmax, IR_OP_ReduceLogSum, IR_OP_ReduceLogSumExp)) return 1;
    if (!IR_IS_ONE_OF(node, IR_OP_Gelu, IR_OP_MSGelu, IR_OP_BiasGelu)) return 0;
    return fabs(input[0]->f[i] + (node->input_count > 1 ? input[1]->f[i % input[1]->count] : 0)) / 2;
}

/* Fractional powers of integers are computed in f64, so that the last digits of large ones are open. */
static void move_powers(const ir_wide *exponent, ir_wide *powers)
{
    bool is_whole = true;
    for (int64_t i = 0; i < exponent->count; i++) is_whole = is_whole && exponent->f[i] == trunc(exponent->f[i]);
    for (int64_t i = 0; !is_whole && i < powers->count; i++) {
        double power = (double)powers->i[i];
        if (fabs(power) >= IR_EXACT_POWER)
            powers->i[i] = ir_float_to_integer(powers->dtype, power * (1 - 0x1p-40) - copysign(1, power));
    }
}

double ir_next_noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's MMIX */
    return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1;
}

/* Moves each result by up to `units` in the last place of the greatest of these: its own magnitude; an eighth of the
 * sum of its terms' magnitudes; without terms, a quarter of the greatest element in both its row and its column, or in
 * its row if there are few rows; and a term that cancels. */
void ir_add_noise(const ir_node *node, const ir_wide *const *input, double units, ir_wide *wide, ir_arena *scratch,
                  uint64_t *state)
{
    if (wide->f == NULL && ir_node_opcode(node) == IR_OP_Pow && input[1]->f != NULL) move_powers(input[1], wide);
    if (wide->f == NULL || !is_approximate(node)) return;
    const ir_wide *sums = sum_magnitudes(node, input, scratch);
    int64_t columns = wide->rank > 0 && wide->dims[wide->rank - 1] > 0 ? wide->dims[wide->rank - 1] : 1;
    double *column = sums == NULL && wide->count >= 4 * columns ? IR_NEW_ARRAY(scratch, double, columns) : NULL;
    for (int64_t j = 0; column != NULL && j < columns; j++) column[j] = greatest_finite(wide, j, columns, wide->count);
    for (int64_t first = 0; first + columns <= wide->count; first += columns) {
        double row = sums == NULL ? greatest_finite(wide, first, 1, first + columns) : 0;
        for (int64_t i = first; i < first + columns; i++) {
            double unit = units * ir_next_noise(state);
            double size =
                sums != NULL ? fabs(sums->f[i]) / 8 : (column != NULL ? fmin(row, column[i - first]) : row) / 4;
            double term = cancelled(node, input, i);
            if ((wide->f[i] != 0 || term > 0) && isfinite(wide->f[i]))
                wide->f[i] += 0x1p-23 * unit * fmax(fmax(fabs(wide->f[i]), term), size);
        }
    }
}
