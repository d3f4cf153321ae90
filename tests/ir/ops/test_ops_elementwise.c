/* test_ops_elementwise.c — shapes, costs and values in the elementwise family. Expected values for transcendental
 * functions are NumPy's. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static void unary_operators_on_floats_follow_their_definition(void **state)
{
    (void)state;
    assert_values("f32[3] [1.5, 0, 2]", .op = "Abs", .inputs = {"f32[3] [-1.5, 0, 2]"});
    assert_values("f32[2] [1.5, -2]", .op = "Neg", .inputs = {"f32[2] [-1.5, 2]"});
    assert_values("f64[4] [-1, 0, 1, nan]", .op = "Sign", .inputs = {"f64[4] [-3, 0, 5, nan]"});
    assert_values("f32[3] [0.25, -0.5, inf]", .op = "Reciprocal", .inputs = {"f32[3] [4, -2, 0]"});
    assert_values("f64[2] [1.41421, nan]", .op = "Sqrt", .inputs = {"f64[2] [2, -1]"});
    assert_values("f64[2] [2.71828, 0.367879]", .op = "Exp", .inputs = {"f64[2] [1, -1]"});
    assert_values("f64[2] [0.693147, -inf]", .op = "Log", .inputs = {"f64[2] [2, 0]"});
    assert_values("f64[1] [0.479426]", .op = "Sin", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.877583]", .op = "Cos", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.546302]", .op = "Tan", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.523599]", .op = "Asin", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [1.0472]", .op = "Acos", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.463648]", .op = "Atan", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.521095]", .op = "Sinh", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [1.12763]", .op = "Cosh", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.481212]", .op = "Asinh", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [1.31696]", .op = "Acosh", .inputs = {"f64[1] [2]"});
    assert_values("f64[1] [0.549306]", .op = "Atanh", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[1] [0.462117]", .op = "Tanh", .inputs = {"f64[1] [0.5]"});
    assert_values("f64[3] [0.5, 0.880797, 0]", .op = "Sigmoid", .inputs = {"f64[3] [0, 2, -800]"});
    assert_values("f64[1] [0.5205]", .op = "Erf", .inputs = {"f64[1] [0.5]"});
    assert_values("f32[2] [-2, 1]", .op = "Floor", .inputs = {"f32[2] [-1.5, 1.5]"});
    assert_values("f32[2] [-1, 2]", .op = "Ceil", .inputs = {"f32[2] [-1.5, 1.5]"});
    assert_values("f32[4] [0, 2, 2, -2]", .op = "Round",
                  .inputs = {"f32[4] [0.5, 1.5, 2.5, -2.5]"});                            /* round: ties go to even */
    assert_values("f32[3] [0, 2, nan]", .op = "Relu", .inputs = {"f32[3] [-1, 2, nan]"}); /* relu keeps nan */
    assert_values("f64[3] [0.693147, 1000, 0.313262]", .op = "Softplus",
                  .inputs = {"f64[3] [0, 1000, -1]"}); /* softplus of a large number is finite */
    assert_values("f32[2] [-0.5, 0.75]", .op = "Softsign", .inputs = {"f32[2] [-1, 3]"});
    assert_values("bool[3] [1, 0, 0]", .op = "IsNaN", .inputs = {"f32[3] [nan, 1, inf]"});
    assert_values("f64[4] [0, 0, 0.666667, 4]", .op = "HardSwish", .inputs = {"f64[4] [-4, 0, 1, 4]"});
    assert_values("f64[1] [0.865098]", .op = "Mish", .inputs = {"f64[1] [1]"});
    assert_values("f32[2] [-1, 2]", .op = "LeakyRelu", .attrs = "alpha=0.5", .inputs = {"f32[2] [-2, 2]"});
    assert_values("f64[1] [-0.02]", .op = "LeakyRelu", .inputs = {"f64[1] [-2]"}); /* leaky relu default */
    assert_values("f64[2] [-1.26424, 1]", .op = "Elu", .attrs = "alpha=2.0", .inputs = {"f64[2] [-1, 1]"});
    assert_values("f64[2] [-3.79272, 3]", .op = "Selu", .attrs = "alpha=2.0, gamma=3.0", .inputs = {"f64[2] [-1, 1]"});
    assert_values("f64[2] [-0.786939, 1]", .op = "Celu", .attrs = "alpha=2.0", .inputs = {"f64[2] [-1, 1]"});
    assert_values("f32[3] [0, 0.5, 1]", .op = "HardSigmoid", .attrs = "alpha=0.5, beta=0.25",
                  .inputs = {"f32[3] [-2, 0.5, 4]"});
    assert_values("f32[3] [0, 0, 1.5]", .op = "ThresholdedRelu", .inputs = {"f32[3] [0.5, 1, 1.5]"});
    assert_values("f64[2] [0.841345, -0.158655]", .op = "Gelu", .inputs = {"f64[2] [1, -1]"});
    assert_values("f64[1] [0.841192]", .op = "Gelu", .attrs = "approximate=\"tanh\"",
                  .inputs = {"f64[1] [1]"}); /* gelu tanh */
    assert_values("f64[1] [0.880797]", .op = "Swish", .attrs = "alpha=2.0", .inputs = {"f64[1] [1]"});
    assert_values("f32[3] [-1, 0, 1]", .op = "Shrink", .attrs = "lambd=1.5, bias=1.0", .inputs = {"f32[3] [-2, 1, 2]"});
    assert_values("bool[3] [1, 1, 0]", .op = "IsInf", .inputs = {"f32[3] [inf, -inf, nan]"});
    assert_values("bool[2] [1, 0]", .op = "IsInf", .attrs = "detect_negative=0",
                  .inputs = {"f32[2] [inf, -inf]"}); /* isinf positive only */
    assert_values("bool[2] [0, 1]", .op = "IsInf", .attrs = "detect_positive=0",
                  .inputs = {"f32[2] [inf, -inf]"}); /* isinf negative only */
    assert_values("f64[1] [0.841345]", .op = "com.microsoft.Gelu", .inputs = {"f64[1] [1]"});
    assert_values("f64[1] [0.880797]", .op = "com.microsoft.QuickGelu", .attrs = "alpha=2.0", .inputs = {"f64[1] [1]"});
    assert_values("f64[1] [0.841192]", .op = "com.microsoft.FastGelu",
                  .inputs = {"f64[1] [1]"}); /* fast gelu, bias absent */
    assert_values("f64[1,2] [0.841192, 0.841192]", .op = "com.microsoft.FastGelu",
                  .inputs = {"f64[1,2] [0, 1]", "f64[2] [1, 0]"}); /* fast gelu adds bias */
    assert_values("f64[1] [0.841345]", .op = "com.microsoft.BiasGelu", .inputs = {"f64[1] [0.5]", "f64[1] [0.5]"});
    assert_values("f32[] [-1]", .op = "Neg", .inputs = {"f32[] [1]"});    /* a scalar stays one */
    assert_values("f32[0,3] []", .op = "Exp", .inputs = {"f32[0,3] []"}); /* an empty tensor stays empty */
}

