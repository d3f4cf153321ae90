/* test_ops_elementwise.c — shapes, costs and values of the elementwise family. Expected values of transcendental
 * functions are NumPy's, in double. */
#include "op_cases.h"

/* ---- Values: unary --------------------------------------------------------------------------------------------- */

static const op_case unary_floats[] = {
    {"abs", "Abs", "", {"f32[3] [-1.5, 0, 2]"}, {"f32[3] [1.5, 0, 2]"}},
    {"neg", "Neg", "", {"f32[2] [-1.5, 2]"}, {"f32[2] [1.5, -2]"}},
    {"sign", "Sign", "", {"f64[4] [-3, 0, 5, nan]"}, {"f64[4] [-1, 0, 1, nan]"}},
    {"reciprocal", "Reciprocal", "", {"f32[3] [4, -2, 0]"}, {"f32[3] [0.25, -0.5, inf]"}},
    {"sqrt", "Sqrt", "", {"f64[2] [2, -1]"}, {"f64[2] [1.4142135623730951, nan]"}},
    {"exp", "Exp", "", {"f64[2] [1, -1]"}, {"f64[2] [2.718281828459045, 0.36787944117144233]"}},
    {"log", "Log", "", {"f64[2] [2, 0]"}, {"f64[2] [0.6931471805599453, -inf]"}},
    {"sin", "Sin", "", {"f64[1] [0.5]"}, {"f64[1] [0.479425538604203]"}},
    {"cos", "Cos", "", {"f64[1] [0.5]"}, {"f64[1] [0.8775825618903728]"}},
    {"tan", "Tan", "", {"f64[1] [0.5]"}, {"f64[1] [0.5463024898437905]"}},
    {"asin", "Asin", "", {"f64[1] [0.5]"}, {"f64[1] [0.5235987755982989]"}},
    {"acos", "Acos", "", {"f64[1] [0.5]"}, {"f64[1] [1.0471975511965979]"}},
    {"atan", "Atan", "", {"f64[1] [0.5]"}, {"f64[1] [0.4636476090008061]"}},
    {"sinh", "Sinh", "", {"f64[1] [0.5]"}, {"f64[1] [0.5210953054937474]"}},
    {"cosh", "Cosh", "", {"f64[1] [0.5]"}, {"f64[1] [1.1276259652063807]"}},
    {"asinh", "Asinh", "", {"f64[1] [0.5]"}, {"f64[1] [0.48121182505960347]"}},
    {"acosh", "Acosh", "", {"f64[1] [2]"}, {"f64[1] [1.3169578969248166]"}},
    {"atanh", "Atanh", "", {"f64[1] [0.5]"}, {"f64[1] [0.5493061443340548]"}},
    {"tanh", "Tanh", "", {"f64[1] [0.5]"}, {"f64[1] [0.46211715726000973]"}},
    {"sigmoid", "Sigmoid", "", {"f64[3] [0, 2, -800]"}, {"f64[3] [0.5, 0.8807970779778823, 0]"}},
    {"erf", "Erf", "", {"f64[1] [0.5]"}, {"f64[1] [0.5204998778130465]"}},
    {"floor", "Floor", "", {"f32[2] [-1.5, 1.5]"}, {"f32[2] [-2, 1]"}},
    {"ceil", "Ceil", "", {"f32[2] [-1.5, 1.5]"}, {"f32[2] [-1, 2]"}},
    {"round_goes_to_even", "Round", "", {"f32[4] [0.5, 1.5, 2.5, -2.5]"}, {"f32[4] [0, 2, 2, -2]"}},
    {"relu_keeps_nan", "Relu", "", {"f32[3] [-1, 2, nan]"}, {"f32[3] [0, 2, nan]"}},
    {"softplus_does_not_overflow",
     "Softplus",
     "",
     {"f64[3] [0, 1000, -1]"},
     {"f64[3] [0.6931471805599453, 1000, 0.31326168751822286]"}},
    {"softsign", "Softsign", "", {"f32[2] [-1, 3]"}, {"f32[2] [-0.5, 0.75]"}},
    {"isnan", "IsNaN", "", {"f32[3] [nan, 1, inf]"}, {"bool[3] [1, 0, 0]"}},
    {"hard_swish", "HardSwish", "", {"f64[4] [-4, 0, 1, 4]"}, {"f64[4] [0, 0, 0.6666666666666666, 4]"}},
    {"mish", "Mish", "", {"f64[1] [1]"}, {"f64[1] [0.8650983882673103]"}},
    {"leaky_relu", "LeakyRelu", "alpha=0.5", {"f32[2] [-2, 2]"}, {"f32[2] [-1, 2]"}},
    {"leaky_relu_default", "LeakyRelu", "", {"f64[1] [-2]"}, {"f64[1] [-0.019999999552965164]"}},
    {"elu", "Elu", "alpha=2.0", {"f64[2] [-1, 1]"}, {"f64[2] [-1.2642411176571153, 1]"}},
    {"selu", "Selu", "alpha=2.0, gamma=3.0", {"f64[2] [-1, 1]"}, {"f64[2] [-3.792723352971346, 3]"}},
    {"celu", "Celu", "alpha=2.0", {"f64[2] [-1, 1]"}, {"f64[2] [-0.7869386805747332, 1]"}},
    {"hard_sigmoid", "HardSigmoid", "alpha=0.5, beta=0.25", {"f32[3] [-2, 0.5, 4]"}, {"f32[3] [0, 0.5, 1]"}},
    {"thresholded_relu", "ThresholdedRelu", "", {"f32[3] [0.5, 1, 1.5]"}, {"f32[3] [0, 0, 1.5]"}},
    {"gelu", "Gelu", "", {"f64[2] [1, -1]"}, {"f64[2] [0.8413447460685429, -0.15865525393145707]"}},
    {"gelu_tanh", "Gelu", "approximate=\"tanh\"", {"f64[1] [1]"}, {"f64[1] [0.8411919906082768]"}},
    {"swish", "Swish", "alpha=2.0", {"f64[1] [1]"}, {"f64[1] [0.8807970779778823]"}},
    {"shrink", "Shrink", "lambd=1.5, bias=1.0", {"f32[3] [-2, 1, 2]"}, {"f32[3] [-1, 0, 1]"}},
    {"isinf", "IsInf", "", {"f32[3] [inf, -inf, nan]"}, {"bool[3] [1, 1, 0]"}},
    {"isinf_positive_only", "IsInf", "detect_negative=0", {"f32[2] [inf, -inf]"}, {"bool[2] [1, 0]"}},
    {"isinf_negative_only", "IsInf", "detect_positive=0", {"f32[2] [inf, -inf]"}, {"bool[2] [0, 1]"}},
    {"microsoft_gelu", "com.microsoft.Gelu", "", {"f64[1] [1]"}, {"f64[1] [0.8413447460685429]"}},
    {"quick_gelu", "com.microsoft.QuickGelu", "alpha=2.0", {"f64[1] [1]"}, {"f64[1] [0.8807970779778823]"}},
    {"fast_gelu_without_bias", "com.microsoft.FastGelu", "", {"f64[1] [1]"}, {"f64[1] [0.8411919906082768]"}},
    {"fast_gelu_adds_bias",
     "com.microsoft.FastGelu",
     "",
     {"f64[1,2] [0, 1]", "f64[2] [1, 0]"},
     {"f64[1,2] [0.8411919906082768, 0.8411919906082768]"}},
    {"bias_gelu", "com.microsoft.BiasGelu", "", {"f64[1] [0.5]", "f64[1] [0.5]"}, {"f64[1] [0.8413447460685429]"}},
    {"a_scalar_stays_one", "Neg", "", {"f32[] [1]"}, {"f32[] [-1]"}},
    {"an_empty_tensor_stays_empty", "Exp", "", {"f32[0,3] []"}, {"f32[0,3] []"}},
};