static void unary_operators_on_integers_are_exact_and_wrap(void **state)
{
    (void)state;
    assert_values("i8[3] [-128, 1, 127]", .op = "Abs",
                  .inputs = {"i8[3] [-128, -1, 127]"}); /* abs of the least wraps */
    assert_values("u64[1] [18446744073709551615]", .op = "Abs", .inputs = {"u64[1] [18446744073709551615]"});
    assert_values("i64[1] [-9223372036854775808]", .op = "Neg",
                  .inputs = {"i64[1] [-9223372036854775808]"}); /* neg of the least wraps */
    assert_values("i32[3] [-1, 0, 1]", .op = "Sign", .inputs = {"i32[3] [-5, 0, 7]"});
    assert_values("u64[2] [1, 0]", .op = "Sign", .inputs = {"u64[2] [18446744073709551615, 0]"});
    assert_values("i32[2] [0, 5]", .op = "Relu", .inputs = {"i32[2] [-5, 5]"});
    assert_values("bool[2] [1, 0]", .op = "Not", .inputs = {"bool[2] [0, 1]"});
    assert_values("u8[2] [255, 1]", .op = "BitwiseNot", .inputs = {"u8[2] [0, 254]"});
    assert_values("i16[1] [-6]", .op = "BitwiseNot", .inputs = {"i16[1] [5]"});
    assert_values("i32[3] [-2, 0, 2]", .op = "Shrink", .attrs = "lambd=1.0, bias=1.0", .inputs = {"i32[3] [-3, 1, 3]"});
}

static void binary_operators_follow_their_definition(void **state)
{
    (void)state;
    assert_values("f32[2,2] [11, 22, 13, 24]", .op = "Add",
                  .inputs = {"f32[2,2] [1, 2, 3, 4]", "f32[2] [10, 20]"}); /* add repeats rows */
    assert_values("f32[2,2] [11, 21, 12, 22]", .op = "Add",
                  .inputs = {"f32[2,1] [1, 2]", "f32[1,2] [10, 20]"});                     /* add repeats columns */
    assert_values("f32[] [3]", .op = "Add", .inputs = {"f32[] [1]", "f32[] [2]"});         /* add scalar to scalar */
    assert_values("f32[0,2] []", .op = "Add", .inputs = {"f32[0,2] []", "f32[2] [1, 2]"}); /* add, empty tensor */
    assert_values("u8[1] [4]", .op = "Add", .inputs = {"u8[1] [250]", "u8[1] [10]"});      /* add wraps */
    assert_values("i64[1] [-9223372036854775808]", .op = "Add",
                  .inputs = {"i64[1] [9223372036854775807]", "i64[1] [1]"}); /* add wraps 64 bits */
    assert_values("f32[1] [-2]", .op = "Sub", .inputs = {"f32[1] [1]", "f32[1] [3]"});
    assert_values("u32[1] [4294967295]", .op = "Sub", .inputs = {"u32[1] [0]", "u32[1] [1]"}); /* sub wraps unsigned */
    assert_values("f32[2] [8, -12]", .op = "Mul", .inputs = {"f32[2] [2, -3]", "f32[] [4]"});
    assert_values("i8[1] [0]", .op = "Mul", .inputs = {"i8[1] [64]", "i8[1] [4]"}); /* mul wraps */
    assert_values("f32[2] [0.25, inf]", .op = "Div", .inputs = {"f32[2] [1, 1]", "f32[2] [4, 0]"});
    assert_values("i32[4] [3, -3, -3, 3]", .op = "Div",
                  .inputs = {"i32[4] [7, -7, 7, -7]", "i32[4] [2, 2, -2, -2]"});      /* div truncates */
    assert_values("i32[1] [0]", .op = "Div", .inputs = {"i32[1] [7]", "i32[1] [0]"}); /* div by zero is zero */
    assert_values("i64[1] [-9223372036854775808]", .op = "Div",
                  .inputs = {"i64[1] [-9223372036854775808]", "i64[1] [-1]"}); /* div of the least wraps */
    assert_values("u64[1] [9223372036854775807]", .op = "Div",
                  .inputs = {"u64[1] [18446744073709551615]", "u64[1] [2]"}); /* div is unsigned */
    assert_values("i32[4] [1, 2, -2, -1]", .op = "Mod",
                  .inputs = {"i32[4] [7, -7, 7, -7]", "i32[4] [3, 3, -3, -3]"}); /* mod has the divisors sign */
    assert_values("i32[4] [1, -1, 1, -1]", .op = "Mod", .attrs = "fmod=1",
                  .inputs = {"i32[4] [7, -7, 7, -7]", "i32[4] [3, 3, -3, -3]"}); /* fmod has the dividends sign */
    assert_values("f64[2] [0.5, -0.5]", .op = "Mod", .inputs = {"f64[2] [-7.5, 7.5]", "f64[2] [2, -2]"});
    assert_values("f64[2] [-1.5, 1.5]", .op = "Mod", .attrs = "fmod=1",
                  .inputs = {"f64[2] [-7.5, 7.5]", "f64[2] [2, -2]"});
    assert_values("i64[2] [0, 0]", .op = "Mod",
                  .inputs = {"i64[2] [5, -9223372036854775808]", "i64[2] [0, -1]"}); /* mod by zero and minus one */
    assert_values("u64[1] [5]", .op = "Mod",
                  .inputs = {"u64[1] [18446744073709551615]", "u64[1] [10]"}); /* mod is unsigned */
    assert_values("f64[2] [1024, 3]", .op = "Pow", .inputs = {"f64[2] [2, 9]", "f64[2] [10, 0.5]"});
    assert_values("i64[2] [4052555153018976267, -9223372036854775808]", .op = "Pow",
                  .inputs = {"i64[2] [3, -2]", "i64[2] [39, 63]"}); /* pow of integers is exact */
    assert_values("i32[3] [0, 1, -1]", .op = "Pow",
                  .inputs = {"i32[3] [2, 1, -1]", "i32[3] [-1, -5, -3]"}); /* pow with a negative exponent */
    assert_values("f32[2] [2.25, 0.5]", .op = "Pow", .inputs = {"f32[2] [1.5, 2]", "i64[2] [2, -1]"});
    assert_values("i32[2] [1, 9]", .op = "Pow", .inputs = {"i32[2] [2, 3]", "f32[2] [0.5, 2]"});
    assert_values("i64[3] [4052555153018976267, -1, 0]", .op = "Pow",
                  .inputs = {"i64[3] [3, -1, 2]", "f32[3] [39, 3, -1]"}); /* whole exponents of any type are exact */
    assert_values("f32[2,2] [-0.5, 2, -1.5, 4]", .op = "PRelu",
                  .inputs = {"f32[2,2] [-1, 2, -3, 4]", "f32[2] [0.5, 0.25]"});
    assert_values("u8[3] [8, 2, 0]", .op = "BitShift", .attrs = "direction=\"LEFT\"",
                  .inputs = {"u8[3] [1, 129, 1]", "u8[3] [3, 1, 9]"}); /* bit shift left */
    assert_values("u64[2] [1, 0]", .op = "BitShift", .attrs = "direction=\"RIGHT\"",
                  .inputs = {"u64[2] [18446744073709551615, 8]", "u64[2] [63, 200]"}); /* bit shift right */
    assert_values("u8[1] [8]", .op = "BitwiseAnd", .inputs = {"u8[1] [12]", "u8[1] [10]"});
    assert_values("i8[1] [-127]", .op = "BitwiseOr", .inputs = {"i8[1] [-128]", "i8[1] [1]"});
    assert_values("u8[1] [6]", .op = "BitwiseXor", .inputs = {"u8[1] [12]", "u8[1] [10]"});
    assert_values("bool[4] [0, 0, 0, 1]", .op = "And", .inputs = {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"});
    assert_values("bool[4] [0, 1, 1, 1]", .op = "Or", .inputs = {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"});
    assert_values("bool[4] [0, 1, 1, 0]", .op = "Xor", .inputs = {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"});
    assert_values("bool[3] [1, 0, 0]", .op = "Equal", .inputs = {"f32[3] [1, nan, 2]", "f32[3] [1, nan, 3]"});
    assert_values("bool[2] [1, 0]", .op = "Equal", .inputs = {"bool[2] [1, 0]", "bool[] [1]"});
    assert_values("bool[3] [1, 0, 0]", .op = "Less", .inputs = {"f32[3] [1, 2, nan]", "f32[3] [2, 2, 1]"});
    assert_values("bool[1] [1]", .op = "Less",
                  .inputs = {"u64[1] [1]", "u64[1] [18446744073709551615]"}); /* less is unsigned */
    assert_values("bool[3] [1, 1, 0]", .op = "LessOrEqual", .inputs = {"i32[3] [1, 2, 3]", "i32[3] [2, 2, 2]"});
    assert_values("bool[3] [0, 0, 1]", .op = "Greater", .inputs = {"i32[3] [1, 2, 3]", "i32[3] [2, 2, 2]"});
    assert_values("bool[4] [0, 1, 1, 0]", .op = "GreaterOrEqual",
                  .inputs = {"f32[4] [1, 2, 3, nan]", "f32[4] [2, 2, 2, 2]"});
}

static void variadic_operators_fold_their_operands(void **state)
{
    (void)state;
    assert_values("f32[2] [1, 0]", .op = "Min", .inputs = {"f32[2] [1, 5]", "f32[] [3]", "f32[2] [2, 0]"});
    assert_values("f32[2] [nan, nan]", .op = "Min",
                  .inputs = {"f32[2] [nan, 1]", "f32[2] [1, nan]"}); /* min keeps nan */
    assert_values("f32[2] [nan, nan]", .op = "Max",
                  .inputs = {"f32[2] [nan, 1]", "f32[2] [1, nan]"}); /* max keeps nan */
    assert_values("u64[1] [18446744073709551615]", .op = "Max",
                  .inputs = {"u64[1] [1]", "u64[1] [18446744073709551615]"}); /* max is unsigned */
    assert_values("i32[2,1] [0, 1]", .op = "Max",
                  .inputs = {"i32[1] [0]", "i32[2,1] [-1, 1]"}); /* max grows the shape */
    assert_values("f32[2] [1, 2]", .op = "Sum", .inputs = {"f32[2] [1, 2]"});
    assert_values("f32[2,2] [111, 112, 211, 212]", .op = "Sum",
                  .inputs = {"f32[2] [1, 2]", "f32[1] [10]", "f32[2,1] [100, 200]"});
    assert_values("f32[1] [3]", .op = "Mean", .inputs = {"f32[1] [1]", "f32[1] [2]", "f32[1] [6]"});
}

static void selections_and_copies_follow_their_definition(void **state)
{
    (void)state;
    assert_values("f32[2,2] [1, 2, 9, 9]", .op = "Where",
                  .inputs = {"bool[2,1] [1, 0]", "f32[2] [1, 2]", "f32[] [9]"}); /* where broadcasts all three */
    assert_values("i64[2] [3, 2]", .op = "Where", .inputs = {"bool[2] [0, 1]", "i64[2] [1, 2]", "i64[2] [3, 4]"});
    assert_values("f32[4] [-1, 0, 1, nan]", .op = "Clip",
                  .inputs = {"f32[4] [-2, 0, 2, nan]", "f32[] [-1]", "f32[] [1]"}); /* clip between */
    assert_values("i32[2] [-9, 5]", .op = "Clip",
                  .inputs = {"i32[2] [-9, 9]", "_", "i32[] [5]"});               /* clip, lower limit absent */
    assert_values("f32[2] [-9, 9]", .op = "Clip", .inputs = {"f32[2] [-9, 9]"}); /* clip, both limits absent */
    assert_values(
        "f32[3] [1, 1, 1]", .op = "Clip",
        .inputs = {"f32[3] [-2, 0, 6]", "f32[] [2]", "f32[] [1]"}); /* clip with crossed limits gives the upper limit */
    assert_values("i8[2] [-1, 1]", .op = "Identity", .inputs = {"i8[2] [-1, 1]"});
    assert_values("f32[2] [1, 2]; bool[2] [1, 1]", .op = "Dropout", .inputs = {"f32[2] [1, 2]"},
                  .output_count = 2); /* dropout passes through */
    assert_values("f32[2] [1, 2]; bool[2] [1, 1]", .op = "Dropout",
                  .inputs = {"f32[2] [1, 2]", "f32[] [0]", "bool[] [1]"},
                  .output_count = 2); /* dropout trains at ratio zero */
    assert_values("f32[2] [1, 2]", .op = "Dropout",
                  .inputs = {"f32[2] [1, 2]", "f32[] [0.75]", "bool[] [0]"}); /* dropout with training_mode false */
}

static void casts_round_truncate_saturate_and_wrap(void **state)
{
    (void)state;
    assert_values("f16[3] [2048, 2052, inf]", .op = "Cast", .attrs = "to=10",
                  .inputs = {"f64[3] [2049, 2051, 65520]"}); /* cast to half rounds to even */
    assert_values("f16[1] [1.00098]", .op = "Cast", .attrs = "to=10",
                  .inputs = {"f64[1] [1.00048828125001]"}); /* cast to half rounds once */
    assert_values("bf16[3] [256, 260, 1]", .op = "Cast", .attrs = "to=16",
                  .inputs = {"f32[3] [257, 259, 1]"}); /* cast to bfloat16 */
    assert_values("i32[4] [1, -1, 0, 0]", .op = "Cast", .attrs = "to=6",
                  .inputs = {"f32[4] [1.9, -1.9, nan, 0.1]"}); /* cast to integer truncates */
    assert_values("i8[4] [127, -128, 127, -128]", .op = "Cast", .attrs = "to=3",
                  .inputs = {"f32[4] [300, -300, inf, -inf]"}); /* cast to integer saturates */
    assert_values("u64[3] [18446744073709551615, 0, 18446744073709549568]", .op = "Cast", .attrs = "to=13",
                  .inputs = {"f64[3] [1e30, -1, 1.8446744073709550e19]"}); /* cast to unsigned saturates */
    assert_values("i64[2] [9223372036854775807, -9223372036854775808]", .op = "Cast", .attrs = "to=7",
                  .inputs = {"f64[2] [1e30, -1e30]"}); /* cast to 64 bits saturates */
    assert_values("u8[3] [0, 1, 255]", .op = "Cast", .attrs = "to=2",
                  .inputs = {"i32[3] [256, 257, -1]"}); /* cast between integers wraps */
    assert_values("bool[4] [0, 1, 1, 0]", .op = "Cast", .attrs = "to=9",
                  .inputs = {"f32[4] [0, 0.5, nan, -0.0]"}); /* cast to bool */
    assert_values("bool[2] [0, 1]", .op = "Cast", .attrs = "to=9",
                  .inputs = {"i32[2] [0, 256]"}); /* cast integer to bool */
    assert_values("f32[2] [0, 1]", .op = "Cast", .attrs = "to=1", .inputs = {"bool[2] [0, 1]"}); /* cast from bool */
    assert_values("f64[1] [1.84467e+19]", .op = "Cast", .attrs = "to=11",
                  .inputs = {"u64[1] [18446744073709551615]"}); /* cast from unsigned */
    assert_values("i64[2] [1, -1]", .op = "CastLike", .inputs = {"f32[2] [1.5, -1.5]", "i64[1] [0]"});
}

/* ---- Shapes ---------------------------------------------------------------------------------------------------- */

static void shapes_follow_from_the_operands(void **state)
{
    (void)state;
    assert_types("f16[2,L]", .op = "Exp", .inputs = {"f16[2,L]"});                 /* unary keeps the type */
    assert_types("bool[L]", .op = "IsNaN", .inputs = {"f32[L]"});                  /* tests make bools */
    assert_types("f32[L,4]", .op = "Add", .inputs = {"f32[L,1]", "f32[4]"});       /* length broadcasts against one */
    assert_types("f32[2,L,8]", .op = "Add", .inputs = {"f32[1,8]", "f32[2,L,1]"}); /* one broadcasts against length */
    assert_types("f32[2,2L+1]", .op = "Mul", .inputs = {"f32[2,2L+1]", "f32[2L+1]"}); /* length meets length */
    assert_types("bool[L]", .op = "Less", .inputs = {"i32[L]", "i32[]"});             /* comparison makes bools */
    assert_types("f32[3]", .op = "Pow", .inputs = {"f32[3]", "i64[1]"});              /* pow has the bases type */
    assert_types("f32[L,2,3]", .op = "Where", .inputs = {"bool[L,1,1]", "f32[1,2,1]", "f32[3]"}); /* where broadcasts */
    assert_types("i64[L]", .op = "Cast", .attrs = "to=7", .inputs = {"f32[L]"});  /* cast changes the element */
    assert_types("bf16[L]", .op = "CastLike", .inputs = {"f32[L]", "bf16[5]"});   /* cast like takes the element */
    assert_types("f32[L]", .op = "Clip", .inputs = {"f32[L]", "f32[]", "f32[]"}); /* clip keeps the type */
    assert_types("f32[L]; bool[L]", .op = "Dropout", .inputs = {"f32[L]"}, .output_count = 2); /* dropout has a mask */
    assert_types("f32[2,L]", .op = "Sum", .inputs = {"f32[2,1]", "f32[L]", "f32[1]"}); /* variadic broadcasts all */
}

static void known_content_is_propagated(void **state)
{
    (void)state;
    assert_types("i64[2] known [L+1, 5]", .op = "Add", .inputs = {"i64[2] known [L, 3]", "i64[2] [1, 2]"});
    assert_types("i64[2] known [L+1, 4]", .op = "Add",
                 .inputs = {"i64[2] known [L, 3]", "i64[] [1]"}); /* add repeats known */
    assert_types("i64[] known [L]", .op = "Sub", .inputs = {"i64[] known [2L]", "i64[] known [L]"});
    assert_types("i64[1] known [3L+3]", .op = "Mul", .inputs = {"i64[1] known [L+1]", "i64[1] [3]"});
    assert_types("i64[1]", .op = "Mul",
                 .inputs = {"i64[1] known [L]", "i64[1] known [L]"}); /* mul of two lengths: the known value is lost */
    assert_types("i64[1] known [2L]", .op = "Div", .inputs = {"i64[1] known [4L]", "i64[1] [2]"});
    assert_types("i64[2] known [-3, 3]", .op = "Div",
                 .inputs = {"i64[2] [-7, 7]", "i64[1] [2]"}); /* div truncates known */
    assert_types("i64[1] known [4]", .op = "Div",
                 .inputs = {"i64[1] known [4L]", "i64[1] known [L]"}); /* div of length by length */
    assert_types("i64[1] known [L]", .op = "Div",
                 .inputs = {"i64[1] known [2L+1]", "i64[1] [2]"}); /* div of an affine length rounds down */
    /* div by zero: the known value is lost */
    assert_types("i64[1]", .op = "Div", .inputs = {"i64[1] known [L]", "i64[1] [0]"});
    assert_types("i64[1] known [3]", .op = "Mod", .inputs = {"i64[1] known [4L+3]", "i64[1] [4]"});
    assert_types("i64[1] known [L]", .op = "Min",
                 .inputs = {"i64[1] known [L]", "i64[1] [64]"}); /* min is decided by the range */
    assert_types("i64[1]", .op = "Min", .inputs = {"i64[1] known [L]", "i64[1] [63]"}); /* min depends on the length */
    assert_types("i64[1] known [L]", .op = "Max",
                 .inputs = {"i64[1] known [L]", "i64[1] [1]"}); /* max is decided by the range */
    assert_types("i64[1] known [-L]", .op = "Neg", .inputs = {"i64[1] known [L]"});
    assert_types("i64[1] known [L]", .op = "Abs", .inputs = {"i64[1] known [-L]"});
    assert_types("i64[1] known [L]", .op = "Identity", .inputs = {"i64[1] known [L]"});
    assert_types("i32[1] known [L]", .op = "Cast", .attrs = "to=6",
                 .inputs = {"i64[1] known [L]"}); /* cast to integer keeps known */
    assert_types("i8[1]", .op = "Cast", .attrs = "to=3",
                 .inputs = {"i64[1] known [2L]"}); /* cast to a small integer may wrap */
    assert_types("bool[1] known [1]", .op = "Cast", .attrs = "to=9",
                 .inputs = {"i64[1] known [L]"}); /* cast of length to bool is true */
    assert_types("f32[1] known [L]", .op = "Cast", .attrs = "to=1", .inputs = {"i64[1] known [L]"});
    /* PyTorch counts range(1, n) as ceil((n - 1) / 1.0) */
    assert_types("f32[1] known [L-1]", .op = "Div", .inputs = {"f32[1] known [L-1]", "f32[1] known [1]"});
    assert_types("f32[2] known [L, -3]", .op = "Div", .inputs = {"f32[2] known [2L, 6]", "f32[2] known [2, -2]"});
    assert_types("f32[1]", .op = "Div", .inputs = {"f32[1] known [2L+1]", "f32[1] known [2]"});
    assert_types("f64[1]", .op = "Div", .inputs = {"f64[1] known [7]", "f64[1] known [2]"});
    assert_types("f32[1]", .op = "Mod", .attrs = "fmod=1", .inputs = {"f32[1] known [L]", "f32[1] known [1]"});
    static const char *const roundings[] = {"Ceil", "Floor", "Round"};
    for (int i = 0; i < 3; i++)
        assert_types("f32[1] known [L-1]", .op = roundings[i], .inputs = {"f32[1] known [L-1]"});
    assert_types("bf16[1]", .op = "Cast", .attrs = "to=16",
                 .inputs = {"i64[1] known [8L]"}); /* 512 needs 9 bits: may round */
    assert_types("bool[2] known [0, 1]", .op = "Equal",
                 .inputs = {"i64[2] known [L, 0]", "i64[] [0]"}); /* equal of length and zero */
    /* equal depends on the length */
    assert_types("bool[1]", .op = "Equal", .inputs = {"i64[1] known [L]", "i64[] [5]"});
    assert_types("bool[1] known [1]", .op = "Less", .inputs = {"i64[1] known [L]", "i64[] [65]"}); /* less is decided */
    assert_types("bool[1] known [1]", .op = "GreaterOrEqual",
                 .inputs = {"i64[1] known [L]", "i64[] [1]"}); /* greater or equal is decided */
    assert_types("bool[2] known [1, 0]", .op = "Not", .inputs = {"bool[2] [0, 1]"});
    assert_types("i64[2] known [L, 2L]", .op = "Where",
                 .inputs = {"bool[2] [1, 0]", "i64[2] known [L, 2]", "i64[2] known [3, 2L]"});
    assert_types("i64[1]", .op = "Add",
                 .inputs = {"i64[1] [9223372036854775807]", "i64[1] [1]"});      /* overflow: the known value is lost */
    assert_types("u8[1]", .op = "Add", .inputs = {"u8[1] [250]", "u8[1] [10]"}); /* wrapping: the known value is lost */
}

static void wrong_operands_are_refused_by_name(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "3 and 4", .op = "Add",
                       .inputs = {"f32[3]", "f32[4]"}); /* different dims fail to broadcast */
    assert_shape_fault(MDOT_MALFORMED, "f64", .op = "Add",
                       .inputs = {"f32[3]", "f64[3]"}); /* operands differ in type */
    assert_shape_fault(MDOT_MALFORMED, "is of type i32, where the operator takes", .op = "Exp", .inputs = {"i32[3]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes bool", .op = "Not",
                       .inputs = {"f32[3]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i32, where the operator takes", .op = "And",
                       .inputs = {"i32[1]", "i32[1]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes", .op = "BitShift",
                       .inputs = {"f32[1]", "f32[1]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i32, where the operator takes bool", .op = "Where",
                       .inputs = {"i32[1]", "f32[1]", "f32[1]"});                      /* where needs a bool */
    assert_shape_fault(MDOT_MALFORMED, "1 inputs", .op = "Add", .inputs = {"f32[1]"}); /* too few inputs */
    assert_shape_fault(MDOT_MALFORMED, "input 1 is required", .op = "Add",
                       .inputs = {"f32[1]", "_"}); /* a required input is absent */
    assert_shape_fault(MDOT_MALFORMED, "input 1 is required", .op = "Sum",
                       .inputs = {"f32[1]", "_", "f32[1]"}); /* a variadic input is absent */
}

static void a_bias_does_not_change_the_shape(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "the bias", .op = "com.microsoft.BiasGelu", .inputs = {"f32[3]", "f32[2,3]"});
    assert_shape_fault(MDOT_MALFORMED, "the bias", .op = "com.microsoft.BiasGelu", .inputs = {"f32[1]", "f32[3]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f64, but input 0", .op = "com.microsoft.FastGelu",
                       .inputs = {"f32[3]", "f64[3]"});
    assert_eval_fault(MDOT_MALFORMED, "the bias", .op = "com.microsoft.FastGelu",
                      .inputs = {"f32[] [1]", "f32[3] [1, 2, 3]"});
}

static void untypable_operands_are_unsupported(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_UNSUPPORTED, "L and 3", .op = "Add",
                       .inputs = {"f32[L]", "f32[3]"}); /* length fails to broadcast against three */
    assert_shape_fault(MDOT_UNSUPPORTED, "element type 17", .op = "Cast", .attrs = "to=17",
                       .inputs = {"f32[3]"}); /* cast to float8 */
    assert_shape_fault(MDOT_UNSUPPORTED, "element type 8", .op = "Cast", .attrs = "to=8",
                       .inputs = {"f32[3]"}); /* cast to string */
    assert_shape_fault(MDOT_UNSUPPORTED, "element type 0", .op = "Cast",
                       .inputs = {"f32[3]"}); /* cast, target absent */
}

static void random_dropout_is_unsupported(void **state)
{
    (void)state;
    assert_eval_fault(MDOT_UNSUPPORTED, "random", .op = "Dropout",
                      .inputs = {"f32[1] [1]", "f32[] [0.5]", "bool[] [1]"}); /* dropout in training mode */
}

/* ---- Costs ----------------------------------------------------------------------------------------------------- */

static void pointwise_cost_counts_elements_and_bytes(void **state)
{
    (void)state;
    assert_cost(60, 4 * (20 + 3), 4 * 60, 3, .op = "Add", .inputs = {"f32[2,L]", "f32[3,1,1] [1, 2, 3]"});
    assert_cost(10, 10 + 80, 40, 0, .op = "Where", .inputs = {"bool[L]", "f32[L]", "f32[L]"});
}

static void composed_operators_cost_the_sum_of_their_parts(void **state)
{
    (void)state;
    assert_cost(5 * 10, 40, 40, 0, .op = "Gelu", .inputs = {"f32[L]"});
    assert_cost(2 * 10, 120, 40, 0, .op = "Sum", .inputs = {"f32[L]", "f32[L]", "f32[L]"});
    assert_cost(3 * 10, 120, 40, 0, .op = "Mean", .inputs = {"f32[L]", "f32[L]", "f32[L]"});
}

static void aliases_cost_nothing(void **state)
{
    (void)state;
    assert_cost(0, 0, 0, 0, .op = "Identity", .inputs = {"f32[L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_operators_on_floats_follow_their_definition),
        cmocka_unit_test(unary_operators_on_integers_are_exact_and_wrap),
        cmocka_unit_test(binary_operators_follow_their_definition),
        cmocka_unit_test(variadic_operators_fold_their_operands),
        cmocka_unit_test(selections_and_copies_follow_their_definition),
        cmocka_unit_test(casts_round_truncate_saturate_and_wrap),
        cmocka_unit_test(shapes_follow_from_the_operands),
        cmocka_unit_test(known_content_is_propagated),
        cmocka_unit_test(wrong_operands_are_refused_by_name),
        cmocka_unit_test(a_bias_does_not_change_the_shape),
        cmocka_unit_test(untypable_operands_are_unsupported),
        cmocka_unit_test(random_dropout_is_unsupported),
        cmocka_unit_test(pointwise_cost_counts_elements_and_bytes),
        cmocka_unit_test(composed_operators_cost_the_sum_of_their_parts),
        cmocka_unit_test(aliases_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