static const op_case unary_integers[] = {
    {"abs_of_the_least_wraps", "Abs", "", {"i8[3] [-128, -1, 127]"}, {"i8[3] [-128, 1, 127]"}},
    {"abs_of_unsigned", "Abs", "", {"u64[1] [18446744073709551615]"}, {"u64[1] [18446744073709551615]"}},
    {"neg_of_the_least_wraps", "Neg", "", {"i64[1] [-9223372036854775808]"}, {"i64[1] [-9223372036854775808]"}},
    {"sign_of_integers", "Sign", "", {"i32[3] [-5, 0, 7]"}, {"i32[3] [-1, 0, 1]"}},
    {"sign_of_unsigned", "Sign", "", {"u64[2] [18446744073709551615, 0]"}, {"u64[2] [1, 0]"}},
    {"relu_of_integers", "Relu", "", {"i32[2] [-5, 5]"}, {"i32[2] [0, 5]"}},
    {"not", "Not", "", {"bool[2] [0, 1]"}, {"bool[2] [1, 0]"}},
    {"bitwise_not_of_unsigned", "BitwiseNot", "", {"u8[2] [0, 254]"}, {"u8[2] [255, 1]"}},
    {"bitwise_not_of_signed", "BitwiseNot", "", {"i16[1] [5]"}, {"i16[1] [-6]"}},
    {"shrink_of_integers", "Shrink", "lambd=1.0, bias=1.0", {"i32[3] [-3, 1, 3]"}, {"i32[3] [-2, 0, 2]"}},
};

static void unary_operators_follow_their_definition(void **state)
{
    (void)state;
    EXPECT(expect_values, unary_floats, 1e-14);
    EXPECT(expect_values, unary_integers, 0);
}

/* ---- Values: binary and variadic ------------------------------------------------------------------------------- */

static const op_case binary[] = {
    {"add_repeats_rows", "Add", "", {"f32[2,2] [1, 2, 3, 4]", "f32[2] [10, 20]"}, {"f32[2,2] [11, 22, 13, 24]"}},
    {"add_repeats_columns", "Add", "", {"f32[2,1] [1, 2]", "f32[1,2] [10, 20]"}, {"f32[2,2] [11, 21, 12, 22]"}},
    {"add_scalar_to_scalar", "Add", "", {"f32[] [1]", "f32[] [2]"}, {"f32[] [3]"}},
    {"add_of_nothing", "Add", "", {"f32[0,2] []", "f32[2] [1, 2]"}, {"f32[0,2] []"}},
    {"add_wraps", "Add", "", {"u8[1] [250]", "u8[1] [10]"}, {"u8[1] [4]"}},
    {"add_wraps_64_bits", "Add", "", {"i64[1] [9223372036854775807]", "i64[1] [1]"}, {"i64[1] [-9223372036854775808]"}},
    {"sub", "Sub", "", {"f32[1] [1]", "f32[1] [3]"}, {"f32[1] [-2]"}},
    {"sub_wraps_unsigned", "Sub", "", {"u32[1] [0]", "u32[1] [1]"}, {"u32[1] [4294967295]"}},
    {"mul", "Mul", "", {"f32[2] [2, -3]", "f32[] [4]"}, {"f32[2] [8, -12]"}},
    {"mul_wraps", "Mul", "", {"i8[1] [64]", "i8[1] [4]"}, {"i8[1] [0]"}},
    {"div", "Div", "", {"f32[2] [1, 1]", "f32[2] [4, 0]"}, {"f32[2] [0.25, inf]"}},
    {"div_truncates", "Div", "", {"i32[4] [7, -7, 7, -7]", "i32[4] [2, 2, -2, -2]"}, {"i32[4] [3, -3, -3, 3]"}},
    {"div_by_zero_is_zero", "Div", "", {"i32[1] [7]", "i32[1] [0]"}, {"i32[1] [0]"}},
    {"div_of_the_least_wraps",
     "Div",
     "",
     {"i64[1] [-9223372036854775808]", "i64[1] [-1]"},
     {"i64[1] [-9223372036854775808]"}},
    {"div_is_unsigned", "Div", "", {"u64[1] [18446744073709551615]", "u64[1] [2]"}, {"u64[1] [9223372036854775807]"}},
    {"mod_has_the_divisors_sign",
     "Mod",
     "",
     {"i32[4] [7, -7, 7, -7]", "i32[4] [3, 3, -3, -3]"},
     {"i32[4] [1, 2, -2, -1]"}},
    {"fmod_has_the_dividends_sign",
     "Mod",
     "fmod=1",
     {"i32[4] [7, -7, 7, -7]", "i32[4] [3, 3, -3, -3]"},
     {"i32[4] [1, -1, 1, -1]"}},
    {"mod_of_floats", "Mod", "", {"f64[2] [-7.5, 7.5]", "f64[2] [2, -2]"}, {"f64[2] [0.5, -0.5]"}},
    {"fmod_of_floats", "Mod", "fmod=1", {"f64[2] [-7.5, 7.5]", "f64[2] [2, -2]"}, {"f64[2] [-1.5, 1.5]"}},
    {"mod_by_zero_and_minus_one", "Mod", "", {"i64[2] [5, -9223372036854775808]", "i64[2] [0, -1]"}, {"i64[2] [0, 0]"}},
    {"mod_is_unsigned", "Mod", "", {"u64[1] [18446744073709551615]", "u64[1] [10]"}, {"u64[1] [5]"}},
    {"pow", "Pow", "", {"f64[2] [2, 9]", "f64[2] [10, 0.5]"}, {"f64[2] [1024, 3]"}},
    {"pow_of_integers_is_exact",
     "Pow",
     "",
     {"i64[2] [3, -2]", "i64[2] [39, 63]"},
     {"i64[2] [4052555153018976267, -9223372036854775808]"}},
    {"pow_with_a_negative_exponent", "Pow", "", {"i32[3] [2, 1, -1]", "i32[3] [-1, -5, -3]"}, {"i32[3] [0, 1, -1]"}},
    {"pow_of_float_to_integer", "Pow", "", {"f32[2] [1.5, 2]", "i64[2] [2, -1]"}, {"f32[2] [2.25, 0.5]"}},
    {"pow_of_integer_to_float", "Pow", "", {"i32[2] [2, 3]", "f32[2] [0.5, 2]"}, {"i32[2] [1, 9]"}},
    {"prelu", "PRelu", "", {"f32[2,2] [-1, 2, -3, 4]", "f32[2] [0.5, 0.25]"}, {"f32[2,2] [-0.5, 2, -1.5, 4]"}},
    {"bit_shift_left", "BitShift", "direction=\"LEFT\"", {"u8[3] [1, 129, 1]", "u8[3] [3, 1, 9]"}, {"u8[3] [8, 2, 0]"}},
    {"bit_shift_right",
     "BitShift",
     "direction=\"RIGHT\"",
     {"u64[2] [18446744073709551615, 8]", "u64[2] [63, 200]"},
     {"u64[2] [1, 0]"}},
    {"bitwise_and", "BitwiseAnd", "", {"u8[1] [12]", "u8[1] [10]"}, {"u8[1] [8]"}},
    {"bitwise_or", "BitwiseOr", "", {"i8[1] [-128]", "i8[1] [1]"}, {"i8[1] [-127]"}},
    {"bitwise_xor", "BitwiseXor", "", {"u8[1] [12]", "u8[1] [10]"}, {"u8[1] [6]"}},
    {"and", "And", "", {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"}, {"bool[4] [0, 0, 0, 1]"}},
    {"or", "Or", "", {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"}, {"bool[4] [0, 1, 1, 1]"}},
    {"xor", "Xor", "", {"bool[4] [0, 0, 1, 1]", "bool[4] [0, 1, 0, 1]"}, {"bool[4] [0, 1, 1, 0]"}},
    {"equal", "Equal", "", {"f32[3] [1, nan, 2]", "f32[3] [1, nan, 3]"}, {"bool[3] [1, 0, 0]"}},
    {"equal_of_bools", "Equal", "", {"bool[2] [1, 0]", "bool[] [1]"}, {"bool[2] [1, 0]"}},
    {"less", "Less", "", {"f32[3] [1, 2, nan]", "f32[3] [2, 2, 1]"}, {"bool[3] [1, 0, 0]"}},
    {"less_is_unsigned", "Less", "", {"u64[1] [1]", "u64[1] [18446744073709551615]"}, {"bool[1] [1]"}},
    {"less_or_equal", "LessOrEqual", "", {"i32[3] [1, 2, 3]", "i32[3] [2, 2, 2]"}, {"bool[3] [1, 1, 0]"}},
    {"greater", "Greater", "", {"i32[3] [1, 2, 3]", "i32[3] [2, 2, 2]"}, {"bool[3] [0, 0, 1]"}},
    {"greater_or_equal",
     "GreaterOrEqual",
     "",
     {"f32[4] [1, 2, 3, nan]", "f32[4] [2, 2, 2, 2]"},
     {"bool[4] [0, 1, 1, 0]"}},
};

static const op_case variadic[] = {
    {"min_of_three", "Min", "", {"f32[2] [1, 5]", "f32[] [3]", "f32[2] [2, 0]"}, {"f32[2] [1, 0]"}},
    {"min_keeps_nan", "Min", "", {"f32[2] [nan, 1]", "f32[2] [1, nan]"}, {"f32[2] [nan, nan]"}},
    {"max_keeps_nan", "Max", "", {"f32[2] [nan, 1]", "f32[2] [1, nan]"}, {"f32[2] [nan, nan]"}},
    {"max_is_unsigned", "Max", "", {"u64[1] [1]", "u64[1] [18446744073709551615]"}, {"u64[1] [18446744073709551615]"}},
    {"max_grows_the_shape", "Max", "", {"i32[1] [0]", "i32[2,1] [-1, 1]"}, {"i32[2,1] [0, 1]"}},
    {"sum_of_one", "Sum", "", {"f32[2] [1, 2]"}, {"f32[2] [1, 2]"}},
    {"sum_of_three",
     "Sum",
     "",
     {"f32[2] [1, 2]", "f32[1] [10]", "f32[2,1] [100, 200]"},
     {"f32[2,2] [111, 112, 211, 212]"}},
    {"mean_of_three", "Mean", "", {"f32[1] [1]", "f32[1] [2]", "f32[1] [6]"}, {"f32[1] [3]"}},
};

static void binary_operators_follow_their_definition(void **state)
{
    (void)state;
    EXPECT(expect_values, binary, 1e-15);
    EXPECT(expect_values, variadic, 0);
}

/* ---- Values: the others ---------------------------------------------------------------------------------------- */

static const op_case others[] = {
    {"where_broadcasts_all_three",
     "Where",
     "",
     {"bool[2,1] [1, 0]", "f32[2] [1, 2]", "f32[] [9]"},
     {"f32[2,2] [1, 2, 9, 9]"}},
    {"where_of_integers", "Where", "", {"bool[2] [0, 1]", "i64[2] [1, 2]", "i64[2] [3, 4]"}, {"i64[2] [3, 2]"}},
    {"clip_between", "Clip", "", {"f32[4] [-2, 0, 2, nan]", "f32[] [-1]", "f32[] [1]"}, {"f32[4] [-1, 0, 1, nan]"}},
    {"clip_without_least", "Clip", "", {"i32[2] [-9, 9]", "_", "i32[] [5]"}, {"i32[2] [-9, 5]"}},
    {"clip_without_limits", "Clip", "", {"f32[2] [-9, 9]"}, {"f32[2] [-9, 9]"}},
    {"clip_with_crossed_limits_gives_the_greatest",
     "Clip",
     "",
     {"f32[3] [-2, 0, 6]", "f32[] [2]", "f32[] [1]"},
     {"f32[3] [1, 1, 1]"}},
    {"identity", "Identity", "", {"i8[2] [-1, 1]"}, {"i8[2] [-1, 1]"}},
    {"dropout_passes_through", "Dropout", "", {"f32[2] [1, 2]"}, {"f32[2] [1, 2]", "bool[2] [1, 1]"}},
    {"dropout_trains_at_ratio_zero",
     "Dropout",
     "",
     {"f32[2] [1, 2]", "f32[] [0]", "bool[] [1]"},
     {"f32[2] [1, 2]", "bool[2] [1, 1]"}},
    {"dropout_says_that_it_is_not_training",
     "Dropout",
     "",
     {"f32[2] [1, 2]", "f32[] [0.75]", "bool[] [0]"},
     {"f32[2] [1, 2]"}},
};

static const op_case casts[] = {
    {"cast_to_half_rounds_to_even", "Cast", "to=10", {"f64[3] [2049, 2051, 65520]"}, {"f16[3] [2048, 2052, inf]"}},
    {"cast_to_half_rounds_once", "Cast", "to=10", {"f64[1] [1.00048828125001]"}, {"f16[1] [1.0009765625]"}},
    {"cast_to_bfloat16", "Cast", "to=16", {"f32[3] [257, 259, 1]"}, {"bf16[3] [256, 260, 1]"}},
    {"cast_to_integer_truncates", "Cast", "to=6", {"f32[4] [1.9, -1.9, nan, 0.1]"}, {"i32[4] [1, -1, 0, 0]"}},
    {"cast_to_integer_saturates", "Cast", "to=3", {"f32[4] [300, -300, inf, -inf]"}, {"i8[4] [127, -128, 127, -128]"}},
    {"cast_to_unsigned_saturates",
     "Cast",
     "to=13",
     {"f64[3] [1e30, -1, 1.8446744073709550e19]"},
     {"u64[3] [18446744073709551615, 0, 18446744073709549568]"}},
    {"cast_to_64_bits_saturates",
     "Cast",
     "to=7",
     {"f64[2] [1e30, -1e30]"},
     {"i64[2] [9223372036854775807, -9223372036854775808]"}},
    {"cast_between_integers_wraps", "Cast", "to=2", {"i32[3] [256, 257, -1]"}, {"u8[3] [0, 1, 255]"}},
    {"cast_to_bool", "Cast", "to=9", {"f32[4] [0, 0.5, nan, -0.0]"}, {"bool[4] [0, 1, 1, 0]"}},
    {"cast_integer_to_bool", "Cast", "to=9", {"i32[2] [0, 256]"}, {"bool[2] [0, 1]"}},
    {"cast_from_bool", "Cast", "to=1", {"bool[2] [0, 1]"}, {"f32[2] [0, 1]"}},
    {"cast_from_unsigned", "Cast", "to=11", {"u64[1] [18446744073709551615]"}, {"f64[1] [18446744073709551616]"}},
    {"cast_like", "CastLike", "", {"f32[2] [1.5, -1.5]", "i64[1] [0]"}, {"i64[2] [1, -1]"}},
};

static void selections_and_copies_follow_their_definition(void **state)
{
    (void)state;
    EXPECT(expect_values, others, 0);
}

static void casts_follow_their_definition(void **state)
{
    (void)state;
    EXPECT(expect_values, casts, 0);
}

/* ---- Shapes ---------------------------------------------------------------------------------------------------- */

static const op_case types[] = {
    {"unary_keeps_the_type", "Exp", "", {"f16[2,L]"}, {"f16[2,L]"}},
    {"tests_make_bools", "IsNaN", "", {"f32[L]"}, {"bool[L]"}},
    {"length_broadcasts_against_one", "Add", "", {"f32[L,1]", "f32[4]"}, {"f32[L,4]"}},
    {"one_broadcasts_against_length", "Add", "", {"f32[1,8]", "f32[2,L,1]"}, {"f32[2,L,8]"}},
    {"length_meets_length", "Mul", "", {"f32[2,2L+1]", "f32[2L+1]"}, {"f32[2,2L+1]"}},
    {"comparison_makes_bools", "Less", "", {"i32[L]", "i32[]"}, {"bool[L]"}},
    {"pow_has_the_bases_type", "Pow", "", {"f32[3]", "i64[1]"}, {"f32[3]"}},
    {"where_broadcasts", "Where", "", {"bool[L,1,1]", "f32[1,2,1]", "f32[3]"}, {"f32[L,2,3]"}},
    {"cast_changes_the_element", "Cast", "to=7", {"f32[L]"}, {"i64[L]"}},
    {"cast_like_takes_the_element", "CastLike", "", {"f32[L]", "bf16[5]"}, {"bf16[L]"}},
    {"clip_keeps_the_type", "Clip", "", {"f32[L]", "f32[]", "f32[]"}, {"f32[L]"}},
    {"dropout_has_a_mask", "Dropout", "", {"f32[L]"}, {"f32[L]", "bool[L]"}},
    {"variadic_broadcasts_all", "Sum", "", {"f32[2,1]", "f32[L]", "f32[1]"}, {"f32[2,L]"}},
};

static void shapes_follow_from_the_operands(void **state)
{
    (void)state;
    expect_types(types, sizeof types / sizeof types[0]);
}

static const op_case known[] = {
    {"add_of_known", "Add", "", {"i64[2] known [L, 3]", "i64[2] [1, 2]"}, {"i64[2] known [L+1, 5]"}},
    {"add_repeats_known", "Add", "", {"i64[2] known [L, 3]", "i64[] [1]"}, {"i64[2] known [L+1, 4]"}},
    {"sub_of_known", "Sub", "", {"i64[] known [2L]", "i64[] known [L]"}, {"i64[] known [L]"}},
    {"mul_of_known", "Mul", "", {"i64[1] known [L+1]", "i64[1] [3]"}, {"i64[1] known [3L+3]"}},
    {"mul_of_two_lengths_is_not_affine", "Mul", "", {"i64[1] known [L]", "i64[1] known [L]"}, {"i64[1] unknown"}},
    {"div_of_known", "Div", "", {"i64[1] known [4L]", "i64[1] [2]"}, {"i64[1] known [2L]"}},
    {"div_truncates_known", "Div", "", {"i64[2] [-7, 7]", "i64[1] [2]"}, {"i64[2] known [-3, 3]"}},
    {"div_of_length_by_length", "Div", "", {"i64[1] known [4L]", "i64[1] known [L]"}, {"i64[1] known [4]"}},
    {"div_rounds_down_where_affine", "Div", "", {"i64[1] known [2L+1]", "i64[1] [2]"}, {"i64[1] known [L]"}},
    {"div_by_zero_is_not_known", "Div", "", {"i64[1] known [L]", "i64[1] [0]"}, {"i64[1] unknown"}},
    {"mod_of_known", "Mod", "", {"i64[1] known [4L+3]", "i64[1] [4]"}, {"i64[1] known [3]"}},
    {"min_is_decided_by_the_range", "Min", "", {"i64[1] known [L]", "i64[1] [64]"}, {"i64[1] known [L]"}},
    {"min_is_not_decided", "Min", "", {"i64[1] known [L]", "i64[1] [63]"}, {"i64[1] unknown"}},
    {"max_is_decided_by_the_range", "Max", "", {"i64[1] known [L]", "i64[1] [1]"}, {"i64[1] known [L]"}},
    {"neg_of_known", "Neg", "", {"i64[1] known [L]"}, {"i64[1] known [-L]"}},
    {"abs_of_known", "Abs", "", {"i64[1] known [-L]"}, {"i64[1] known [L]"}},
    {"identity_of_known", "Identity", "", {"i64[1] known [L]"}, {"i64[1] known [L]"}},
    {"cast_to_integer_keeps_known", "Cast", "to=6", {"i64[1] known [L]"}, {"i32[1] known [L]"}},
    {"cast_to_a_small_integer_may_wrap", "Cast", "to=3", {"i64[1] known [2L]"}, {"i8[1] unknown"}},
    {"cast_of_length_to_bool_is_true", "Cast", "to=9", {"i64[1] known [L]"}, {"bool[1] known [1]"}},
    {"cast_to_float_loses_known", "Cast", "to=1", {"i64[1] known [L]"}, {"f32[1] unknown"}},
    {"equal_of_length_and_zero", "Equal", "", {"i64[2] known [L, 0]", "i64[] [0]"}, {"bool[2] known [0, 1]"}},
    {"equal_is_not_decided", "Equal", "", {"i64[1] known [L]", "i64[] [5]"}, {"bool[1] unknown"}},
    {"less_is_decided", "Less", "", {"i64[1] known [L]", "i64[] [65]"}, {"bool[1] known [1]"}},
    {"greater_or_equal_is_decided", "GreaterOrEqual", "", {"i64[1] known [L]", "i64[] [1]"}, {"bool[1] known [1]"}},
    {"not_of_known", "Not", "", {"bool[2] [0, 1]"}, {"bool[2] known [1, 0]"}},
    {"where_of_known",
     "Where",
     "",
     {"bool[2] [1, 0]", "i64[2] known [L, 2]", "i64[2] known [3, 2L]"},
     {"i64[2] known [L, 2L]"}},
    {"overflow_is_not_known", "Add", "", {"i64[1] [9223372036854775807]", "i64[1] [1]"}, {"i64[1] unknown"}},
    {"wrapping_is_not_known", "Add", "", {"u8[1] [250]", "u8[1] [10]"}, {"u8[1] unknown"}},
};

static void known_content_is_carried_along(void **state)
{
    (void)state;
    expect_types(known, sizeof known / sizeof known[0]);
}

static const op_case malformed[] = {
    {"different_dims_do_not_broadcast", "Add", "", {"f32[3]", "f32[4]"}, {"3 and 4"}},
    {"operands_differ_in_type", "Add", "", {"f32[3]", "f64[3]"}, {"f64"}},
    {"exp_of_an_integer", "Exp", "", {"i32[3]"}, {"not defined for i32"}},
    {"not_of_a_float", "Not", "", {"f32[3]"}, {"not defined for f32"}},
    {"and_of_integers", "And", "", {"i32[1]", "i32[1]"}, {"not defined for i32"}},
    {"shift_of_a_float", "BitShift", "", {"f32[1]", "f32[1]"}, {"not defined for f32"}},
    {"where_needs_a_bool", "Where", "", {"i32[1]", "f32[1]", "f32[1]"}, {"not bool"}},
    {"too_few_inputs", "Add", "", {"f32[1]"}, {"1 inputs"}},
    {"a_required_input_is_absent", "Add", "", {"f32[1]", "_"}, {"input 1 is required"}},
    {"a_variadic_input_is_absent", "Sum", "", {"f32[1]", "_", "f32[1]"}, {"input 1 is required"}},
};

static const op_case unsupported[] = {
    {"length_does_not_broadcast_against_three", "Add", "", {"f32[L]", "f32[3]"}, {"L and 3"}},
    {"cast_to_float8", "Cast", "to=17", {"f32[3]"}, {"element type 17"}},
    {"cast_to_string", "Cast", "to=8", {"f32[3]"}, {"element type 8"}},
    {"cast_without_target", "Cast", "", {"f32[3]"}, {"element type 0"}},
};

static const op_case untrainable[] = {
    {"dropout_in_training_mode", "Dropout", "", {"f32[1] [1]", "f32[] [0.5]", "bool[] [1]"}, {"random"}},
};

static void wrong_operands_are_named(void **state)
{
    (void)state;
    EXPECT(expect_type_faults, malformed, MDOT_MALFORMED);
    EXPECT(expect_type_faults, unsupported, MDOT_UNSUPPORTED);
    EXPECT(expect_value_faults, untrainable, MDOT_UNSUPPORTED);
}

/* ---- Costs ----------------------------------------------------------------------------------------------------- */

static void pointwise_cost_counts_elements_and_bytes(void **state)
{
    (void)state;
    const op_case add = {"add", "Add", "", {"f32[2,L]", "f32[3,1,1] [1, 2, 3]"}, {""}};
    ir_cost cost = case_cost(&add, 10);
    assert_float_equal(cost.flops, 60, 0);
    assert_float_equal(cost.bytes_read, 4 * (20 + 3), 0);
    assert_float_equal(cost.bytes_written, 4 * 60, 0);
    assert_float_equal(cost.parameters, 3, 0);
}

static void composed_operators_cost_what_they_are_composed_of(void **state)
{
    (void)state;
    const op_case gelu = {"gelu", "Gelu", "", {"f32[L]"}, {""}};
    const op_case sum = {"sum", "Sum", "", {"f32[L]", "f32[L]", "f32[L]"}, {""}};
    const op_case mean = {"mean", "Mean", "", {"f32[L]", "f32[L]", "f32[L]"}, {""}};
    const op_case where = {"where", "Where", "", {"bool[L]", "f32[L]", "f32[L]"}, {""}};
    assert_float_equal(case_cost(&gelu, 8).flops, 5 * 8, 0);
    assert_float_equal(case_cost(&sum, 8).flops, 2 * 8, 0);
    assert_float_equal(case_cost(&mean, 8).flops, 3 * 8, 0);
    assert_float_equal(case_cost(&where, 8).flops, 8, 0);
    assert_float_equal(case_cost(&where, 8).bytes_read, 8 + 64, 0);
}

static void aliases_cost_nothing(void **state)
{
    (void)state;
    const op_case identity = {"identity", "Identity", "", {"f32[L]"}, {""}};
    ir_cost cost = case_cost(&identity, 8);
    assert_float_equal(cost.flops + cost.bytes_read + cost.bytes_written + cost.parameters, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_operators_follow_their_definition),
        cmocka_unit_test(binary_operators_follow_their_definition),
        cmocka_unit_test(selections_and_copies_follow_their_definition),
        cmocka_unit_test(casts_follow_their_definition),
        cmocka_unit_test(shapes_follow_from_the_operands),
        cmocka_unit_test(known_content_is_carried_along),
        cmocka_unit_test(wrong_operands_are_named),
        cmocka_unit_test(pointwise_cost_counts_elements_and_bytes),
        cmocka_unit_test(composed_operators_cost_what_they_are_composed_of),
        cmocka_unit_test(aliases_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
